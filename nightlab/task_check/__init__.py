"""`nightlab research check`: a few real trials of a task's default, before a night is spent on it."""

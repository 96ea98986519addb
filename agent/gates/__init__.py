"""Questions to people: may this be done? Who decides is the task; the answers are rows, and nothing waits for them."""

"""The chat in a terminal: what it shows (pure), how it is typed, and the way to the agent service, over HTTP alone."""

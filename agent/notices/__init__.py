"""Word gets out: messages to people about nights and sessions, and how they are sent through Apprise."""

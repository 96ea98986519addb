"""What a session may do by itself, what it asks for first, and what it does when nobody answers."""

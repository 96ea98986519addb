"""What people say to a session under way: directions that are forbidden, ideas, budgets, a pause. Pure."""

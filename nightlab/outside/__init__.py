"""Agents of other people: what they may read of sessions and jobs, and the one thing they may do, propose trials."""

"""Trials months later: found, held against each other, run again, carried elsewhere."""

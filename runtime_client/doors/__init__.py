"""What the doors of our HTTP services have in common: refusals, who may come in, token files."""

"""The chat for researchers: what people ask of sessions and jobs, and what is done for them once they agree."""

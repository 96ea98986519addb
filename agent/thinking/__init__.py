"""The language model as a proposer: what it is shown, what it may answer, and what becomes of the answer."""

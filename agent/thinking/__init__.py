"""The model as one proposer among others: what it is shown, what it may answer, and what becomes of the answer."""

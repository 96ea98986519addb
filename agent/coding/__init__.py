"""Edits of the training code by models, people and outside agents: what is asked, shown, and made of an answer."""

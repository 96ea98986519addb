"""Prompt texts, one `<name>.md` each: front matter, then what the system says and what the user says."""

from .prompt import Fenced, Prompt, PromptError, Rendered, load, names, parse

__all__ = ["Fenced", "Prompt", "PromptError", "Rendered", "load", "names", "parse"]

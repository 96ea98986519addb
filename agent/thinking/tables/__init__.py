"""Query tables: what a model, or an agent from outside, may ask about a session. Pure and small, whatever its size."""

from .edits import edits
from .effects import effects
from .failures import failures
from .means import budgets_left, capacity
from .memory import claims, ideas, lessons, refusals
from .table import Table
from .trials import best, curves, near, recent, running, what_text

__all__ = [
    "Table",
    "best",
    "budgets_left",
    "capacity",
    "claims",
    "curves",
    "edits",
    "effects",
    "failures",
    "ideas",
    "lessons",
    "near",
    "recent",
    "refusals",
    "running",
    "what_text",
]

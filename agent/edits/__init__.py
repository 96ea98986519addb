"""Edits of training code by models and outside agents: read, checked, kept as commits, made into folders for jobs.

`form`, `rules`, `blocks`, `unified`, `placing` and `edit` are pure; `base`, `repository`, `checkout`, `workshop` and
`taking` are the shell around git; `checks` says what speaks against a change, by what `reading` and `environment` ask
of the jobs' Python.
"""

from .base import CodeRefused
from .checks import objections
from .edit import apply
from .environment import installed_modules
from .form import NotApplied
from .rules import EditRules
from .workshop import Workshop, workshop_folder

__all__ = [
    "CodeRefused",
    "EditRules",
    "NotApplied",
    "Workshop",
    "apply",
    "installed_modules",
    "objections",
    "workshop_folder",
]

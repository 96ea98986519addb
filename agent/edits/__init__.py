"""Edits of training code by models and outside agents: read, checked, kept as commits, made into folders for jobs.

`form`, `rules`, `blocks`, `unified`, `placing`, `edit`, `imports` and `checks` are pure; `base`, `repository`,
`checkout` and `workshop` are the shell around git; `environment` asks the jobs' Python what it can import.
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

"""The morning report: one night of a sweep as one page, self-contained HTML and Markdown from the same facts."""

from .build import build_night_html
from .facts import CellPart, NightReport
from .gather import NightReader, gather_night
from .markdown import build_night_markdown
from .sentence import headline
from .write import NightFiles, write_night, write_plain_night

__all__ = [
    "CellPart",
    "NightFiles",
    "NightReader",
    "NightReport",
    "build_night_html",
    "build_night_markdown",
    "gather_night",
    "headline",
    "write_night",
    "write_plain_night",
]

"""Writes a morning report: its two files and the two that always show the newest night of the sweep."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agent.sweeps.views import NightView

from .build import build_night_html
from .facts import NightReport
from .markdown import build_night_markdown
from .plain_page import plain_html, plain_markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class NightFiles:
    html: Path
    markdown: Path


def write_night(report: NightReport, folder: Path) -> NightFiles:
    """`<night>.html` and `.md` in the folder; `<sweep>-latest.html` and `.md` where no later night is known.

    Each replaces an older one only when it is whole.

    Raises:
        OSError: the folder can not be written, or the disk is full.
    """
    html, text = build_night_html(report), build_night_markdown(report)
    return _write(report.night, html, text, folder, is_newest=report.is_newest)


def write_plain_night(night: NightView, folder: Path, *, is_newest: bool) -> NightFiles:
    """The same files from the night's row alone, where the whole page could not be made.

    Raises:
        OSError: as `write_night`.
    """
    return _write(night, plain_html(night), plain_markdown(night), folder, is_newest=is_newest)


def _write(night: NightView, html: str, text: str, folder: Path, *, is_newest: bool) -> NightFiles:
    folder.mkdir(parents=True, exist_ok=True)
    files = NightFiles(html=folder / f"{night.night_id}.html", markdown=folder / f"{night.night_id}.md")
    for path, content in ((files.html, html), (files.markdown, text)):
        replace_text(path, content)
        if is_newest:
            replace_text(path.with_name(f"{night.sweep}-latest{path.suffix}"), content)
    return files


def replace_text(path: Path, content: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(content, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

"""Writes a morning report: its two files and the two that always show the newest night of the sweep."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .build import build_night_html
from .facts import NightReport
from .markdown import build_night_markdown


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
    folder.mkdir(parents=True, exist_ok=True)
    night = report.night
    files = NightFiles(html=folder / f"{night.night_id}.html", markdown=folder / f"{night.night_id}.md")
    html, text = build_night_html(report), build_night_markdown(report)
    for path, content in ((files.html, html), (files.markdown, text)):
        replace_text(path, content)
        if report.is_newest:
            replace_text(path.with_name(f"{night.sweep}-latest{path.suffix}"), content)
    return files


def replace_text(path: Path, content: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(content, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

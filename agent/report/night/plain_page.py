"""The page of a night whose whole page could not be made: how it ended, and where more is to be found. Pure.

It reads nothing but the night's row, so that nothing that a night measured can make it fail.
"""

from __future__ import annotations

from html import escape

from agent.report import wording
from agent.sweeps.views import NightView

from .sentence import outcome_words

WHY = "This page is plain: the whole one could not be made."


def plain_markdown(night: NightView) -> str:
    """Title, outcome, times, its cells and their sessions."""
    lines = [f"# {night.night_id}", "", f"The night {outcome_words(night)}.", ""]
    if night.message:
        lines += [night.message, ""]
    lines += [f"- {line}" for line in _facts(night)]
    return "\n".join([*lines, "", f"{WHY} Write it anew with `{_again(night)}`.", ""])


def plain_html(night: NightView) -> str:
    """The same; needs nothing else, and everything from outside is escaped."""
    facts = "\n".join(f"<li>{escape(line)}</li>" for line in _facts(night))
    message = f"<p>{escape(night.message)}</p>\n" if night.message else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(night.night_id)}</title>\n"
        "<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44em;"
        "margin:2em auto;padding:0 1em;overflow-wrap:anywhere}</style></head>\n"
        f"<body><h1>{escape(night.night_id)}</h1>\n<p>The night {escape(outcome_words(night))}.</p>\n{message}"
        f"<ul>\n{facts}\n</ul>\n<p>{WHY} Write it anew with <code>{escape(_again(night))}</code>.</p>\n"
        "</body></html>\n"
    )


def _facts(night: NightView) -> list[str]:
    facts = [f"started {wording.moment(night.created_at)}"]
    if night.finish_by is not None:
        facts.append(f"had to be over by {wording.moment(night.finish_by)}")
    if night.ended_at is not None:
        facts.append(f"ended {wording.moment(night.ended_at)}")
    facts += [f"{c.cell}: {'not started' if c.session_id is None else f'session {c.session_id}'}" for c in night.cells]
    return [*facts, f"sweep file: {night.file}"]


def _again(night: NightView) -> str:
    return f"nightlab sweep report {night.night_id}"

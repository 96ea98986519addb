"""What can follow what was typed: names of commands, and ids of sessions, trials and jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agent.chat.entry import Table
from agent.web.chat_wire import SlashView

HELP = SlashView(name="help", usage="/help [COMMAND]", summary="the commands, or the usage of one")

KINDS = ("session", "trial", "job", "node")
ANY_ID = " ID"
"""In a usage: an id of whatever kind."""


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    n_typed: int
    """So many characters before the cursor are part of it."""
    meaning: str


@dataclass(slots=True)
class Ids:
    """Known ids by what they name, newest first."""

    by_kind: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def learn(self, kind: str, found: Sequence[str]) -> None:
        before = self.by_kind.setdefault(kind, [])
        before[:0] = [one for one in dict.fromkeys(found) if _is_word(one) and one not in before]

    def learn_from(self, table: Table) -> None:
        """From columns that are named after what they list."""
        for index, title in enumerate(table.columns):
            if title in self.by_kind:
                self.learn(title, [str(row[index]) for row in table.rows if index < len(row) and row[index]])


def words(before: str, slashes: Sequence[SlashView], ids: Ids) -> Iterator[Word]:
    """Ways to go on after the text before the cursor."""
    line = before.rpartition("\n")[2]
    head, has_space, typed = line.rpartition(" ")
    if before.startswith("/") and not has_space and "\n" not in before:
        for slash in {one.name: one for one in (HELP, *slashes)}.values():
            if f"/{slash.name}".startswith(typed):
                yield Word(f"/{slash.name}", len(typed), slash.summary)
        return
    name = head.partition(" ")[0].removeprefix("/") if line.startswith("/") else None
    usage = " ".join(one.usage for one in slashes if one.name == name)
    for kind, found in ids.by_kind.items():
        if not (typed or kind.upper() in usage or ANY_ID in usage):
            continue
        for one in found:
            if one.startswith(typed) and one != typed:
                yield Word(one, len(typed), kind)


def _is_word(text: str) -> bool:
    """What stands in a table is anybody's text; only what can be typed is taken from there."""
    return text.isprintable() and bool(text) and " " not in text

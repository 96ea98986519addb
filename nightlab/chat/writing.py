"""The reply that is being written: which of its characters are new. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class More:
    text: str
    """To be shown now."""
    is_anew: bool = False
    """What was shown of the reply does not hold any more; this begins it again."""


class Writing:
    """What was shown of one reply. A connection that was made again repeats the reply from its beginning."""

    def __init__(self) -> None:
        self._shown = ""
        self.is_line_open = False
        """The last character shown is not the end of a line."""

    def piece(self, offset: int, text: str) -> More:
        """A piece that follows `offset` characters; one that follows what never came is left to the whole reply."""
        if offset > len(self._shown):
            return More("")
        return self._become(self._shown[:offset] + text)

    def whole(self, text: str) -> More:
        """The reply as it stands for good."""
        return self._become(text)

    def end(self) -> bool:
        """What comes next is another reply's, on a line of its own; whether the line is open."""
        was_open, self.is_line_open, self._shown = self.is_line_open, False, ""
        return was_open

    def _become(self, text: str) -> More:
        before, self._shown = self._shown, text
        is_same = text.startswith(before.rstrip())
        more = More(text[len(before) :] if is_same else text, is_anew=not is_same)
        if more.text:
            self.is_line_open = not more.text.endswith("\n")
        return more

"""Where the old lines of an edit are in a file: exactly there, and there alone. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise

from .form import NotApplied, Spot

_SHOWN = 100
"""Characters of a line in a message."""
_MOST_COMPARED = 5000
"""Lines among which the one nearest to a wanted one is looked for."""
_LONGEST = 300
"""Bytes of a line that is compared so."""
_N_PLACES = 6
_N_PROBLEMS = 8


def patched(path: str, source: bytes, spots: Sequence[Spot]) -> bytes:
    """The file after the edit. All spots are looked for in the file as it is, none in what another one made.

    A file without a final newline stays so, unless a diff says otherwise by its own sign.

    Raises:
        NotApplied: with a sentence for each spot that is not exactly once in the file.
    """
    lines = source.split(b"\n")
    is_bare = lines[-1] != b""
    if not is_bare:
        lines.pop()
    made: list[bytes] = []
    done = 0
    for start, spot in _placed(path, lines, spots, is_bare=is_bare):
        made += [*lines[done:start], *spot.new]
        done = start + len(spot.old)
        if done == len(lines) and (spot.is_old_bare or spot.is_new_bare):
            is_bare = spot.is_new_bare
    made += lines[done:]
    return b"\n".join(made) + (b"" if is_bare or not made else b"\n")


def _placed(path: str, lines: list[bytes], spots: Sequence[Spot], *, is_bare: bool) -> list[tuple[int, Spot]]:
    stated = [(_stated(spot), spot) for spot in spots]
    if all(start is not None and _is_at(lines, spot, start, is_bare=is_bare) for start, spot in stated):
        found = [(start, spot) for start, spot in stated if start is not None]
    else:
        found = _found(path, lines, spots, is_bare=is_bare)
    found.sort(key=lambda one: one[0])
    for (start, spot), (following, other) in pairwise(found):
        if start + len(spot.old) > following:
            raise NotApplied(f"{path}: {spot.name} and {other.name} change the same lines; make them one")
    return found


def _found(path: str, lines: list[bytes], spots: Sequence[Spot], *, is_bare: bool) -> list[tuple[int, Spot]]:
    """The one place of each spot. Raises NotApplied, with a sentence for each that has none or several."""
    whole = b"\n".join((b"", *lines, b""))
    found: list[tuple[int, Spot]] = []
    problems: list[str] = []
    for spot in spots:
        places = [max(len(lines) - len(spot.old), 0)] if spot.is_old_bare else _places(whole, spot)
        starts = [start for start in places if _is_at(lines, spot, start, is_bare=is_bare)]
        if not lines and not spot.old:
            starts = [0]
        if len(starts) == 1:
            found.append((starts[0], spot))
        elif len(problems) < _N_PROBLEMS:
            problems.append(f"{path}, {spot.name}: {_why(lines, spot, starts, is_bare=is_bare)}")
        else:
            problems.append(f"{path}, {spot.name} and what follows it were not looked for: mend these first")
            break
    if problems:
        raise NotApplied("\n".join(problems))
    return found


def _places(whole: bytes, spot: Spot) -> Iterator[int]:
    """Where the old lines are, by their bytes, from the top; not all of very many."""
    wanted = b"\n".join((b"", *spot.old, b""))
    position = number = 0
    for _ in range(_N_PLACES + 1):
        place = whole.find(wanted, position) if spot.old else -1
        if place < 0:
            return
        number += whole.count(b"\n", position, place)
        yield number
        position, number = place + 1, number + 1


def _stated(spot: Spot) -> int | None:
    if spot.line is None or (not spot.old and spot.line > 0):
        return None
    return max(spot.line - 1, 0)


def _is_at(lines: list[bytes], spot: Spot, start: int, *, is_bare: bool) -> bool:
    end = start + len(spot.old)
    if not spot.old and lines:
        return False
    return lines[start:end] == list(spot.old) and not (spot.is_old_bare and not (is_bare and end == len(lines)))


def _by_content(lines: list[bytes]) -> dict[bytes, list[int]]:
    index: dict[bytes, list[int]] = {}
    for number, line in enumerate(lines):
        index.setdefault(line, []).append(number)
    return index


def _why(lines: list[bytes], spot: Spot, starts: list[int], *, is_bare: bool) -> str:
    if not spot.old:
        return "it has no line that says where the new ones belong; begin with lines of the file"
    if starts:
        shown = ", ".join(str(start + 1) for start in starts[:_N_PLACES])
        times, more = (len(starts), "") if len(starts) <= _N_PLACES else ("many", ", ...")
        return (
            f"its old lines are {times} times in the file (lines {shown}{more}); add the lines around them until they "
            "are there once"
        )
    if spot.old[0].startswith(b"```"):
        return f"not found: it begins with {_shown(spot.old[0])}; leave out fences within a block"
    if spot.is_old_bare and not is_bare:
        return "it says `\\ No newline at end of file`, and the file ends with a newline"
    return _nearest(lines, spot)


def _nearest(lines: list[bytes], spot: Spot) -> str:
    """The first line that differs at the place where most lines agree."""
    index = _by_content(lines)
    votes = Counter(
        number - offset
        for offset, line in enumerate(spot.old)
        if line.strip()
        for number in index.get(line, [])[:_N_PLACES]
    )
    if votes:
        start, _ = votes.most_common(1)[0]
        for offset, line in enumerate(spot.old):
            number = start + offset
            there = lines[number] if 0 <= number < len(lines) else None
            if there != line:
                return _differs(line, there, number + 1)
    wanted = next((line for line in spot.old if line.strip()), b"")
    by_text = {_text(line): number for number, line in enumerate(lines[:_MOST_COMPARED]) if len(line) < _LONGEST}
    near = get_close_matches(_text(wanted[:_LONGEST]), list(by_text), n=1, cutoff=0.5)
    if near:
        number = by_text[near[0]]
        return _differs(wanted, lines[number], number + 1)
    return f"no line of the file is like its line {_shown(wanted)}; copy the old lines from the file as it is now"


def _differs(wanted: bytes, there: bytes | None, number: int) -> str:
    if there is None:
        where = "the file has no line before its first" if number < 1 else f"the file ends before line {number}"
        return f"not found: {where}, and the edit expects {_shown(wanted)} there"
    hint = "; they differ in spaces, tabs or line ends alone" if wanted.split() == there.split() else ""
    return (
        f"not found: the edit expects {_shown(wanted)}, and line {number} of the file is {_shown(there)}{hint}. "
        "Copy the old lines from the file, character by character"
    )


def _text(line: bytes) -> str:
    return line.decode(errors="replace").strip()


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...")

"""What can be told of changed code without running it: syntax, imports, sizes, what may not be touched."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping

from .reading import Reading, readings
from .rules import EditRules


def objections(
    changed: Mapping[str, bytes],
    sources: Mapping[str, bytes],
    rules: EditRules,
    *,
    base: Mapping[str, bytes] | None = None,
    paths: Collection[str] = (),
    installed: Collection[str] | None = None,
    python: str | None = None,
) -> list[str]:
    """Why changed code should not be run, a sentence each for whoever wrote it; empty: nothing is against it.

    What was so before the change is no objection. The code is compiled in a process of its own, never executed.

    Args:
        sources: the editable files before the change.
        base: the editable files of the session's base, by which lines are counted; None: `sources`.
        paths: all files of the code, editable or not (`Workshop.paths`).
        installed: modules of the jobs' Python (`environment.installed_modules`); None: not known, imports are not
            looked at.
        python: the jobs' Python, which compiles; None: ours does.
    """
    found = [sentence for path in sorted(changed) for sentence in _of_size(path, changed[path], sources, rules)]
    n_lines = _least_changed({**sources, **changed}, sources if base is None else base)
    if n_lines > rules.max_changed_lines:
        found.append(
            f"at least {n_lines} lines differ from the base, and {rules.max_changed_lines} are allowed "
            "(code.max_changed_lines); change less"
        )
    if found:
        return found
    named = sorted(path for path in changed if path.endswith(".py"))
    befores = [path for path in named if path in sources]
    read = readings([*((p, changed[p]) for p in named), *((p, sources[p]) for p in befores)], python)
    before = dict(zip(befores, read[len(named) :], strict=True))
    own = _names_in({*paths, *sources, *changed})
    for path, after in zip(named, read, strict=False):
        found += _of_code(path, after, before.get(path, Reading()), own, installed)
    return found


def _of_size(path: str, after: bytes, sources: Mapping[str, bytes], rules: EditRules) -> list[str]:
    before = sources.get(path)
    if not rules.is_editable(path):
        return [f"{path} may not be edited; editable: {', '.join(rules.editable)}"]
    if len(after) > rules.max_bytes and len(after) > len(before or b""):
        return [f"{path} would have {len(after)} bytes, and {rules.max_bytes} are allowed; make it shorter"]
    if before is not None and before.strip() and not after.strip():
        return [f"{path} would be left without content; keep what is used of it"]
    return []


def _least_changed(after: Mapping[str, bytes], before: Mapping[str, bytes]) -> int:
    """Lines added and removed, at least: what was moved within a file is not counted. Quick, whatever the change."""
    n_lines = 0
    for path in after.keys() | before.keys():
        one, other = before.get(path, b""), after.get(path, b"")
        if one != other:
            lines, others = Counter(one.splitlines()), Counter(other.splitlines())
            n_lines += (lines - others).total() + (others - lines).total()
    return n_lines


def _of_code(
    path: str, after: Reading, before: Reading, own: Collection[str], installed: Collection[str] | None
) -> list[str]:
    known = {text for text, _ in before.told}
    found = [f"{path}, line {line}: {text}" for text, line in after.told if text not in known]
    if installed is None:
        return found
    there = {*sys.stdlib_module_names, *installed, *own, *(name for name, _ in before.imports)}
    return found + [
        f"{path}, line {line}: there is no module {name} in the jobs' Python nor in the code, and none can be "
        "installed; do without it"
        for name, line in after.imports
        if name not in there
    ]


def _names_in(paths: Collection[str]) -> set[str]:
    """What the code could provide, wherever its jobs look for modules: its folders, and its files' first names."""
    names: set[str] = set()
    for path in paths:
        *folders, file = path.split("/")
        names.update(folders)
        names.add(file.partition(".")[0])
    return names

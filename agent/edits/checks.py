"""What can be told of changed code without running it: syntax, imports, sizes, what may not be touched. Pure."""

from __future__ import annotations

import ast
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Mapping

from .imports import imported
from .rules import EditRules


def objections(
    changed: Mapping[str, bytes],
    sources: Mapping[str, bytes],
    rules: EditRules,
    *,
    base: Mapping[str, bytes] | None = None,
    paths: Collection[str] = (),
    installed: Collection[str] | None = None,
) -> list[str]:
    """Why changed code should not be run, a sentence each for whoever wrote it; empty: nothing is against it.

    What was so before the change is no objection. The code is compiled, never executed.

    Args:
        sources: the editable files before the change.
        base: the editable files of the session's base, by which lines are counted; None: `sources`.
        paths: all files of the code, editable or not (`Workshop.paths`).
        installed: modules of the jobs' Python (`environment.installed_modules`); None: not known, imports are not
            looked at.
    """
    found = [sentence for path in sorted(changed) for sentence in _of_file(path, changed[path], sources, rules)]
    n_lines = _least_changed({**sources, **changed}, sources if base is None else base)
    if n_lines > rules.max_changed_lines:
        found.append(
            f"at least {n_lines} lines differ from the base, and {rules.max_changed_lines} are allowed "
            "(code.max_changed_lines); change less"
        )
    if installed is not None:
        found += _unknown_imports(changed, sources, _names_in({*paths, *sources, *changed}), installed)
    return found


def _of_file(path: str, after: bytes, sources: Mapping[str, bytes], rules: EditRules) -> list[str]:
    before = sources.get(path)
    if not rules.is_editable(path):
        return [f"{path} may not be edited; editable: {', '.join(rules.editable)}"]
    if len(after) > rules.max_bytes and len(after) > len(before or b""):
        return [f"{path} would have {len(after)} bytes, and {rules.max_bytes} are allowed; make it shorter"]
    if before is not None and before.strip() and not after.strip():
        return [f"{path} would be left without content; keep what is used of it"]
    if not path.endswith(".py"):
        return []
    told = _syntax(path, after)
    known = [] if before is None else _syntax(path, before)
    texts = {text for text, _ in known}
    return [f"{path}, line {line}: {text}" for text, line in told if text not in texts]


def _syntax(path: str, content: bytes) -> list[tuple[str, int]]:
    """Errors and warnings of the compiler, with their lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compile(content, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            return [(f"Python {version} can not read it: {error.msg}", error.lineno or 1)]
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            return [(f"Python can not read it: {error or type(error).__name__}", 1)]
    return [
        (f"Python warns: {one.message}", one.lineno)
        for one in caught
        if issubclass(one.category, SyntaxWarning | DeprecationWarning)
    ]


def _least_changed(after: Mapping[str, bytes], before: Mapping[str, bytes]) -> int:
    """Lines added and removed, at least: what was moved within a file is not counted. Quick, whatever the change."""
    n_lines = 0
    for path in after.keys() | before.keys():
        one, other = before.get(path, b""), after.get(path, b"")
        if one != other:
            lines, others = Counter(one.splitlines()), Counter(other.splitlines())
            n_lines += (lines - others).total() + (others - lines).total()
    return n_lines


def _unknown_imports(
    changed: Mapping[str, bytes], sources: Mapping[str, bytes], own: Collection[str], installed: Collection[str]
) -> list[str]:
    found = []
    for path in sorted(changed):
        before = _imports(path, sources.get(path, b""))
        for name, line in _imports(path, changed[path]).items():
            is_known = name in sys.stdlib_module_names or name in installed or name in own
            if not is_known and name not in before:
                found.append(
                    f"{path}, line {line}: there is no module {name} in the jobs' Python nor in the code, and none "
                    "can be installed; do without it"
                )
    return found


def _imports(path: str, content: bytes) -> dict[str, int]:
    if not path.endswith(".py"):
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return imported(ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _names_in(paths: Collection[str]) -> set[str]:
    """What the code could provide, wherever its jobs look for modules: its folders, and its files' first names."""
    names: set[str] = set()
    for path in paths:
        *folders, file = path.split("/")
        names.update(folders)
        names.add(file.partition(".")[0])
    return names

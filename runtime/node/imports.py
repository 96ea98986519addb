"""What a script will import, read from its source without running it: the suggestion for a warm start.

Only imports that surely happen at the start: at the top of the script and of the modules beside it. Pure, but for
reading those files.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from runtime.node.entry_points import NotWarm

_MOST_FILES = 64
_MOST_BYTES = 1_000_000
_CHANGING_CALLS = frozenset({"putenv", "unsetenv", "load_dotenv", "set_start_method", "chdir"})
_CHANGING_METHODS = frozenset({"insert", "append", "extend", "update", "setdefault", "pop", "clear", "remove"})

_CHANGE = ""
"""Among the names of imports, in order: here the script changes what later imports may read."""


@dataclass(slots=True)
class _Found:
    modules: dict[str, None] = field(default_factory=dict)
    seen: set[Path] = field(default_factory=set)
    changed_by: str | None = None


def suggested(script: Path, folder: Path) -> tuple[str, ...]:
    """Modules of installed packages that the script imports at its start, in order.

    Raises:
        NotWarm: there are none, or the script changes the environment or the search path before it imports them.
    """
    found = _Found()
    _follow(script, (script.parent, folder), found)
    if not found.modules:
        raise NotWarm("it imports no installed package at its start")
    return tuple(found.modules)


def _follow(path: Path, places: tuple[Path, ...], found: _Found) -> None:
    if path in found.seen or len(found.seen) >= _MOST_FILES:
        return
    found.seen.add(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            return
        source = path.read_bytes()
    except OSError:
        return
    for name in _read(source):
        root = name.partition(".")[0]
        if name == _CHANGE:
            found.changed_by = found.changed_by or path.name
        elif root not in sys.stdlib_module_names:
            local = _local(name, places)
            if local is not None:
                _follow(local, places, found)
            elif found.changed_by is not None:
                raise NotWarm(f"{found.changed_by} changes the environment or sys.path before it imports {root}")
            else:
                found.modules.setdefault(name)


def _local(name: str, places: tuple[Path, ...]) -> Path | None:
    """The file of a module that lies beside the script."""
    for place in places:
        root = place / name.partition(".")[0]
        if root.with_suffix(".py").is_file():
            return root.with_suffix(".py")
        if root.is_dir():
            at = place.joinpath(*name.split("."))
            return at.with_suffix(".py") if at.with_suffix(".py").is_file() else at / "__init__.py"
    return None


@lru_cache(maxsize=256)
def _read(source: bytes) -> tuple[str, ...]:
    """Names of absolute imports at the top of a file, and changes between them, in order."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names: list[str] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            names += [statement.module] if statement.level == 0 and statement.module else []
        elif any(map(_is_change, ast.walk(statement))):
            names.append(_CHANGE)  # Also in a function: it may be called before the next import.
    return tuple(names)


def _is_change(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store | ast.Del) and _is_global_state(node.value)
    if isinstance(node, ast.Assign):
        return any(map(_is_global_state, node.targets))
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute):
            is_method = called.attr in _CHANGING_METHODS and _is_global_state(called.value)
            return is_method or called.attr in _CHANGING_CALLS
        return isinstance(called, ast.Name) and called.id in _CHANGING_CALLS
    return False


def _is_global_state(node: ast.AST) -> bool:
    """`os.environ`, `environ`, `sys.path`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, node.attr) in (("os", "environ"), ("sys", "path"))
    return isinstance(node, ast.Name) and node.id == "environ"

"""Which modules Python code imports without providing for their absence, by its syntax tree. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_ABSENT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def imported(tree: ast.AST) -> dict[str, int]:
    """Top names of absolute imports, with the line of the first.

    Left out is what is tried (`try: import x` with a handler of ImportError) or for type checkers alone.
    """
    found: dict[str, int] = {}
    for name, line in _names(ast.iter_child_nodes(tree)):
        found.setdefault(name, line)
    return found


def _names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    waiting = list(nodes)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0], node.lineno
        elif isinstance(node, ast.Try) and any(map(_handles_absence, node.handlers)):
            waiting += [*node.handlers, *node.orelse, *node.finalbody]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _handles_absence(handler: ast.ExceptHandler) -> bool:
    kinds = [] if handler.type is None else [one for one in ast.walk(handler.type) if isinstance(one, ast.Name)]
    return handler.type is None or any(kind.id in _ABSENT for kind in kinds)

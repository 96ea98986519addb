"""What a Python says of source files without running them: errors and warnings of its compiler, and what they import.

A program, run by the jobs' own Python in a process of its own (`reading`): a compiler can be brought to crash or to
take minutes by text alone. So nothing of ours is imported here, and the syntax is that of Python 3.8.
"""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections import deque

CPU_S = 10
MEMORY_BYTES = 2 << 30
_ABSENT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def look(path: str, content: bytes) -> dict:  # type: ignore[type-arg]
    """`told`: [sentence, line] of each error and warning; `imports`: top name to line, of what has to be there."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compile(content, path, "exec", dont_inherit=True)
            imports = imported(ast.parse(content))
        except SyntaxError as error:
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            return {"told": [[f"Python {version} can not read it: {error.msg}", error.lineno or 1]], "imports": {}}
        except (RecursionError, MemoryError, OverflowError):
            sentence = "Python can not read it: an expression is too long or too deeply nested"
            return {"told": [[sentence, 1]], "imports": {}}
        except ValueError as error:
            return {"told": [[f"Python can not read it: {error}", 1]], "imports": {}}
    told = [
        [f"Python warns: {one.message}", one.lineno]
        for one in caught
        if issubclass(one.category, (SyntaxWarning, DeprecationWarning))
    ]
    return {"told": told, "imports": imports}


def imported(tree: ast.AST) -> dict:  # type: ignore[type-arg]
    """Top names of absolute imports, with the line of the first.

    Left out is what is tried (`try: import x` with a handler of ImportError) or for type checkers alone.
    """
    found = {}  # type: ignore[var-annotated]
    waiting = deque(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.popleft()
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name.partition(".")[0], node.lineno)
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module:
                found.setdefault(node.module.partition(".")[0], node.lineno)
        elif isinstance(node, ast.Try) and any(map(_handles_absence, node.handlers)):
            waiting.extend([*node.handlers, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.If) and _asks_for_checkers(node.test):
            waiting.extend(node.orelse)
        else:
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _handles_absence(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(one, ast.Name) and one.id in _ABSENT for one in ast.walk(handler.type))


def _asks_for_checkers(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return bool(name == "TYPE_CHECKING")


def main() -> None:
    """Reads [[path, content as latin-1], ...]; writes a line for each as soon as it was looked at."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    except (ImportError, ValueError, OSError):
        pass  # A limit that is lower already is as good.
    for path, content in json.loads(sys.stdin.buffer.read()):
        print(json.dumps(look(path, content.encode("latin-1"))), flush=True)


if __name__ == "__main__":
    main()

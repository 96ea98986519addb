"""Figures of code trials: an edit as a commit, and a state of the code as a folder."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.edits import EditRules, Workshop
from bench.figure import Figure, median_of, quartiles

N_FILES = 300
LINES = b"x = 1\n" * 100


def commit_ms(quick: bool) -> Figure:
    """One changed file as a commit on a branch, its lines counted; beside it `git commit -a` in a work tree."""
    n = 20 if quick else 60
    ours, theirs = [], []
    with _code() as (root, shop):
        worktree = root.parent / "worktree"
        _git(root, "worktree", "add", "-q", "--detach", str(worktree))
        for number in range(n):
            content = LINES + b"y = %d\n" % number
            changed = {"package0/f0.py": content}
            ours.append(_ms(lambda c=changed, t=f"t{number}": _commit(shop, c, t)))  # type: ignore[misc]
            (worktree / "package0/f0.py").write_bytes(content)
            theirs.append(_ms(lambda: _git(worktree, "commit", "-q", "-a", "-m", "m")))
    return Figure(
        id="edits.commit_ms",
        value=median_of(ours),
        unit="ms",
        control=median_of(theirs),
        n=n,
        spread=quartiles(ours),
        note=f"{N_FILES} files; control: git commit -a in a work tree, which counts no lines",
    )


def checkout_ms(quick: bool) -> Figure:
    """A new state of the code as a clean folder; beside it `git worktree add` of the same."""
    n = 15 if quick else 40
    ours, again, theirs = [], [], []
    with _code() as (root, shop):
        for number in range(n):
            state = shop.commit(
                shop.base, {"package0/f0.py": b"y = %d\n" % number}, trial=f"t{number}", message="m", parent_trial=None
            )
            ours.append(_ms(lambda s=state: shop.checkout(s)))  # type: ignore[misc]
            again.append(_ms(lambda s=state: shop.checkout(s)))  # type: ignore[misc]
            place = str(root.parent / f"worktree{number}")
            theirs.append(_ms(lambda p=place: _git(root, "worktree", "add", "-q", "--detach", p)))  # type: ignore[misc]
    return Figure(
        id="edits.checkout_ms",
        value=median_of(ours),
        unit="ms",
        control=median_of(theirs),
        n=n,
        spread=quartiles(ours),
        note=f"{N_FILES} files; control: git worktree add; one that is there, compared byte by byte: "
        f"{median_of(again):.1f} ms",
    )


@contextmanager
def _code() -> Iterator[tuple[Path, Workshop]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "code")
        for number in range(N_FILES):
            path = root / f"package{number % 10}" / f"f{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(LINES + b"z = %d\n" % number)
        _git(root, "init", "-q")
        _git(root, "add", "-A")
        _git(root, "commit", "-q", "-m", "m")
        yield root, Workshop.open(Path(folder, "home/workshops/s1"), root, EditRules(editable=("**/*.py",)))


def _commit(shop: Workshop, changed: dict[str, bytes], trial: str) -> None:
    shop.commit(shop.base, changed, trial=trial, message="m", parent_trial=None)


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def _ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000

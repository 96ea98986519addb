"""States of the code: a branch, tag or commit of the repository that a task's code is in, as a folder of its own.

A state is a work tree below the home, at one commit, that borrows the objects of the repository; the checkout, its
index and its uncommitted changes are neither read nor touched. What git ignores in the checkout is data: the state has
links to it. Git is asked without locks, prompts or hooks.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agent.command_words import command_words
from agent.task import DataSource, Task
from runtime_client.snapshot.git import ask_git

ANSWER_S = 300.0
"""For one answer of git; a checkout may be large."""
N_KEPT = 20
"""States that nothing uses and that stay all the same, those that were used last."""
KEPT_S = 2 * 86400.0
"""So long after its use a state stays in any case: a night that waits for the one before has no row yet."""
_NEVER_LINKED = frozenset({".git", "__pycache__"})


class NoState(Exception):
    """There is none of that name, or nothing could run from it; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    name: str
    """As the sweep file says it."""
    commit: str
    repository: Path
    """Top folder of the checkout."""
    below: str
    """The task's code folder, relative to it; `.` is the top itself."""


def resolved(name: str, task: Task) -> State:
    """The state that a name means now, checked to hold what the task runs.

    Raises:
        NoState: no git repository, no such name, no such folder or script in it, submodules or files of git LFS.
    """
    source = task.job.code_source
    root = Path(source.root_path).resolve() if source is not None else Path()
    if source is None or source.snapshot.value == "off":
        raise NoState(
            f"task {task.task} has job.code_source.snapshot: off, so that its trials would write over one another's "
            "code; leave that out"
        )
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None:
        raise NoState(_why_no_repository(task, root))
    repository = Path(os.fsdecode(top.strip()))
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if commit is None:
        raise NoState(f"there is no branch, tag or commit {name!r} in {repository}; list them: git branch -a, git tag")
    state = State(
        name=name,
        commit=commit.decode().strip(),
        repository=repository,
        below=os.path.relpath(root, repository.resolve()),
    )
    _check_contents(state, task, root)
    return state


def _why_no_repository(task: Task, root: Path) -> str:
    if any((folder / ".git").exists() for folder in (root, *root.parents)):
        asking = f"git -C {shlex.quote(str(root))} status"
        return f"git does not answer in {root}; see why (no git here, another owner): {asking}"
    return f"the code of task {task.task}, {root}, is in no git repository; leave matrix.code out"


def _check_contents(state: State, task: Task, root: Path) -> None:
    short = f"{state.name} ({state.commit[:12]})"
    listing = _git(state.repository, "ls-tree", "-r", "-z", "--full-tree", state.commit)
    entries = [one.partition(b"\t") for one in (listing or b"").split(b"\0") if one]
    paths = {os.fsdecode(path) for _, _, path in entries}
    prefix = "" if state.below == "." else f"{state.below}/"
    if not any(path.startswith(prefix) for path in paths):
        raise NoState(f"{short} has no folder {state.below}, in which the code of task {task.task} is")
    for word in command_words(task.job.command):
        is_script = not os.path.isabs(word) and (root / word).is_file()
        if is_script and os.path.normpath(prefix + word) not in paths and not _is_ignored(root, word):
            raise NoState(f"{short} has no {word}, which job.command of task {task.task} names")
    modules = sorted(os.fsdecode(path) for head, _, path in entries if head.startswith(b"160000"))
    if modules:
        raise NoState(f"{short} has submodules ({', '.join(modules[:3])}), which a state would be without")
    for path in sorted(path for path in paths if os.path.basename(path) == ".gitattributes"):
        if b"filter=lfs" in (_git(state.repository, "cat-file", "blob", f"{state.commit}:{path}") or b""):
            raise NoState(f"{short} keeps files in git LFS ({path}), which a state would have as pointers only")


def _is_ignored(root: Path, word: str) -> bool:
    return _git(root, "check-ignore", "--quiet", "--", word) is not None


def states_folder(home: Path) -> Path:
    return home / "states"


def placed(state: State, home: Path) -> Path:
    """The folder with that state; made where it is not there yet.

    Raises:
        NoState: it can not be made; the message says why.
    """
    digest = sha256(os.fsencode(state.repository)).hexdigest()[:8]
    folder = states_folder(home) / f"{state.commit}-{digest}"
    try:
        if not folder.exists():
            _make(state, folder)
        _link_ignored(state, folder, home)
        os.utime(folder)
    except OSError as error:
        raise NoState(f"{state.name} can not be put into {folder}: {error.strerror}; free some space there") from error
    return folder


def _make(state: State, folder: Path) -> None:
    """Whole or not at all. Raises OSError, NoState."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".making-"))
    try:
        kind = (_git(state.repository, "rev-parse", "--show-object-format") or b"sha1").decode().strip()
        common = os.fsdecode((_git(state.repository, "rev-parse", "--git-common-dir") or b".git").strip())
        objects = (state.repository / common).resolve() / "objects"
        is_made = _git(temporary, "init", "--quiet", "--template=", f"--object-format={kind}", ".") is not None
        (temporary / ".git/objects/info").mkdir(parents=True, exist_ok=True)
        (temporary / ".git/objects/info/alternates").write_bytes(os.fsencode(objects) + b"\n")
        for words in (
            ("update-ref", "--no-deref", "HEAD", state.commit),
            ("reset", "--quiet", "--hard", state.commit),
        ):
            is_made = is_made and _git(temporary, *words) is not None
        if not is_made:
            raise NoState(f"{state.name} ({state.commit[:12]}) can not be checked out of {state.repository}: git fails")
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        if folder.exists():  # another start was quicker
            return
        raise


def _link_ignored(state: State, folder: Path, home: Path) -> None:
    """What git ignores in the checkout is where it was, by links that git ignores too."""
    listing = _git(
        state.repository, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", "--full-name"
    )
    names = [os.fsdecode(one).rstrip("/") for one in (listing or b"").split(b"\0") if one]
    wanted = []
    for name in names:
        source = state.repository / name
        is_of_home = source == home or source in home.parents or home in source.parents
        if not is_of_home and os.path.basename(name) not in _NEVER_LINKED and (folder / name).parent.is_dir():
            wanted.append(name)
    if not wanted:
        return
    info = folder / ".git/info"
    info.mkdir(exist_ok=True)
    (info / "exclude").write_bytes(b"".join(b"/" + os.fsencode(name) + b"\n" for name in wanted))
    for name in wanted:
        if not os.path.lexists(folder / name):
            (folder / name).symlink_to(state.repository / name)


def data_in_state(data: tuple[DataSource, ...], state: State, folder: Path) -> tuple[DataSource, ...]:
    """Data that the repository itself has is that of the state, told by its bytes; all other stays where it is."""
    return tuple(_moved(one, state, folder) for one in data)


def _moved(source: DataSource, state: State, folder: Path) -> DataSource:
    top = state.repository.resolve()
    path = Path(source.path)
    if source.fingerprint == "label" or top not in path.resolve().parents:
        return source
    below = os.path.relpath(path.resolve(), top)
    if _git(folder, "cat-file", "-e", f"{state.commit}:{below}") is None:
        return source
    # A checkout sets the times of change anew, so only the bytes tell two states apart.
    return source.model_copy(update={"path": str(folder / below), "fingerprint": "sha256"})


def forget_unused(home: Path, in_use: Collection[Path], *, now: float) -> list[Path]:
    """Remove all but the states in use, the 20 that were used last and those of the last two days; what was removed."""
    found = [one for one in _all(home) if not any(used == one or one in used.parents for used in in_use)]
    newest_first = sorted(found, key=lambda one: one.stat().st_mtime, reverse=True)
    gone = [one for one in newest_first[N_KEPT:] if one.stat().st_mtime < now - KEPT_S]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    return gone


def _all(home: Path) -> Iterator[Path]:
    if states_folder(home).is_dir():
        yield from (one for one in states_folder(home).iterdir() if one.is_dir())


def _git(folder: Path, *words: str) -> bytes | None:
    return ask_git(folder, *words, within_s=ANSWER_S)

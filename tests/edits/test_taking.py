"""A trial's code as a branch in the user's repository: exactly the change, and nothing else touched."""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from edited_code import code, committed, git, workshop, write

from agent.edits import EditRules, Workshop
from agent.edits.taking import NotTaken, Taken, take
from agent.store.views import CodeState

pytestmark = pytest.mark.code

RULES = EditRules(editable=("**",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return committed(code(tmp_path))


def edited(shop: Workshop, changed: dict[str, bytes] | None = None) -> CodeState:
    changed = changed or {"model.py": b"a = 1\nb = 3\n", "nets.py": b"n = 1\n"}
    return shop.commit(shop.base, changed, trial="s1-t1", message="more b", parent_trial=None)


def taken(shop: Workshop, state: CodeState, branch: str = "nightlab/s1-t1") -> Taken:
    return take(shop, state, branch, message="more b\n\nIt was better.\n", before="uncommitted", at=1_800_000_000)


def untouched(root: Path) -> tuple[str, bytes, str]:
    """What must stay: status, index, head. Status is asked first, since it may refresh the index."""
    return git(root, "status", "--porcelain"), (root / ".git/index").read_bytes(), git(root, "rev-parse", "HEAD")


def test_a_branch_has_the_change_as_one_commit_on_the_users(root: Path) -> None:
    shop = workshop(root, RULES)
    state = edited(shop)
    write(root, {"train.py": "later\n", "other.py": "o\n"})
    git(root, "add", "other.py")
    before = untouched(root)
    made = taken(shop, state)
    assert untouched(root) == before
    assert made.n_uncommitted == 0
    assert git(root, "rev-parse", "nightlab/s1-t1", "nightlab/s1-t1~1").split() == [made.commit, shop.origin.commit]
    assert git(root, "rev-parse", "nightlab/s1-t1^{tree}").strip() == state.tree
    assert git(root, "log", "-1", "--format=%an|%s|%b|%ct", "nightlab/s1-t1").strip() == (
        "nightlab|more b|It was better.\n|1800000000"
    )
    git(root, "fsck", "--strict")
    assert git(root, "branch", "--format=%(refname:short)").split() == ["main", "nightlab/s1-t1"]


def test_what_was_uncommitted_is_a_commit_of_its_own(root: Path) -> None:
    write(root, {"model.py": "a = 1\nb = 2\nc = 3\n", "new.py": "n\n", "dir/deep.py": "d\n"})
    (root / "run.sh").unlink()
    shop = workshop(root, RULES)
    state = edited(shop, {"model.py": b"a = 1\nb = 9\nc = 3\n"})
    git(root, "checkout", "-q", "--", ".")
    made = taken(shop, state)
    assert made.n_uncommitted == 4
    assert git(root, "rev-parse", "nightlab/s1-t1^{tree}").strip() == state.tree
    changes = git(root, "log", "--reverse", "--format=%s", "--name-status", "main..nightlab/s1-t1").split()
    expected = "uncommitted A dir/deep.py M model.py A new.py D run.sh more b M model.py"
    assert changes == expected.split()


def test_of_code_below_the_top_only_that_changes(root: Path) -> None:
    write(root, {"a b/model.py": "x\n", "a b/ü/deep.py": "d\n"})
    committed(root)
    shop = workshop(root / "a b", RULES)
    taken(shop, edited(shop, {"model.py": b"y\n", "ü/deep.py": b"e\n"}))
    names = git(root, "-c", "core.quotePath=false", "diff", "--name-only", "main", "nightlab/s1-t1").splitlines()
    assert names == ["a b/model.py", "a b/ü/deep.py"]


def test_line_ends_and_modes_are_stored_as_the_repository_stores_them(root: Path) -> None:
    write(root, {".gitattributes": "crlf.txt text eol=crlf\n", "crlf.txt": b"a\r\nb\r\n", "raw.py": b"a\r\nb\r\n"})
    committed(root)
    shop = workshop(root, RULES)
    state = edited(shop, {"crlf.txt": b"a\r\nc\r\n", "raw.py": b"a\r\nc\r\n"})
    taken(shop, state)
    rows = git(root, "diff", "--numstat", "main", "nightlab/s1-t1").splitlines()
    assert rows == ["1\t1\tcrlf.txt", "1\t1\traw.py"]
    raw = subprocess.run(["git", "show", "nightlab/s1-t1:raw.py"], cwd=root, capture_output=True, check=True).stdout
    assert raw == b"a\r\nc\r\n"


def test_into_a_clone_without_history_and_a_linked_work_tree(root: Path, tmp_path: Path) -> None:
    write(root, {"train.py": "more\n"})
    committed(root)
    shallow = tmp_path / "shallow/code"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", str(shallow))
    linked = tmp_path / "linked/code"
    git(root, "worktree", "add", "-q", str(linked))
    for place in (shallow, linked):
        shop = workshop(place, RULES)
        state = edited(shop)
        taken(shop, state)
        assert git(place, "rev-parse", "nightlab/s1-t1^{tree}").strip() == state.tree
    git(shallow, "fsck")


def test_into_a_repository_of_the_other_kind_of_ids(tmp_path: Path) -> None:
    root = code(tmp_path)
    git(root, "init", "-q", "-b", "main", "--object-format=sha256")
    committed(root)
    shop = workshop(root, RULES)
    taken(shop, edited(shop))
    assert git(root, "show", "nightlab/s1-t1:nets.py") == "n = 1\n"


def test_a_branch_that_is_there_stays_as_it_is(root: Path) -> None:
    git(root, "branch", "nightlab/s1-t1")
    shop = workshop(root, RULES)
    state = edited(shop)
    with pytest.raises(NotTaken, match=r"there is a branch nightlab/s1-t1 .*branch -D"):
        taken(shop, state)
    assert git(root, "rev-parse", "nightlab/s1-t1") == git(root, "rev-parse", "main")
    with pytest.raises(NotTaken, match="nightlab/s1-t1/x"):
        taken(shop, state, "nightlab/s1-t1/x")
    with pytest.raises(NotTaken, match=r"'a\.\.b' is no name of a branch"):
        taken(shop, state, "a..b")


def test_where_there_is_no_commit_to_begin_at_it_says_to_take_a_patch(tmp_path: Path, root: Path) -> None:
    bare = workshop(code(tmp_path / "bare"), RULES)
    with pytest.raises(NotTaken, match="in no git repository; take the change as a patch: --patch"):
        taken(bare, edited(bare))
    new = code(tmp_path / "new")
    git(new, "init", "-q")
    shop = workshop(new, RULES)
    with pytest.raises(NotTaken, match="without commits"):
        taken(shop, edited(shop))
    shop = workshop(root, RULES)
    state = edited(shop)
    git(root, "commit", "-q", "--amend", "-m", "another")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")
    with pytest.raises(NotTaken, match=r"is not in .* any more"):
        taken(shop, state)


def test_what_only_a_filter_or_a_submodule_stores_is_refused(root: Path, tmp_path: Path) -> None:
    inner = committed(code(tmp_path / "inner"))
    write(inner, {"deep.py": "d\n"})
    committed(inner)
    git(root, "submodule", "add", "-q", str(inner), "lib")
    write(root, {".gitattributes": "model.py filter=lfs\n"})
    git(root, "commit", "-q", "-am", "more")
    shop = workshop(root, RULES)
    with pytest.raises(NotTaken, match=r"model.py is stored by filter=lfs"):
        taken(shop, edited(shop))
    with pytest.raises(NotTaken, match=r"lib/deep.py is in a submodule"):
        taken(shop, edited(shop, {"lib/deep.py": b"e\n"}))
    assert git(root, "branch", "--list", "nightlab/*") == ""


def test_of_two_who_take_at_once_under_one_name_one_does(root: Path) -> None:
    shop = workshop(root, RULES)
    states = [
        shop.commit(shop.base, {"model.py": b"b = %d\n" % n}, trial=f"s1-t{n}", message="m", parent_trial=None)
        for n in range(3)
    ]
    made: list[str] = []

    def work(state: CodeState) -> None:
        with suppress(NotTaken):
            made.append(taken(shop, state).commit)

    threads = [threading.Thread(target=work, args=(state,)) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [git(root, "rev-parse", "nightlab/s1-t1").strip()]

"""The repository of a session's edits: what it begins from, trials as commits, folders for jobs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from edited_code import FILES, RULES, code, committed, git, seen, workshop, write

from agent.edits import CodeRefused, EditRules, NotApplied, Workshop
from agent.store.views import CodeState
from runtime_client.snapshot import CodeStore, unpack

pytestmark = pytest.mark.code


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return committed(code(tmp_path))


def edited(shop: Workshop, trial: str = "s1-t1", content: bytes = b"a = 1\nb = 3\n") -> CodeState:
    return shop.commit(shop.base, {"model.py": content}, trial=trial, message="more b", parent_trial=None)


def as_snapshot(root: Path, tmp_path: Path) -> dict[str, tuple[str, bytes]]:
    """What a job with a code snapshot would have."""
    store = CodeStore(tmp_path / "store")
    snapshot = store.take(root)
    folder = tmp_path / f"job-{len(list(tmp_path.iterdir()))}"
    unpack(store.folder, snapshot.snapshot_id, folder)
    return seen(folder)


def test_a_trial_is_a_commit_of_its_own(root: Path) -> None:
    shop = workshop(root)
    state = edited(shop)
    assert (state.branch, state.files, state.added, state.removed) == ("trial/s1-t1", ("model.py",), 1, 1)
    assert (state.summary, state.parent) == ("more b", None)
    assert shop.sources(state) == {"model.py": b"a = 1\nb = 3\n"}
    assert git(shop.repository, "rev-parse", "trial/s1-t1~1").strip() == shop.base.commit
    assert git(shop.repository, "log", "-1", "--format=%an <%ae>", state.commit) == "nightlab <nightlab@localhost>\n"


def test_a_trial_can_go_on_from_another_and_is_counted_against_the_base(root: Path) -> None:
    shop = workshop(root)
    first = edited(shop)
    second = shop.commit(first, {"model.py": b"b = 3\n"}, trial="s1-t2", message="less", parent_trial="s1-t1")
    assert (second.parent, second.added, second.removed) == ("s1-t1", 1, 2)
    back = shop.commit(
        second, {"model.py": b"a = 1\nb = 2\n"}, trial="s1-t3", message="as it was", parent_trial="s1-t2"
    )
    assert (back.tree, back.files) == (shop.base.tree, ())


def test_the_same_edit_made_again_is_the_same_commit(root: Path) -> None:
    shop = workshop(root)
    assert edited(shop) == edited(workshop(root)) == edited(shop)
    other = edited(shop, content=b"a = 9\n")
    assert git(shop.repository, "rev-parse", "trial/s1-t1").strip() == other.commit


def test_a_workshop_that_is_opened_again_keeps_its_base(root: Path) -> None:
    first = workshop(root)
    write(root, {"model.py": "c = 3\n", "new.py": "x\n"})
    again = workshop(root)
    assert (again.base, again.note, again.origin) == (first.base, first.note, first.origin)


def test_the_users_repository_is_not_written_to(root: Path) -> None:
    write(root, {"model.py": "a = 2\n", "new.py": "n = 1\n"})
    git(root, "add", "new.py")
    before = {path: path.read_bytes() for path in sorted((root / ".git").rglob("*")) if path.is_file()}
    shop = workshop(root)
    shop.checkout(edited(shop))
    shop.keep_only([])
    assert before == {path: path.read_bytes() for path in sorted((root / ".git").rglob("*")) if path.is_file()}


@pytest.mark.parametrize("user_setting", ["core.autocrlf=true", "commit.gpgsign=true", "core.fsmonitor=/bin/false"])
def test_the_users_settings_change_no_byte(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user_setting: str
) -> None:
    key, _, value = user_setting.partition("=")
    settings = tmp_path / "gitconfig"
    git(root, "config", "--file", str(settings), key, value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    write(root, {"crlf.txt": b"a\r\nb\n", ".gitattributes": "*.txt text eol=crlf\n*.py filter=none ident -diff\n"})
    shop = workshop(root)
    state = edited(shop, content=b"a = 1\r\nb = 3\n")
    assert seen(shop.checkout(state)) == seen(root) | {"model.py": ("file", b"a = 1\r\nb = 3\n")}
    assert b"+b = 3" in shop.patch(state)


class TestBase:
    def test_of_a_clean_repository_is_its_commit(self, root: Path, tmp_path: Path) -> None:
        shop = workshop(root)
        assert shop.note is None
        assert shop.origin.commit == git(root, "rev-parse", "HEAD").strip()
        assert shop.base.tree == git(root, "rev-parse", "HEAD^{tree}").strip()
        assert seen(shop.checkout(shop.base)) == as_snapshot(root, tmp_path)

    def test_has_uncommitted_new_and_removed_files(self, root: Path, tmp_path: Path) -> None:
        write(root, {"model.py": "a = 2\n", "new.py": "n = 1\n"})
        (root / "run.sh").unlink()
        shop = workshop(root)
        assert shop.note == "3 uncommitted files are part of the base: model.py, new.py, run.sh"
        assert seen(shop.checkout(shop.base)) == as_snapshot(root, tmp_path)

    def test_of_a_repository_without_commits(self, tmp_path: Path) -> None:
        root = code(tmp_path)
        git(root, "init", "-q")
        shop = workshop(root)
        assert shop.note is not None
        assert "nothing is committed" in shop.note
        assert seen(shop.checkout(shop.base)) == as_snapshot(root, tmp_path)

    def test_of_a_folder_without_git(self, tmp_path: Path) -> None:
        root = code(tmp_path)
        shop = workshop(root)
        assert shop.note is not None
        assert "no git repository" in shop.note
        assert seen(shop.checkout(shop.base)) == as_snapshot(root, tmp_path)

    def test_of_a_folder_below_the_top_of_a_repository(self, root: Path, tmp_path: Path) -> None:
        write(root, {"a b/train.py": "x\n", "a b/model.py": "y\n"})
        git(root, "mv", "train.py", "moved.py")
        inner = root / "a b"
        shop = workshop(inner)
        assert shop.note == "2 uncommitted files are part of the base: model.py, train.py"
        assert seen(shop.checkout(shop.base)) == as_snapshot(inner, tmp_path)

    def test_has_the_files_of_submodules(self, root: Path, tmp_path: Path) -> None:
        inner = committed(code(tmp_path / "inner"))
        git(root, "submodule", "add", "-q", str(inner), "lib")
        committed(root)
        shop = workshop(root)
        assert "lib/model.py" in shop.paths(shop.base)
        assert seen(shop.checkout(shop.base)) == as_snapshot(root, tmp_path)

    def test_has_odd_names_and_links(self, tmp_path: Path) -> None:
        root = code(tmp_path)
        odd = {b"\xff\xfe.txt": b"1", b'q"\\\n.txt': b"2", b"sub/ tab\t.py": b"3", b"empty.py": b""}
        for name, content in odd.items():
            write(root, {os.fsdecode(name): content})
        (root / "sub/link.py").symlink_to("../model.py")
        (root / "gone").symlink_to("nothing")
        shop = workshop(root)
        assert seen(shop.checkout(shop.base)) == as_snapshot(root, tmp_path) == seen(root)

    def test_leaves_out_a_home_that_lies_in_the_code(self, root: Path) -> None:
        write(root, {"home/agent.db": "x"})
        shop = Workshop.open(root / "home/workshops/s1", root, RULES)
        assert shop.paths(shop.base) == tuple(sorted(FILES))


class TestRefused:
    def test_patterns_that_name_nothing_to_edit(self, tmp_path: Path) -> None:
        root = code(tmp_path, {**FILES, ".gitignore": "gen.py\n", "gen.py": "g\n"})
        (root / "link.py").symlink_to("model.py")
        for pattern, why in (
            ("nets/*.py", "'nets/\\*.py' names no file of the code in .*: there is none"),
            ("train.py", "all that it names is private"),
            ("gen.py", "ignored by git"),
            ("link.py", "is a symbolic link"),
        ):
            rules = EditRules(editable=("model.py", pattern), private=("train.py",))
            with pytest.raises(CodeRefused, match=why):
                workshop(root, rules)
        assert workshop(root).base  # What was refused has left nothing behind.

    @pytest.mark.parametrize("target", ["/etc/hostname", "../outside", "sub/../../outside"])
    def test_links_that_lead_out(self, tmp_path: Path, target: str) -> None:
        root = code(tmp_path)
        (root / "data").symlink_to(target)
        with pytest.raises(CodeRefused, match=r"data in .* is a link that leads out of the code .*gitignore name it"):
            workshop(root)
        write(root, {".gitignore": "data\n"})
        assert seen(workshop(root).checkout(workshop(root).base))["data"][0] == "link"

    def test_what_is_too_large(self, root: Path) -> None:
        write(root, {"big.bin": bytes(2_000_000)})
        with pytest.raises(CodeRefused, match=r"largest: big.bin \(2.0 MB\).*\.gitignore"):
            workshop(root, limit_mb=1)

    def test_no_folder_and_no_git(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(CodeRefused, match="not a folder"):
            workshop(tmp_path / "nowhere")
        root = code(tmp_path)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(CodeRefused, match="no git on this machine"):
            workshop(root)

    def test_no_workshop(self, tmp_path: Path) -> None:
        with pytest.raises(CodeRefused, match="no edited code"):
            Workshop.existing(tmp_path, RULES)

    def test_commits_of_what_may_not_be_changed(self, tmp_path: Path) -> None:
        root = code(tmp_path)
        write(root, {"net/deep.py": "d\n"})
        (root / "net/link.py").symlink_to("../model.py")
        shop = workshop(root, EditRules(editable=("model.py", "net"), max_changed_lines=3))
        for changed, why in (
            ({"train.py": b"x"}, "train.py may not be edited"),
            ({"net/link.py": b"x"}, "symbolic link"),
            ({"net/link.py/x": b"x"}, "net/link.py is a file, no folder"),
            ({"net": b"x"}, "net is a folder"),
            ({"net/new": b"x", "net/new/x": b"y"}, "net/new is a file, no folder"),
            ({"model.py": b"a = 1\nb = 2\n"}, "changes nothing"),
            ({"model.py": b"a\nb\n"}, "4 lines differ from the base, and 3 are allowed"),
        ):
            with pytest.raises(NotApplied, match=why):
                shop.commit(shop.base, changed, trial="s1-t1", message="m", parent_trial=None)
        assert git(shop.repository, "branch", "--list", "trial/*") == ""


class TestCheckout:
    def test_is_mended_before_each_use(self, root: Path) -> None:
        shop = workshop(root)
        state = edited(shop)
        folder = shop.checkout(state)
        clean = seen(folder)
        (folder / "model.py").chmod(0o644)
        (folder / "model.py").write_text("a = 1\nb = 4\n")  # As long as before.
        (folder / "run.sh").chmod(0o644)
        (folder / "train.py").unlink()
        write(folder, {"__pycache__/model.pyc": "x", "sub/deep/out.txt": "x"})
        (folder / "sub/deep").chmod(0)
        (folder / "train.py").symlink_to("/etc/hostname")
        os.mkfifo(folder / "fifo")
        assert seen(shop.checkout(state)) == clean
        assert {path.name for path in folder.iterdir()} == {*FILES, ".nightlab-all-is-code"}
        shutil.rmtree(folder)
        folder.symlink_to(root)
        assert seen(shop.checkout(state)) == clean
        assert seen(root)["model.py"] == ("file", b"a = 1\nb = 2\n")

    def test_can_be_read_by_all_and_written_by_nobody(self, root: Path) -> None:
        shop = workshop(root)
        old = os.umask(0o077)
        try:
            folder = shop.checkout(shop.base)
        finally:
            os.umask(old)
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert (modes["model.py"], modes["run.sh"], folder.stat().st_mode & 0o777) == (0o444, 0o555, 0o755)
        assert not (folder / ".git").exists()

    def test_has_no_private_file_whether_code_or_data(self, tmp_path: Path) -> None:
        files = {**FILES, ".gitignore": "data/\nbig/\n", "score.py": "s", "data/x": "1", "data/deep/test.npy": "2"}
        root = code(tmp_path, {**files, "data/deep/y": "3", "big/z": "4"})
        shop = workshop(root, EditRules(editable=("*.py",), private=("score.py", "data/**/test.npy")))
        folder = shop.checkout(shop.base)
        assert "score.py" not in shop.sources(shop.base)
        assert "score.py" not in shop.paths(shop.base)
        assert not (folder / "score.py").exists()
        assert not (folder / "data/deep/test.npy").exists()
        assert (folder / "data/deep/y").read_text() == "3"
        assert (folder / "data/x").resolve() == root / "data/x"
        assert (folder / "big").is_symlink()
        assert shop.checkout(shop.base) == folder

    def test_a_snapshot_of_it_has_all_of_it_wherever_it_lies(self, root: Path, tmp_path: Path) -> None:
        """Also below a repository that ignores it, with files that its own `.gitignore` names, and with data."""
        write(root, {".gitignore": "home/\n*.log\ndata/\n", "kept.log": "tracked", "data/x": "1"})
        git(root, "add", "-f", "kept.log", ".gitignore")
        git(root, "commit", "-q", "-m", "more")
        shop = Workshop.open(root / "home/workshops/s1", root, RULES)
        state = edited(shop)
        had = as_snapshot(shop.checkout(state), tmp_path)
        shutil.rmtree(root / "home")
        assert had == as_snapshot(root, tmp_path) | {"model.py": ("file", b"a = 1\nb = 3\n")}

    def test_of_trees_that_are_not_kept_is_removed(self, root: Path) -> None:
        shop = workshop(root)
        states = [edited(shop, f"s1-t{n}", f"a = {n}\n".encode()) for n in (5, 6, 7)]
        folders = [shop.checkout(state) for state in states]
        left = folders[0].with_name(".making-left")
        write(left, {"x/y": "z"})
        shop.keep_only([states[1].tree])
        assert [path.name for path in folders[0].parent.iterdir()] == [states[1].tree]
        assert seen(shop.checkout(states[0]))["model.py"] == ("file", b"a = 5\n")


def test_a_patch_changes_the_base_into_the_state(root: Path, tmp_path: Path) -> None:
    write(root, {"model.py": b"a\r\n\tb\nc"})
    shop = workshop(root, EditRules(editable=("*.py",)))
    changed = {"model.py": b"a\r\n\tB\nc\nd", "nets.py": b"x = 1\n"}
    state = shop.commit(shop.base, changed, trial="s1-t1", message="m", parent_trial=None)
    for number, command in enumerate((["git", "apply"], ["patch", "-s", "-p1", "--binary"])):
        copy = shutil.copytree(root, tmp_path / f"copy{number}", ignore=shutil.ignore_patterns(".git"))
        subprocess.run(command, cwd=copy, input=shop.patch(state), check=True)
        assert seen(copy) == seen(root) | {name: ("file", content) for name, content in changed.items()}
    assert shop.patch(state, state) == b""


def test_many_at_once_do_not_disturb_each_other(root: Path) -> None:
    shops = [workshop(root) for _ in range(4)]
    made: dict[int, tuple[CodeState, bytes]] = {}

    def work(number: int) -> None:
        shop = shops[number % 4]
        state = edited(shop, f"s1-t{number}", f"a = {number}\n".encode())
        shop.checkout(shop.base)
        made[number] = (state, (shop.checkout(state) / "model.py").read_bytes())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: content for number, (_, content) in made.items()} == {
        number: f"a = {number}\n".encode() for number in range(20)
    }
    assert len(git(shops[0].repository, "branch", "--list", "trial/*").splitlines()) == 20


def test_locks_that_a_killed_git_left_are_no_obstacle(root: Path) -> None:
    shop = workshop(root)
    edited(shop)
    for name in ("refs/heads/trial/s1-t1.lock", "packed-refs.lock", "gc.pid"):
        (shop.repository / name).write_text("1 here")
    assert edited(shop, content=b"a = 9\n").added == 1
    shop.keep_only([])


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from edited_code import workshop
from agent.edits import Workshop
print("imported", flush=True)
shop = workshop(Path(sys.argv[1]))
for n in range(1000):
    state = shop.commit(shop.base, {{"model.py": b"a = %d" % n}}, trial=f"s1-t{{n}}", message="m", parent_trial=None)
    shop.checkout(state)
    if n % 3 == 2:
        shop.keep_only([])
    print(n, flush=True)
"""


@pytest.mark.kills
def test_a_workshop_opens_and_works_after_any_kill(root: Path, tmp_path: Path) -> None:
    script = KILLED.format(tests=str(Path(__file__).parent))
    n_lines = 0
    for number in range(20):
        if number < 8:
            shutil.rmtree(tmp_path / "home", ignore_errors=True)  # So that it is made while it is killed.
        command = [sys.executable, "-c", script, str(root)]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            children[0].wait(timeout=0.02 * number)
        for child in children:
            child.kill()
        n_lines += sum(len(child.communicate()[0].splitlines()) for child in children)
        shop = workshop(root)
        state = edited(shop, content=f"a = {number}\n".encode() + b"k\n")
        assert seen(shop.checkout(state)) == seen(root) | {"model.py": ("file", f"a = {number}\nk\n".encode())}
        git(shop.repository, "fsck", "--strict", "--no-dangling")
    assert n_lines > 0
    shop.keep_only([])
    assert list((tmp_path / "home/workshops/s1/trees").iterdir()) == []

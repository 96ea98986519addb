"""Candidates: honest ones are answered, hostile and broken ones are ended with a reason; real processes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from runtime_client import landlock
from runtime_client.scoring import Candidate, CandidateFailed, NotConfined, NotUsable, calls

HOSTILE = Path(__file__).with_name("hostile.py")
pytestmark = pytest.mark.skipif(
    landlock.abi() < 1 or os.uname().machine not in calls.NUMBERS, reason="candidates need Landlock"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "code"
    made.mkdir()
    shutil.copy(HOSTILE, made / "model.py")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "test.npy").write_bytes(b"the answers")
    (made / "linked").symlink_to(tmp_path / "private" / "test.npy")
    return made


@pytest.fixture
def candidate(folder: Path) -> Iterator[Candidate]:
    with Candidate(folder, "model") as started:
        yield started


def test_a_candidate_answers_arrays_and_plain_values(candidate: Candidate) -> None:
    inputs = numpy.arange(12.0, dtype="f4").reshape(3, 4)
    found = candidate.call("double", inputs, shape=(3, None))
    assert found.dtype == numpy.float32
    assert (found == 2 * inputs).all()
    given = {"text": "ä", "list": [1, None, True, 2.5], "empty": numpy.zeros((0, 3), dtype="?")}
    found = candidate.call("same", given)
    assert (found["text"], found["list"], found["empty"].shape) == ("ä", [1, None, True, 2.5], (0, 3))


def test_no_attempt_of_a_candidate_succeeds(candidate: Candidate, tmp_path: Path) -> None:
    secret = tmp_path / "private" / "test.npy"
    told = candidate.call("tried", str(secret), os.getpid())
    assert len(told) == 23
    refused = {f"errno {number}" for number in (errno.EACCES, errno.EPERM)}
    assert {name: how for name, how in told.items() if how not in refused} == {}
    assert secret.read_bytes() == b"the answers"


def test_without_landlock_the_files_of_the_scorer_are_within_reach(folder: Path, tmp_path: Path) -> None:
    """Shows that it is Landlock which keeps them away, and that such a candidate is told from others."""
    with Candidate(folder, "model", level="process") as candidate:
        told = candidate.call("tried", str(tmp_path / "private" / "test.npy"), os.getpid())
        assert candidate.layers == ("seccomp", "rlimit")
    assert told["read a private file"] == told["read it through a link in its own folder"] == "escaped"
    assert told["open a network socket"] == told["start a process"] == f"errno {errno.EPERM}"


def test_what_honest_models_do_is_allowed(folder: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.write_text("learned")
    with Candidate(folder, "model", readable=[weights]) as candidate:
        assert candidate.call("allowed", str(weights)) == ["thread", "scratch", "learned", True, True]
        assert candidate.layers == ("landlock", "seccomp", "rlimit")


def test_a_candidate_has_no_token_of_the_scorer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with Candidate(folder, "model") as candidate:
        found = candidate.call("environment")
    assert "MLFLOW_TRACKING_TOKEN" not in found
    assert found["OMP_NUM_THREADS"] == "1"


def test_much_printing_holds_nobody_up(candidate: Candidate) -> None:
    assert candidate.call("print_much") == 1


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("hang", (), "took longer than it may"),
        ("leave", (), "ended with exit code 3 before leave was done; it printed:\n  | imported\n  | leaving"),
        ("exit_politely", (), "SystemExit: done"),
        ("crash", (), "was ended by SIGSEGV"),
        ("answer_an_object", (), "TypeError: object can not be passed"),
        ("absent", (), "has no attribute 'absent'"),
        ("nan", (), "NaN or infinite"),
        ("same", (numpy.array([1.0, numpy.inf]),), "NaN or infinite"),
        ("say", (b"no message at all".hex(),), "it is no message"),
        ("announce", (2**40,), f"it has {2**40 + 2} bytes"),
        ("flood", ([1100, 1000],), "bytes, and 1000000 are allowed"),
    ],
)
def test_a_broken_candidate_is_ended_with_the_reason(
    folder: Path, name: str, arguments: tuple[object, ...], told: str
) -> None:
    with Candidate(folder, "model", answer_bytes=1_000_000) as candidate:
        timeout_s = 0.3 if name == "hang" else None
        with pytest.raises(CandidateFailed) as failed:
            candidate.call(name, *arguments, timeout_s=timeout_s)
        assert told in str(failed.value)
        with pytest.raises(CandidateFailed, match="has failed before"):
            candidate.call("same", 1)


def test_an_answer_of_another_shape_is_refused(candidate: Candidate) -> None:
    with pytest.raises(CandidateFailed, match=r"an array of shape \(2, 3\), and an array of shape \(any, 4\)"):
        candidate.call("same", numpy.zeros((2, 3)), shape=(None, 4))


def test_a_number_where_an_array_was_asked_for_is_refused(candidate: Candidate) -> None:
    with pytest.raises(CandidateFailed, match=r"answered int, and an array of shape \(3\)"):
        candidate.call("same", 3, shape=(3,))


def test_what_was_said_without_being_asked_ends_a_candidate(candidate: Candidate) -> None:
    def asked_twice() -> None:
        candidate.call("say_more")
        candidate.call("same", 1)

    with pytest.raises(CandidateFailed, match=r"can not be used|said more"):
        asked_twice()


@pytest.mark.parametrize("way", ["raise Exception", "print"])
def test_no_line_of_an_error_is_one_of_the_scorer(tmp_path: Path, way: str) -> None:
    """Printed metrics are lines of JSON, say: those of a candidate are marked, in the middle of a traceback too."""
    (tmp_path / "model.py").write_text(f'import os\n{way}(\'\\n{{"loss": 0.0}}\\r{{"loss": 1.0}}\')\nos._exit(1)\n')
    with pytest.raises(CandidateFailed) as failed, Candidate(tmp_path, "model"):
        pass
    assert '{"loss": 0.0}' in str(failed.value)
    assert not any(line.startswith("{") for line in str(failed.value).splitlines())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise RuntimeError('not today')", "RuntimeError: not today"),
        ("import absent", "No module named 'absent'"),
        ("(", "SyntaxError"),
        ("import os; os._exit(0)", "ended with exit code 0 before the import of model"),
    ],
)
def test_a_module_that_can_not_be_imported_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "model.py").write_text(text)
    with pytest.raises(CandidateFailed, match=told), Candidate(tmp_path, "model"):
        pass


def test_what_lies_beside_the_module_is_not_imported_by_the_machinery(tmp_path: Path) -> None:
    """Nor does the working folder of the scorer count: a planted file is the candidate's own trouble."""
    for name in ("numpy", "sitecustomize", "json"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('planted')")
    (tmp_path / "planted.pth").write_text("import planted_by_pth\n")
    (tmp_path / "model.py").write_text("import beside\ndef f(x): return beside.plus_one(x)\n")
    (tmp_path / "beside.py").write_text("def plus_one(x): return x + 1\n")
    with Candidate(tmp_path, "model") as candidate:
        assert candidate.call("f", numpy.ones(2)).tolist() == [2.0, 2.0]


def test_nothing_of_a_candidate_is_left(folder: Path) -> None:
    with Candidate(folder, "model") as candidate:
        scratch = Path(candidate.call("environment")["TMPDIR"])
        pid = int(candidate.call("pid"))
        assert scratch.is_dir()
    assert not scratch.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_where_there_is_no_landlock_a_candidate_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    with pytest.raises(NotConfined, match=r"Linux 5\.13"), Candidate(folder, "model"):
        pass


def test_a_link_that_training_left_is_not_opened_for_a_candidate(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLAB_AFTER_FOLDERS", str(tmp_path / "left"))
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "work").symlink_to(tmp_path / "private")
    with pytest.raises(NotUsable, match="leads elsewhere"), Candidate(folder, "model", readable=[folder / "linked"]):
        pass
    inside = tmp_path / "left" / "work" / "test.npy"
    with pytest.raises(NotUsable, match="work leads elsewhere"), Candidate(folder, "model", readable=[inside]):
        pass
    with pytest.raises(ValueError, match="is not there"), Candidate(folder, "model", readable=[tmp_path / "absent"]):
        pass

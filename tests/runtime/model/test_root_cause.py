"""Which rank's failure ended a gang."""

from __future__ import annotations

from importlib.resources import files

import pytest

from runtime.model.evidence import parse_patterns
from runtime.model.outcome import ExitFacts, classify
from runtime.model.root_cause import RankTail, find_cause
from runtime.model.states import ExitReason as Reason

PATTERNS = parse_patterns(files("runtime.model").joinpath("exit_patterns.toml").read_text(encoding="utf-8"))
WATCHDOG = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12) ran for 600000 milliseconds"
CLOSED = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1234"


def traceback(error: str, *, rank: int | None = None, line: int = 33) -> str:
    prefix = "" if rank is None else f"[rank{rank}]: "
    lines = [
        "Traceback (most recent call last):",
        f'  File "/home/user/train.py", line {line}, in step',
        "    x",
        error,
    ]
    return "".join(f"{prefix}{text}\n" for text in lines)


def summary(rank: int, exit_code: int) -> str:
    """As torchrun prints it."""
    return (
        traceback("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", line=900)
        + "============================================================\ntrain.py FAILED\nFailures:\n[1]:\n"
        + "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 41)\nRoot Cause (first observed failure):\n[0]:\n"
        + f"  time      : 2026-01-01_10:00:00\n  host      : box\n  rank      : {rank} (local_rank: {rank})\n"
        + f"  exitcode  : {exit_code} (pid: 42)\n  error_file: <N/A>\n"
    )


def ending(log: str, *ranks: RankTail, n_ranks: int = 4, exit_code: int = 1) -> tuple[Reason, str | None]:
    facts = ExitFacts(
        stop=None, exit_code=exit_code, log_tail=log, rank_tails=ranks, n_ranks=n_ranks, patterns=PATTERNS
    )
    found = classify(facts)
    return found.reason, found.evidence


def test_the_rank_that_failed_is_the_cause_and_not_the_one_that_spoke_first() -> None:
    log = f"[rank0]: {WATCHDOG}\n" + traceback(CLOSED, rank=1) + traceback("ValueError: bad batch", rank=3)
    assert ending(log) == (Reason.CODE_ERROR, "rank 3: ValueError: bad batch (train.py:33)")


def test_a_known_failure_of_one_rank_comes_before_the_cascades_of_the_others() -> None:
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
    log = traceback(CLOSED, rank=0) + traceback(error, rank=2) + traceback(CLOSED, rank=1)
    assert ending(log) == (Reason.OUT_OF_MEMORY_DEVICE, f"rank 2: {error} (train.py:33)")


def test_the_rank_that_went_without_a_word_is_the_cause() -> None:
    log = "[rank2]: step 7\n" + "".join(f"[rank{rank}]: {WATCHDOG}\n" for rank in (0, 1, 3))
    reason, evidence = ending(log)
    assert reason is Reason.COLLECTIVE_FAILURE
    assert evidence is not None
    assert evidence.startswith("rank 2: it went without a word")
    assert evidence.endswith("step 7")


def test_a_rank_that_never_said_anything_is_missed() -> None:
    log = "".join(f"[rank{rank}]: {WATCHDOG}\n" for rank in (0, 1, 2))
    assert (ending(log)[1] or "").startswith("rank 3: it went without a word")


def test_cascades_alone_are_the_cause_when_nobody_is_missing() -> None:
    log = "".join(f"[rank{rank}]: {WATCHDOG}\n" for rank in range(4))
    assert ending(log) == (Reason.COLLECTIVE_FAILURE, f"rank 0: {WATCHDOG}")


def test_a_launcher_that_saw_who_was_killed_first_is_believed() -> None:
    log = traceback(CLOSED, rank=0) + traceback(CLOSED, rank=2) + summary(1, -9)
    assert ending(log) == (Reason.KILLED_BY_SIGNAL, "rank 1: killed by signal 9 (SIGKILL), the first to go")


def test_a_launcher_that_saw_who_failed_first_decides_between_two_failures() -> None:
    log = traceback("KeyError: 'a'", rank=0) + traceback("ValueError: late", rank=2) + summary(2, 1)
    assert ending(log) == (Reason.CODE_ERROR, "rank 2: ValueError: late (train.py:33)")


def test_the_failure_below_a_launchers_own_exception_is_the_cause() -> None:
    log = traceback("ModuleNotFoundError: No module named 'apex'") + summary(0, 1)
    assert ending(log, n_ranks=1) == (Reason.IMPORT_ERROR, "ModuleNotFoundError: No module named 'apex' (train.py:33)")


def test_files_of_ranks_are_read_and_their_copies_in_the_common_output_are_not() -> None:
    log = f"[default1]:{WATCHDOG}\n[default0]:fine\n"
    ranks = (RankTail(rank=0, text=traceback("ValueError: bad")), RankTail(rank=1, text=f"{WATCHDOG}\n"))
    assert ending(log, *ranks, n_ranks=2) == (Reason.CODE_ERROR, "rank 0: ValueError: bad (train.py:33)")


def test_a_lost_connection_of_a_job_without_ranks_is_its_own_error() -> None:
    log = traceback("BrokenPipeError: [Errno 32] Broken pipe")
    assert ending(log, n_ranks=1) == (Reason.CODE_ERROR, "BrokenPipeError: [Errno 32] Broken pipe (train.py:33)")


def test_memory_is_told_by_the_kernel_whatever_the_survivors_say() -> None:
    log = traceback(CLOSED, rank=0) + summary(1, -9)
    facts = ExitFacts(stop=None, exit_code=1, log_tail=log, n_ranks=2, patterns=PATTERNS, oom_killed=True)
    assert classify(facts).reason is Reason.OUT_OF_MEMORY_HOST
    assert classify(facts).evidence == "rank 1: the kernel killed it for memory"


@pytest.mark.parametrize("log", ["", "\n", "Root Cause (first observed failure):\n", "[rank99999999999]: x"])
def test_garbage_names_no_cause(log: str) -> None:
    assert find_cause(log, (), PATTERNS, n_ranks=2) is None


def test_an_exception_that_was_raised_from_another_is_known_by_that_one() -> None:
    log = (
        traceback("FileNotFoundError: [Errno 2] No such file or directory: 'a'")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + traceback("RuntimeError: could not load the data", line=40)
    )
    assert ending(log, n_ranks=1)[0] is Reason.MISSING_FILE


def test_a_failure_within_a_fallback_is_not_known_by_what_it_fell_back_from() -> None:
    log = (
        traceback("ImportError: no apex")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("ValueError: bad batch", line=40)
    )
    assert ending(log, n_ranks=1) == (Reason.CODE_ERROR, "ValueError: bad batch (train.py:40)")


def test_a_raise_in_the_function_that_tried_tells_of_what_it_tried() -> None:
    log = (
        traceback("PermissionError: [Errno 13] Permission denied: 'a'")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("RuntimeError: could not load the data", line=40).replace(
            "    x\n", "    raise RuntimeError(why)\n"
        )
    )
    assert ending(log, n_ranks=1)[0] is Reason.PERMISSION_DENIED


def test_the_place_is_in_the_code_of_the_job_and_not_in_a_library() -> None:
    log = traceback("KeyError: 'label'").replace(
        "KeyError",
        '  File "/env/lib/python3.11/site-packages/pandas/core/indexes/base.py", line 3823, in get\n    x\nKeyError',
    )
    assert ending(log, n_ranks=1)[1] == "KeyError: 'label' (train.py:33)"

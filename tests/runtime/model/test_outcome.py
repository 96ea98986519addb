"""How an ending is named, and what becomes of the job."""

from __future__ import annotations

from importlib.resources import files

import pytest
from core_language import job

from runtime.model.errors import BadPayload
from runtime.model.events import Then
from runtime.model.evidence import MAX_LINE, ExitPattern, find_pattern, last_line, parse_patterns
from runtime.model.nouns import Attempt, Job, StopOrder
from runtime.model.outcome import (
    Ending,
    ExitFacts,
    classify,
    classify_lost,
    classify_unlaunched,
    disposition,
)
from runtime.model.states import FAILURE_CLASSES, FailureClass, JobState, OnTimeout, StopCause, failure_class
from runtime.model.states import AttemptOutcome as Outcome
from runtime.model.states import ExitReason as Reason
from runtime.scheduling.policy import Policy

PATTERNS = parse_patterns(files("runtime.model").joinpath("exit_patterns.toml").read_text(encoding="utf-8"))
TRACEBACK = """epoch 1
Traceback (most recent call last):
  File "/home/user/train.py", line 3, in <module>
    main()
  File "/home/user/train.py", line 2, in main
    raise {error}
{error}
"""


def named(stop: StopCause | None, exit_code: int | None, **facts: object) -> tuple[Outcome, Reason]:
    ending = classify(ExitFacts(stop=stop, exit_code=exit_code, patterns=PATTERNS, **facts))  # type: ignore[arg-type]
    return ending.outcome, ending.reason


@pytest.mark.parametrize(
    ("stop", "exit_code", "outcome", "reason"),
    [
        (None, 0, Outcome.SUCCEEDED, Reason.COMPLETED),
        (None, 1, Outcome.FAILED, Reason.CODE_ERROR),
        (None, 75, Outcome.PREEMPTED, Reason.REQUEUE_ASKED),
        (None, 93, Outcome.FAILED, Reason.DO_NOT_REQUEUE),
        (None, 127, Outcome.FAILED, Reason.BAD_COMMAND),
        (None, -9, Outcome.FAILED, Reason.KILLED_BY_SIGNAL),
        (None, 137, Outcome.FAILED, Reason.KILLED_BY_SIGNAL),
        (None, -11, Outcome.FAILED, Reason.KILLED_BY_SIGNAL),
        (None, 128, Outcome.FAILED, Reason.CODE_ERROR),
        (None, 255, Outcome.FAILED, Reason.CODE_ERROR),
        (None, None, Outcome.NODE_LOST, Reason.SUPERVISOR_LOST),
        (StopCause.PREEMPT, 0, Outcome.SUCCEEDED, Reason.COMPLETED),
        (StopCause.PREEMPT, 75, Outcome.PREEMPTED, Reason.PREEMPTED),
        (StopCause.PREEMPT, 1, Outcome.PREEMPTED, Reason.PREEMPTED),
        (StopCause.PREEMPT, -9, Outcome.PREEMPTED, Reason.PREEMPTED),
        (StopCause.PREEMPT, -15, Outcome.PREEMPTED, Reason.PREEMPTED),
        (StopCause.PREEMPT, None, Outcome.PREEMPTED, Reason.PREEMPTED),
        (StopCause.PREEMPT, 93, Outcome.PREEMPTED, Reason.DO_NOT_REQUEUE),
        (StopCause.SHUTDOWN, 0, Outcome.SUCCEEDED, Reason.COMPLETED),
        (StopCause.SHUTDOWN, 75, Outcome.PREEMPTED, Reason.PREEMPTED),
        (StopCause.SHUTDOWN, -9, Outcome.PREEMPTED, Reason.PREEMPTED),
        (StopCause.CANCEL, 0, Outcome.CANCELLED, Reason.CANCELLED),
        (StopCause.CANCEL, 1, Outcome.CANCELLED, Reason.CANCELLED),
        (StopCause.CANCEL, None, Outcome.CANCELLED, Reason.CANCELLED),
        (StopCause.TIMEOUT, -9, Outcome.TIMED_OUT, Reason.RUN_TIMEOUT),
        (StopCause.TIMEOUT, 0, Outcome.TIMED_OUT, Reason.RUN_TIMEOUT),
        (StopCause.HANG, -9, Outcome.FAILED, Reason.HUNG),
        (StopCause.RENEW, 75, Outcome.TIMED_OUT, Reason.RUN_TIMEOUT),
        (StopCause.RENEW, -9, Outcome.TIMED_OUT, Reason.RUN_TIMEOUT),
        (StopCause.RENEW, 0, Outcome.SUCCEEDED, Reason.COMPLETED),
        (StopCause.RENEW, 93, Outcome.PREEMPTED, Reason.DO_NOT_REQUEUE),
    ],
)
def test_what_the_server_knows_comes_before_the_exit_code(
    stop: StopCause | None, exit_code: int | None, outcome: Outcome, reason: Reason
) -> None:
    assert named(stop, exit_code) == (outcome, reason)


def test_exit_0_without_a_required_metric_has_not_succeeded() -> None:
    facts = ExitFacts(stop=None, exit_code=0, missing_metrics=("loss", "acc"))
    expected = Ending(Outcome.FAILED, Reason.CRITERIA_NOT_MET, "required metrics never logged: loss, acc")
    assert classify(facts) == expected


def test_exit_0_with_a_metric_that_is_not_finite_has_not_succeeded() -> None:
    assert named(None, 0, non_finite_metrics=("loss",)) == (Outcome.FAILED, Reason.NON_FINITE_METRIC)


def test_a_bad_exit_with_a_metric_that_is_not_finite_is_explained_by_it() -> None:
    assert named(None, 1, non_finite_metrics=("loss",)) == (Outcome.FAILED, Reason.NON_FINITE_METRIC)


def test_a_known_line_explains_more_than_a_metric_that_is_not_finite() -> None:
    log = TRACEBACK.format(error="OSError: [Errno 28] No space left on device")
    assert named(None, 1, non_finite_metrics=("loss",), log_tail=log) == (Outcome.FAILED, Reason.DISK_FULL)


def test_exit_0_without_the_criteria_after_a_notice_is_preempted() -> None:
    assert named(StopCause.PREEMPT, 0, missing_metrics=("loss",)) == (Outcome.PREEMPTED, Reason.PREEMPTED)


def test_the_kernel_knows_what_was_killed_for_memory() -> None:
    assert named(None, -9, oom_killed=True) == (Outcome.FAILED, Reason.OUT_OF_MEMORY_HOST)


def test_a_lost_supervisor_is_no_failure_of_the_job() -> None:
    assert named(None, 1, supervisor_lost=True) == (Outcome.NODE_LOST, Reason.SUPERVISOR_LOST)


def test_a_restart_of_the_machine_is_no_fault_of_the_job() -> None:
    facts = {"supervisor_lost": True, "node_restarted": True}
    assert named(None, None, **facts) == (Outcome.NODE_LOST, Reason.NODE_LOST)
    assert named(StopCause.PREEMPT, None, **facts) == (Outcome.PREEMPTED, Reason.PREEMPTED)
    again = disposition(job("j1"), Outcome.NODE_LOST, Reason.NODE_LOST, now_s=5.0, policy=Policy())
    assert (again.then, again.not_before_s) == (Then.REQUEUE, 0.0)


def test_evidence_is_kept_when_a_preempted_attempt_ends_badly() -> None:
    log = TRACEBACK.format(error="ValueError: bad")
    ending = classify(ExitFacts(stop=StopCause.PREEMPT, exit_code=1, log_tail=log, patterns=PATTERNS))
    assert ending.evidence == "ValueError: bad (train.py:2)"
    killed = classify(ExitFacts(stop=StopCause.PREEMPT, exit_code=-9, was_killed=True))
    assert killed.evidence == "did not leave within its grace and was killed"


def test_a_signal_is_named() -> None:
    ending = classify(ExitFacts(stop=None, exit_code=139))
    assert ending.evidence == "killed by signal 11 (SIGSEGV)"


def test_a_silent_failure_says_its_exit_code() -> None:
    assert classify(ExitFacts(stop=None, exit_code=3)).evidence == "exit code 3, no output"


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        (None, Outcome.LAUNCH_FAILED),
        (StopCause.CANCEL, Outcome.CANCELLED),
        (StopCause.PREEMPT, Outcome.PREEMPTED),
        (StopCause.SHUTDOWN, Outcome.PREEMPTED),
    ],
)
def test_what_never_ran_is_named_by_the_stop_order_first(stop: StopCause | None, outcome: Outcome) -> None:
    assert classify_unlaunched(stop, Reason.BAD_PYTHON, "no such file").outcome is outcome


@pytest.mark.parametrize(("stop", "outcome"), [(None, Outcome.NODE_LOST), (StopCause.CANCEL, Outcome.CANCELLED)])
def test_what_ran_on_a_lost_node_is_named_by_a_cancel_first(stop: StopCause | None, outcome: Outcome) -> None:
    assert classify_lost(stop, "node a is silent").outcome is outcome


EXAMPLES = [(pattern, line) for pattern in PATTERNS for line in pattern.examples]
COUNTEREXAMPLES = [(pattern, line) for pattern in PATTERNS for line in pattern.counterexamples]


@pytest.mark.parametrize(("pattern", "line"), EXAMPLES, ids=[line[:40] for _, line in EXAMPLES])
def test_every_example_is_recognized_by_its_own_pattern(pattern: ExitPattern, line: str) -> None:
    log = "starting\nTraceback (most recent call last):\n  File x\n" + line + "\n"
    found = find_pattern(log, PATTERNS)
    assert found is not None
    assert (found.reason, found.line) == (pattern.reason, line)


@pytest.mark.parametrize(("pattern", "line"), COUNTEREXAMPLES, ids=[line[:40] for _, line in COUNTEREXAMPLES])
def test_no_counterexample_is_recognized(pattern: ExitPattern, line: str) -> None:
    assert find_pattern(line, (pattern,)) is None


def test_every_pattern_has_examples() -> None:
    assert all(pattern.examples for pattern in PATTERNS)


def test_an_exception_that_was_survived_is_no_evidence() -> None:
    log = "ModuleNotFoundError: No module named 'apex'\n" + TRACEBACK.format(error="ValueError: bad")
    assert find_pattern(log, PATTERNS) is None
    assert last_line(log) == "ValueError: bad"


def test_the_last_traceback_of_a_chain_counts() -> None:
    log = TRACEBACK.format(error="KeyError: 1") + "\nDuring handling of the above exception:\n\n"
    log += TRACEBACK.format(error="FileNotFoundError: [Errno 2] No such file or directory: 'x'")
    found = find_pattern(log, PATTERNS)
    assert found is not None
    assert found.reason is Reason.MISSING_FILE


def test_prefixes_of_ranks_colors_and_progress_bars_are_stripped() -> None:
    log = "".join(f"[rank3]: {line}\n" for line in TRACEBACK.format(error="KeyError: 'a'").splitlines())
    assert last_line(log) == "KeyError: 'a'"
    assert last_line("\x1b[31mno luck\x1b[0m\n\n") == "no luck"
    assert last_line("10%\r20%\r30%\n") == "30%"
    assert last_line("one\r\n") == "one"
    assert last_line("\n \n") is None


def test_a_long_line_is_cut() -> None:
    line = last_line("x" * 10_000)
    assert line is not None
    assert len(line) == MAX_LINE


@pytest.mark.parametrize("log", ["\x00\xff garbage", "Traceback (most recent call last):", "�" * 100])
def test_garbage_is_no_trouble(log: str) -> None:
    assert classify(ExitFacts(stop=None, exit_code=1, log_tail=log, patterns=PATTERNS)).reason is Reason.CODE_ERROR


@pytest.mark.parametrize(
    "text",
    [
        "pattern = [",
        "x = 1",
        '[[pattern]]\nreason = "tired"\nregex = "x"',
        '[[pattern]]\nreason = "hung"\nregex = "("',
        '[[pattern]]\nreason = "hung"',
        '[[pattern]]\nreason = "hung"\nregex = "x"\ncolor = "red"',
    ],
)
def test_a_bad_pattern_file_is_refused(text: str) -> None:
    with pytest.raises(BadPayload, match="pattern"):
        parse_patterns(text)


def then_of(found: Job, outcome: Outcome, reason: Reason) -> tuple[Then, JobState | None, Reason]:
    what = disposition(found, outcome, reason, now_s=100.0, policy=Policy())
    return what.then, what.end_state, what.exit_reason


@pytest.mark.parametrize(
    ("outcome", "reason", "then", "end_state"),
    [
        (Outcome.SUCCEEDED, Reason.COMPLETED, Then.END, JobState.SUCCEEDED),
        (Outcome.CANCELLED, Reason.CANCELLED, Then.END, JobState.CANCELLED),
        (Outcome.PREEMPTED, Reason.PREEMPTED, Then.REQUEUE, None),
        (Outcome.PREEMPTED, Reason.REQUEUE_ASKED, Then.REQUEUE, None),
        (Outcome.PREEMPTED, Reason.DO_NOT_REQUEUE, Then.END, JobState.FAILED),
        (Outcome.NODE_LOST, Reason.NODE_LOST, Then.REQUEUE, None),
        (Outcome.NODE_LOST, Reason.SUPERVISOR_LOST, Then.REQUEUE, None),
        (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT, Then.END, JobState.FAILED),
        (Outcome.FAILED, Reason.CODE_ERROR, Then.RETRY, None),
        (Outcome.FAILED, Reason.HUNG, Then.RETRY, None),
        (Outcome.FAILED, Reason.DO_NOT_REQUEUE, Then.END, JobState.FAILED),
        (Outcome.FAILED, Reason.BAD_COMMAND, Then.END, JobState.FAILED),
        (Outcome.LAUNCH_FAILED, Reason.LAUNCHER_UNAVAILABLE, Then.REQUEUE, None),
        (Outcome.LAUNCH_FAILED, Reason.DISK_FULL, Then.REQUEUE, None),
        (Outcome.LAUNCH_FAILED, Reason.DEVICE_UNAVAILABLE, Then.REQUEUE, None),
        (Outcome.FAILED, Reason.DISK_FULL, Then.RETRY, None),
        (Outcome.FAILED, Reason.DEVICE_LOST, Then.REQUEUE, None),
        (Outcome.FAILED, Reason.DEVICE_FAULT, Then.RETRY, None),
        (Outcome.LAUNCH_FAILED, Reason.BAD_PYTHON, Then.END, JobState.FAILED),
    ],
)
def test_what_becomes_of_a_job(outcome: Outcome, reason: Reason, then: Then, end_state: JobState | None) -> None:
    assert then_of(job("j1", max_retries=1), outcome, reason) == (then, end_state, reason)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_leads_somewhere(outcome: Outcome) -> None:
    then, end_state, _ = then_of(job("j1"), outcome, Reason.CODE_ERROR)
    assert (then is Then.END) == (end_state is not None)


def test_retries_run_out() -> None:
    spent = job("j1", max_retries=2).but(n_retries=2)
    assert then_of(spent, Outcome.FAILED, Reason.CODE_ERROR) == (Then.END, JobState.FAILED, Reason.CODE_ERROR)


@pytest.mark.parametrize(("n_retries", "wait_s"), [(0, 5.0), (1, 10.0), (3, 40.0), (10, 300.0), (900, 300.0)])
def test_the_back_off_doubles_up_to_a_limit(n_retries: int, wait_s: float) -> None:
    found = job("j1", max_retries=1000).but(n_retries=n_retries)
    what = disposition(found, Outcome.FAILED, Reason.CODE_ERROR, now_s=100.0, policy=Policy())
    assert what.not_before_s == 100.0 + wait_s


def test_a_preempted_job_does_not_back_off() -> None:
    what = disposition(job("j1"), Outcome.PREEMPTED, Reason.PREEMPTED, now_s=100.0, policy=Policy())
    assert what.not_before_s == 0.0


@pytest.mark.parametrize("reason", [Reason.REQUEUE_ASKED, Reason.SUPERVISOR_LOST])
def test_the_third_requeue_in_a_row_without_a_checkpoint_ends_the_job(reason: Reason) -> None:
    outcome = Outcome.PREEMPTED if reason is Reason.REQUEUE_ASKED else Outcome.NODE_LOST
    second, third = job("j1").but(n_stalled=1), job("j1").but(n_stalled=2)
    assert then_of(second, outcome, reason)[0] is Then.REQUEUE
    assert then_of(third, outcome, reason) == (Then.END, JobState.FAILED, Reason.NO_CHECKPOINT_PROGRESS)


def test_a_newer_checkpoint_keeps_a_job_that_asks_for_requeues_alive() -> None:
    moving = job("j1").but(n_stalled=2, attempt_start_checkpoint=3, checkpoint_step=4)
    assert then_of(moving, Outcome.PREEMPTED, Reason.REQUEUE_ASKED)[0] is Then.REQUEUE


def at_its_limit(**changes: object) -> Job:
    stop = StopOrder(cause=StopCause.RENEW, reason="", beneficiary=None, ordered_at_s=60.0, grace_s=30.0)
    attempt = Attempt(number=1, placements=(), ordered_at_s=0.0, started_at_s=0.0, stop=stop)
    return job("j1", timeout_s=60.0, on_timeout=OnTimeout.RESUME).but(attempt=attempt, **changes)


def test_an_attempt_at_its_time_limit_is_requeued_when_its_job_resumes() -> None:
    assert then_of(at_its_limit(), Outcome.TIMED_OUT, Reason.RUN_TIMEOUT) == (Then.REQUEUE, None, Reason.RUN_TIMEOUT)


def test_resuming_for_the_third_time_without_a_checkpoint_ends_the_job() -> None:
    found = at_its_limit(n_stalled=2)
    assert then_of(found, Outcome.TIMED_OUT, Reason.RUN_TIMEOUT) == (
        Then.END,
        JobState.FAILED,
        Reason.NO_CHECKPOINT_PROGRESS,
    )
    assert then_of(found.but(checkpoint_step=1), Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)[0] is Then.REQUEUE


@pytest.mark.parametrize("outcome", [Outcome.TIMED_OUT, Outcome.PREEMPTED, Outcome.NODE_LOST, Outcome.FAILED])
def test_no_attempt_follows_when_the_running_time_is_used_up(outcome: Outcome) -> None:
    found = at_its_limit(max_total_s=90.0, max_retries=3)
    assert then_of(found, outcome, Reason.PREEMPTED) == (Then.END, JobState.FAILED, Reason.RUN_TIMEOUT)
    assert then_of(found.but(max_total_s=101.0), outcome, Reason.PREEMPTED)[0] is not Then.END


def test_preemption_and_node_loss_are_not_bounded() -> None:
    often = job("j1").but(n_stalled=2, n_preemptions=50)
    assert then_of(often, Outcome.PREEMPTED, Reason.PREEMPTED)[0] is Then.REQUEUE
    assert then_of(often, Outcome.NODE_LOST, Reason.NODE_LOST)[0] is Then.REQUEUE


def test_every_reason_is_charged_to_somebody() -> None:
    assert set(FAILURE_CLASSES) == set(Reason)


def test_a_failure_of_the_machine_is_free_and_bounded() -> None:
    rules = Policy(max_infrastructure_retries=2)
    met = [job("j1").but(n_infrastructure=n) for n in (0, 1, 2)]
    what = [disposition(one, Outcome.FAILED, Reason.DEVICE_LOST, now_s=100.0, policy=rules) for one in met]
    assert [one.then for one in what] == [Then.REQUEUE, Then.REQUEUE, Then.END]
    assert [one.not_before_s for one in what[:2]] == [105.0, 110.0]
    assert what[2].exit_reason is Reason.DEVICE_LOST


def test_a_newer_checkpoint_lets_failures_of_the_machine_be_counted_anew() -> None:
    moving = job("j1").but(n_infrastructure=99, attempt_start_checkpoint=3, checkpoint_step=4)
    assert then_of(moving, Outcome.FAILED, Reason.DEVICE_LOST)[0] is Then.REQUEUE


@pytest.mark.parametrize("line", [line for _, line in EXAMPLES])
def test_a_line_alone_never_blames_the_machine(line: str) -> None:
    log = "Traceback (most recent call last):\n" + line
    ending = classify(ExitFacts(stop=None, exit_code=1, log_tail=log, patterns=PATTERNS))
    assert failure_class(ending.outcome, ending.reason) is FailureClass.OWN


def test_what_the_device_reports_comes_before_what_the_log_says() -> None:
    log = TRACEBACK.format(error="RuntimeError: CUDA error: an illegal memory access was encountered")
    facts = ExitFacts(stop=None, exit_code=1, log_tail=log, patterns=PATTERNS, device_fault="XID 79 on GPU 0")
    assert classify(facts) == Ending(Outcome.FAILED, Reason.DEVICE_LOST, "XID 79 on GPU 0")


def test_a_job_that_met_its_criteria_is_not_failed_by_its_device() -> None:
    assert named(None, 0, device_fault="XID 79 on GPU 0") == (Outcome.SUCCEEDED, Reason.COMPLETED)


def test_a_hang_is_explained_by_what_was_seen() -> None:
    ending = classify(ExitFacts(stop=StopCause.HANG, exit_code=-9, stop_reason="no sign of life for 700 s"))
    assert ending.evidence == "no sign of life for 700 s"

"""The rules of the failure doctor, on a corpus of outputs of real failures."""

from __future__ import annotations

import time

import pytest
from failure_cases import Case, cases, evidence_of

from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.doctor.evidence import Evidence
from agent.doctor.rules import KNOWN, READ, VAGUE, diagnose, signal_number
from agent.doctor.signs import Sign, parse_signs, signs
from runtime.model.states import ExitReason
from runtime_client.models import LogEnd, LogErrors, LogException, LogTraceback

CASES = cases()
RIGHT_AT_LEAST = 0.95


def wrong(some: list[Case]) -> list[str]:
    found = [(case, diagnose(case.evidence)) for case in some]
    return [f"{case.name}: {said.failure} {said.evidence}" for case, said in found if said.failure is not case.failure]


def test_the_class_is_right_in_the_corpus() -> None:
    told = [case for case in CASES if case.failure is not FailureClass.UNKNOWN]
    assert len(told) >= 60
    missed = wrong(told)
    assert len(missed) <= (1 - RIGHT_AT_LEAST) * len(told), "\n".join(missed)


def test_what_can_not_be_told_is_not_told() -> None:
    unknown = [case for case in CASES if case.failure is FailureClass.UNKNOWN]
    assert len(unknown) >= 10
    assert wrong(unknown) == []


def test_every_diagnosis_says_a_cause_and_what_to_change() -> None:
    for case in CASES:
        said = diagnose(case.evidence)
        assert said.cause, case.name
        assert said.suggestion, case.name
        assert "{" not in said.cause + said.suggestion, case.name
        assert said.evidence or case.failure is FailureClass.UNKNOWN, case.name
        assert all(len(line) <= 320 and "\n" not in line for line in said.evidence), case.name


@pytest.mark.parametrize("sign", signs().in_order, ids=lambda sign: f"{sign.failure}-{sign.regex.pattern[:20]}")
def test_an_example_of_a_sign_is_found_by_it_first(sign: Sign) -> None:
    assert sign.examples
    for example in sign.examples:
        first = next(s for s in signs().in_order if s.where is sign.where and s.regex.search(example))
        assert first is sign, f"{example}: {first.regex.pattern}"
    assert not any(sign.regex.search(line) for line in sign.counterexamples)


def test_signs_without_words_for_a_class_are_refused() -> None:
    with pytest.raises(ValueError, match="says nothing of"):
        parse_signs('sign = []\n[class.code]\ncause = "x"\nsuggestion = "y"\n')


def test_every_exit_reason_has_its_place() -> None:
    own = {"code_error", "do_not_requeue", "killed_by_signal", "completed"}
    assert {*KNOWN, *READ, *VAGUE, *own} == {reason.value for reason in ExitReason}


def said(output: str, exit_code: int = 1, **given: str) -> Diagnosis:
    return diagnose(evidence_of(output, {"exit_code": str(exit_code), **given}))


def trace(error: str, line: int = 3) -> str:
    return f'Traceback (most recent call last):\n  File "/home/user/train.py", line {line}, in main\n    x\n{error}\n'


DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def test_the_root_of_a_chain_comes_first_in_the_evidence() -> None:
    found = said(trace("KeyError: 'lr'") + DIRECT + trace("ValueError: bad config", 9))
    assert found.failure is FailureClass.CODE
    assert found.evidence == ("KeyError: 'lr' (train.py:3)", "ValueError: bad config (train.py:9)")
    assert "KeyError at train.py:3" in found.cause


def test_a_failure_of_a_fallback_is_its_own_and_not_of_what_it_fell_back_from() -> None:
    found = said(trace("ModuleNotFoundError: No module named 'apex'") + HANDLING + trace("KeyError: 'lr'", 9))
    assert found.failure is FailureClass.CODE
    assert found.evidence == ("KeyError: 'lr' (train.py:9)",)


def test_the_rank_that_failed_is_named() -> None:
    closed = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1"
    lines = [f"[rank0]: {line}" for line in trace(closed).splitlines()]
    lines += [f"[rank1]: {line}" for line in trace("AssertionError: empty batch").splitlines()]
    found = said("\n".join(lines), n_ranks="2")
    assert (found.failure, found.evidence[0]) == (
        FailureClass.ASSERTION,
        "rank 1: AssertionError: empty batch (train.py:3)",
    )


def test_a_missing_module_is_named_in_the_cause() -> None:
    assert "flash_attn" in said(trace("ModuleNotFoundError: No module named 'flash_attn'")).cause


def test_words_in_braces_from_the_output_are_not_filled_in() -> None:
    found = said(trace("FileNotFoundError: [Errno 2] No such file or directory: '{path}{0}{cause.x}'"))
    assert found.failure is FailureClass.MISSING_FILE
    assert "{path}{0}{cause.x} is not there" in found.cause


def test_a_kill_far_below_the_memory_there_is_was_not_for_memory() -> None:
    few = said("step 1\n", -9, peak_memory_mb="900", memory_mb="16000")
    most = said("step 1\n", -9, peak_memory_mb="15500", memory_mb="16000")
    assert (few.failure, few.is_sure) == (FailureClass.KILLED, False)
    assert (most.failure, most.is_sure) == (FailureClass.OUT_OF_MEMORY, False)


def test_a_nan_metric_makes_a_value_error_suspicious_and_a_key_error_not() -> None:
    metrics = '{"loss": null}'
    assert said(trace("ValueError: bad"), metrics=metrics).failure is FailureClass.DIVERGED
    assert said(trace("KeyError: 'x'"), metrics=metrics).failure is FailureClass.CODE


@pytest.mark.parametrize(
    ("code", "number"), [(-9, 9), (137, 9), (139, 11), (1, None), (0, None), (255, None), (128, None)]
)
def test_signals_are_read_from_both_ways_to_tell_them(code: int, number: int | None) -> None:
    assert signal_number(code) == number


@pytest.mark.parametrize(
    ("metrics", "failure"),
    [({"loss": None}, FailureClass.DIVERGED), ({"other": 1.0}, FailureClass.NO_METRIC), ({}, FailureClass.NO_METRIC)],
)
def test_an_end_without_a_value_is_told_by_its_metrics(metrics: dict[str, float | None], failure: FailureClass) -> None:
    found = diagnose(Evidence(exit_reason="completed", exit_code=0, wanted_metric="loss", metrics=metrics))
    assert found.failure is failure


def test_an_earlier_server_that_tells_no_ends_is_enough_for_what_the_runtime_read() -> None:
    line = "rank 3: RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x32 and 16x10) (train.py:33)"
    assert diagnose(Evidence(exit_reason="code_error", exit_code=1, line=line)).failure is FailureClass.SHAPE
    known = Evidence(exit_reason="out_of_memory_device", exit_code=1, line="CUDA out of memory")
    assert diagnose(known).failure is FailureClass.OUT_OF_DEVICE_MEMORY


def test_hostile_ends_take_no_time() -> None:
    long = "a" * 500
    end = LogEnd(
        rank=None,
        tracebacks=(
            LogTraceback(
                exceptions=(LogException(text=f"ValueError: {long}", more=(long,) * 4),) * 50, n_lines_after=0
            ),
        ),
        lines=tuple(f"{long[:-3]}{n:03}" for n in range(40)),
    )
    output = LogErrors(job_id="j1", attempt=1, lines=(), is_whole=True, ends=(end,) * 64)
    started = time.process_time()
    found = diagnose(Evidence(exit_reason="code_error", exit_code=1, line=f"ValueError: {long}", output=output))
    assert found.failure is FailureClass.CODE
    assert time.process_time() - started < 1.0

"""Output over the API: streams of ranks, and error lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import Lab, key, lab, spec

from runtime.server.error_lines import group_errors, is_error
from runtime_client.errors import NotFound, Rejected


def running(here: Lab) -> str:
    job = here.client.submit(spec(compute={"num_accelerators": 2}))
    here.in_state(job.job_id, "running")
    return job.job_id


def test_each_rank_has_a_stream_of_its_own(tmp_path: Path) -> None:
    with lab(tmp_path) as here:
        job_id = running(here)
        here.do(lambda: here.engine.print(key(job_id), "common\n"))
        here.do(lambda: here.engine.print(key(job_id), "of rank one\n", stream="1"))
        assert here.client.log_streams(job_id).streams == ("main", "1")
        assert here.client.logs(job_id).text == "common\n"
        chunk = here.client.logs(job_id, stream="1")
        assert (chunk.stream, chunk.text, chunk.next_offset) == ("1", "of rank one\n", 12)
        assert here.client.logs(job_id, stream="0").text == ""


def test_a_stream_that_can_not_be_is_refused(tmp_path: Path) -> None:
    with lab(tmp_path) as here:
        job_id = running(here)
        with pytest.raises(Rejected):
            here.client.logs(job_id, stream="../secret")
        with pytest.raises(NotFound):
            here.client.log_errors(job_id, attempt=7)


def test_errors_of_all_ranks_are_counted_together(tmp_path: Path) -> None:
    with lab(tmp_path) as here:
        job_id = running(here)
        here.do(lambda: here.engine.print(key(job_id), "[rank0]: fine\n[rank1]: RuntimeError: peer 0 is gone\n"))
        here.do(lambda: here.engine.print(key(job_id), "ValueError: bad 1\nValueError: bad 2\n", stream="0"))
        found = here.client.log_errors(job_id)
        assert [(line.text, line.count, line.ranks) for line in found.lines] == [
            ("RuntimeError: peer 0 is gone", 1, (1,)),
            ("ValueError: bad 1", 2, (0,)),
        ]
        assert found.is_whole


def test_a_rank_with_an_output_of_its_own_is_not_counted_twice() -> None:
    groups = group_errors([(None, "[default3]:KeyError: 1\n[default4]:KeyError: 1\n"), (3, "KeyError: 1\n")])
    assert [(group.count, sorted(group.ranks)) for group in groups] == [(2, [3, 4])]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("RuntimeError: x", True),
        ("CUDA error: out of memory", True),
        ("Segmentation fault (core dumped)", True),
        ("E1202 FATAL: gave up", True),
        ("0 errors", False),
        ("val_error: 0.25", False),
        ("error=0.3", False),
        ('  File "/a/error.py", line 3', False),
        ("epoch 3 loss 0.1", False),
    ],
)
def test_error_lines_are_told_from_metrics(line: str, expected: bool) -> None:
    assert is_error(line) is expected


def test_the_end_of_each_rank_is_told_with_what_its_exception_was_raised_for(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "/u/a.py", line 7, in f\n    x\n'
    text = f"{trace}KeyError: 1\n\nThe above exception was the direct cause of the following exception:\n\n{trace}"
    with lab(tmp_path) as here:
        job_id = running(here)
        here.do(lambda: here.engine.print(key(job_id), "\x1b[31mcommon\x1b[0m\n"))
        here.do(lambda: here.engine.print(key(job_id), f"{text}ValueError: bad\nbye\n", stream="1"))
        common, rank = here.client.log_errors(job_id).ends
        assert (common.rank, common.lines, common.tracebacks) == (None, ("common",), ())
        (told,) = rank.tracebacks
        assert [(each.text, each.place) for each in told.exceptions] == [
            ("KeyError: 1", "a.py:7"),
            ("ValueError: bad", "a.py:7"),
        ]
        assert (rank.rank, told.n_lines_after) == (1, 1)


def test_no_more_is_read_of_an_output_than_is_asked_for(tmp_path: Path) -> None:
    with lab(tmp_path) as here:
        job_id = running(here)
        here.do(lambda: here.engine.print(key(job_id), "ValueError: early\n" + "x" * 500 + "\nValueError: late\n"))
        found = here.client.log_errors(job_id, limit=200)
        assert [line.text for line in found.lines] == ["ValueError: late"]
        assert not found.is_whole
        with pytest.raises(Rejected):
            here.client.log_errors(job_id, limit=2**40)


def test_binary_noise_and_a_line_without_end_have_an_end_too(tmp_path: Path) -> None:
    with lab(tmp_path) as here:
        job_id = running(here)
        here.do(lambda: here.engine.print(key(job_id), "\x00\x07\ufffd" * 1000 + "y" * 2_000_000))
        (common,) = here.client.log_errors(job_id).ends
        assert len(common.lines) == 1
        assert len(common.lines[0]) == 500

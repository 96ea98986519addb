"""Metrics from printed lines, JSON lines and TensorBoard files, read while they grow."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from runtime.node.metric_sources import LONGEST_LINE, Reader, SourceFailed, read_to_end, readers
from runtime_client.models import JobSpec, JsonLines, Sandbox, StdoutPattern


def reader(source: StdoutPattern | JsonLines, folder: Path) -> Reader:
    spec = JobSpec(experiment_name="x", command="t", metric_sources=(source,))
    return readers(spec, log=folder / "out.log", folder=folder, job_id="j1")[0]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def values(points: list[tuple[str, float, int, float]]) -> list[tuple[str, float, int]]:
    return [(name, value, step) for name, value, step, _ in points]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "out.log"


def test_one_group_per_metric_with_a_step(log: Path) -> None:
    source = reader(StdoutPattern(pattern=r"epoch (?P<step>\d+): loss=(?P<loss>\S+) acc=(?P<acc>\S+)"), log.parent)
    append(log, b"epoch 3: loss=0.5, acc=91%\nnothing here\nepoch 4: loss=nan acc=inf\n")
    found = values(source.read())
    assert found[:2] == [("loss", 0.5, 3), ("acc", 91.0, 3)]
    assert (found[2][0], math.isnan(found[2][1]), found[2][2]) == ("loss", True, 4)
    assert found[3] == ("acc", math.inf, 4)


def test_name_and_value_groups_count_steps_by_themselves(log: Path) -> None:
    source = reader(StdoutPattern(pattern=r"(?P<name>\w+)=(?P<value>[-\d.e]+)"), log.parent)
    append(log, b"a=1 b=2\na=3\n")
    assert values(source.read()) == [("a", 1.0, 0), ("b", 2.0, 0), ("a", 3.0, 1)]
    append(log, b"a=-4e-1\n")
    assert values(source.read()) == [("a", -0.4, 2)]


def test_half_a_line_waits_for_its_end(log: Path) -> None:
    source = reader(StdoutPattern(pattern=r"loss (?P<loss>\S+)"), log.parent)
    append(log, b"loss 0.1")
    assert source.read() == []
    append(log, b"25\n")
    assert values(source.read()) == [("loss", 0.125, 0)]


def test_at_the_end_a_last_line_without_newline_counts(log: Path) -> None:
    source = reader(StdoutPattern(pattern=r"loss (?P<loss>\S+)"), log.parent)
    append(log, b"loss 1\nloss 0.1")
    assert values(read_to_end(source)) == [("loss", 1.0, 0), ("loss", 0.1, 1)]
    assert read_to_end(source) == []


def test_garbage_and_words_are_no_metrics(log: Path) -> None:
    source = reader(StdoutPattern(pattern=r"loss (?P<loss>\S+)"), log.parent)
    append(log, bytes(range(256)) * 50 + b"\nloss high\nloss 1_0\nloss \xff\nloss 2\n")
    assert values(source.read()) == [("loss", 2.0, 0)]


def test_only_the_beginning_of_a_long_line_is_looked_at(log: Path) -> None:
    source = reader(StdoutPattern(pattern=r"loss (?P<loss>\S+)"), log.parent)
    append(log, b"loss 1" + b" " * LONGEST_LINE + b"loss 2\n" + b"y" * 3_000_000 + b"\nloss 3\n")
    assert values(read_to_end(source)) == [("loss", 1.0, 0), ("loss", 3.0, 1)]


def test_a_pattern_that_would_hang_is_given_up(log: Path) -> None:
    source = reader(StdoutPattern(pattern=r"(?P<loss>(a+)+)$"), log.parent)
    append(log, b"a" * 60 + b"b\n")
    began = time.process_time()
    with pytest.raises(SourceFailed, match="took too long"):
        source.read()
    assert time.process_time() - began < 5


@pytest.mark.parametrize("pattern", ["loss", "(", r"(?P<step>\d+)", r"(?P<name>\w+)", r"(?P<value>\d+) (?P<loss>\d)"])
def test_patterns_without_a_metric_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="metric pattern"):
        StdoutPattern(pattern=pattern)


def test_json_lines_give_their_numbers(log: Path) -> None:
    source = reader(JsonLines(), log.parent)
    records: list[dict[str, Any]] = [
        {"step": 4, "loss": 0.5, "lr": 1, "ok": True, "note": "x", "nested": {"a": 1}, "list": [1]},
        {"epoch": 5, "loss": float("nan")},
        {"loss": 2},
        {"step": "six", "loss": 10**400, "acc": 1.5},
    ]
    append(log, b'plain text\n{"broken": \n[1]\n{"a": 1} trailing\n')
    append(log, b"".join(json.dumps(record).encode() + b"\n" for record in records))
    found = values(source.read())
    assert found[:2] == [("loss", 0.5, 4), ("lr", 1.0, 4)]
    assert (found[2][0], math.isnan(found[2][1]), found[2][2]) == ("loss", True, 5)
    assert found[3:] == [("loss", 2.0, 6), ("acc", 1.5, 0)]


def test_deeply_nested_json_is_skipped(log: Path) -> None:
    source = reader(JsonLines(), log.parent)
    append(log, b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"\n" + b'{"loss": 1}\n')
    assert values(source.read()) == [("loss", 1.0, 0)]


def test_a_file_of_an_earlier_attempt_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m-j1.jsonl"
    append(path, b'{"loss": 9}\n')
    source = reader(JsonLines(path="m-{job_id}.jsonl"), tmp_path)
    source.skip_existing()
    append(path, b'{"loss": 1}\n')
    assert values(source.read()) == [("loss", 1.0, 0)]


def test_a_file_that_was_written_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    append(path, b'{"loss": 9, "filler": "xxxxxxxxxxxxxxxx"}\n')
    source = reader(JsonLines(path="m.jsonl"), tmp_path)
    source.read()
    path.write_bytes(b'{"loss": 1}\n')
    assert values(source.read()) == [("loss", 1.0, 1)]


def test_a_successor_goes_on_where_the_reader_was(log: Path) -> None:
    first = reader(JsonLines(), log.parent)
    append(log, b'{"loss": 1}\n{"loss": 2}\n{"lo')
    first.read()
    saved = json.loads(json.dumps(first.save()))
    second = reader(JsonLines(), log.parent)
    second.load(saved)
    append(log, b'ss": 3}\n')
    assert values(second.read()) == [("loss", 3.0, 2)]


def test_missing_files_and_folders_in_their_place_yield_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    assert reader(JsonLines(path="none.jsonl"), tmp_path).read() == []
    assert reader(JsonLines(path="folder.jsonl"), tmp_path).read() == []


def _sealed(source: JsonLines, folder: Path) -> Reader:
    spec = JobSpec(experiment_name="e", command="true", metric_sources=(source,), sandbox=Sandbox.SEALED)
    return readers(spec, log=folder / "out.log", folder=folder, job_id="j1")[0]


@pytest.mark.parametrize("link", ["file", "folder"])
def test_a_sealed_job_gets_nothing_read_through_a_link_of_its_own(tmp_path: Path, link: str) -> None:
    secret, own = tmp_path / "secret", tmp_path / "own"
    secret.mkdir()
    own.mkdir()
    (secret / "m.jsonl").write_text('{"key": 42.0}\n')
    if link == "file":
        (own / "m.jsonl").symlink_to(secret / "m.jsonl")
        source = JsonLines(kind="json_lines", path="m.jsonl")
    else:
        (own / "deep").symlink_to(secret)
        source = JsonLines(kind="json_lines", path="deep/m.jsonl")
    assert _sealed(source, own).read() == []


def test_a_sealed_job_s_own_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "m.jsonl").write_text('{"loss": 0.5}\n')
    reader = _sealed(JsonLines(kind="json_lines", path="deep/m.jsonl"), tmp_path)
    assert [(name, value) for name, value, _, _ in reader.read()] == [("loss", 0.5)]

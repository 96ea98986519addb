"""TensorBoard event files, against a real writer of them."""

from __future__ import annotations

import math
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.proto.tensor_pb2 import TensorProto

from runtime.node.event_files import NotAnEventFile, scalars, whole_records
from runtime.node.metric_sources import Point, Reader, readers
from runtime_client.models import JobSpec, TensorBoardFiles


def reader(folder: Path, path: str = "runs") -> Reader:
    spec = JobSpec(experiment_name="x", command="t", metric_sources=(TensorBoardFiles(path=path),))
    return readers(spec, log=folder / "out.log", folder=folder, job_id="j1")[0]


def event_file(folder: Path) -> Path:
    (path,) = folder.rglob("*tfevents*")
    return path


def read(source: Reader, writer: SummaryWriter, n: int) -> list[Point]:
    """The next points, once there are n: the writer writes from a thread of its own."""
    found: list[Point] = []
    end = time.monotonic() + 20
    while len(found) < n:
        assert time.monotonic() < end, found
        writer.flush()
        found += source.read(is_final=True)
    return found


def test_reads_what_tensorboardx_writes_as_it_grows(tmp_path: Path) -> None:
    source = reader(tmp_path, "runs/{job_id}")
    with SummaryWriter(str(tmp_path / "runs" / "j1" / "deep")) as writer:
        writer.add_scalar("loss/train", 0.5, 1, walltime=1000.5)
        writer.add_scalar("loss/train", float("nan"), 2)
        writer.add_histogram("weights", [1.0, 2.0, 3.0], 2)
        writer.add_text("note", "hello", 2)
        first = read(source, writer, 2)
        assert first[0] == ("loss/train", 0.5, 1, 1000.5)
        assert (len(first), math.isnan(first[1][1])) == (2, True)
        writer.add_scalar("acc", 0.25, -3)
        assert [point[:3] for point in read(source, writer, 1)] == [("acc", 0.25, -3)]


def test_torn_records_wait_and_no_byte_boundary_matters(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "real")) as writer:
        for step in range(3):
            writer.add_scalar("loss", step / 2, step)
    data = event_file(tmp_path / "real").read_bytes()
    (tmp_path / "runs").mkdir()
    copy = tmp_path / "runs" / "events.out.tfevents.1"
    copy.touch()
    source = reader(tmp_path)
    found = []
    for byte in data:
        with copy.open("ab") as file:
            file.write(bytes([byte]))
        found += source.read()
    assert [point[:3] for point in found] == [("loss", step / 2, step) for step in range(3)]


def test_records_longer_than_one_read_are_passed_over(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "runs")) as writer:
        writer.add_text("essay", "x" * 3_000_000, 1)
        writer.add_scalar("loss", 1.0, 7)
    source = reader(tmp_path)
    assert [p[:3] for p in source.read() + source.read() + source.read()] == [("loss", 1.0, 7)]


def test_files_of_an_earlier_attempt_are_not_read_again(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "runs" / "a")) as writer:
        writer.add_scalar("loss", 9.0, 1)
    source = reader(tmp_path)
    source.skip_existing()
    with SummaryWriter(str(tmp_path / "runs" / "b")) as writer:
        writer.add_scalar("loss", 1.0, 2)
    assert [point[:3] for point in source.read()] == [("loss", 1.0, 2)]


def test_garbage_files_yield_nothing_and_do_no_harm(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "runs")) as writer:
        writer.add_scalar("loss", 1.0, 2)
    (tmp_path / "runs" / "other.tfevents.2").write_bytes(b"\x00" * 100_000)
    source = reader(tmp_path)
    assert [point[:3] for point in source.read()] == [("loss", 1.0, 2)]
    assert source.read() == []


@pytest.mark.parametrize(
    ("tensor", "value"),
    [
        (TensorProto(dtype="DT_FLOAT", float_val=[1.5]), 1.5),
        (TensorProto(dtype="DT_DOUBLE", double_val=[2.5]), 2.5),
        (TensorProto(dtype="DT_FLOAT", tensor_content=struct.pack("<f", 3.5)), 3.5),
        (TensorProto(dtype="DT_DOUBLE", tensor_content=struct.pack("<d", 4.5)), 4.5),
        (TensorProto(dtype="DT_INT64", int64_val=[-6]), -6.0),
    ],
)
def test_scalars_in_tensors_count(tensor: TensorProto, value: float) -> None:
    event = Event(wall_time=9.0, step=4, summary=Summary(value=[Summary.Value(tag="t", tensor=tensor)]))
    (found,) = scalars(event.SerializeToString())
    assert (found.tag, found.value, found.step, found.wall_time_s) == ("t", value, 4, 9.0)


def test_tensors_of_several_elements_are_no_scalars() -> None:
    tensor = TensorProto(dtype="DT_FLOAT", float_val=[1.5, 2.5])
    event = Event(summary=Summary(value=[Summary.Value(tag="t", tensor=tensor)]))
    assert scalars(event.SerializeToString()) == []


@given(st.binary(max_size=200))
def test_any_bytes_as_an_event_are_survived(data: bytes) -> None:
    for found in scalars(data):
        assert isinstance(found.value, float)


@given(st.binary(min_size=12, max_size=200))
def test_any_bytes_as_a_file_are_refused_or_left(data: bytes) -> None:
    try:
        records, n_bytes = whole_records(data)
    except NotAnEventFile:
        return
    assert sum(map(len, records)) <= n_bytes <= len(data)

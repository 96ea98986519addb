"""The output of an attempt on disk: bounded, read in pieces, told apart by rank."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.node import output, records
from runtime.node.metric_sources import readers
from runtime_client.models import JobSpec, JsonLines

CAP = 1024 * 1024


def lines(first: int, n: int) -> bytes:
    return b"".join(b"line %09d\n" % number for number in range(first, first + n))


def grown(path: Path, n_lines: int) -> None:
    """Written as a command does, trimmed as the supervisor does."""
    done = 0
    while done < n_lines:
        with path.open("ab") as file:
            file.write(lines(done, 10_000))
        done += 10_000
        output.trim(str(path), CAP)


def whole(path: Path) -> tuple[bytes, int]:
    """All that can be read, and how much was cut."""
    content, offset, n_cut = b"", 0, 0
    while True:
        piece = output.read_piece(str(path), offset, 100_000)
        content, n_cut = content + piece.content, n_cut + piece.n_cut
        if not piece.content:
            return content, n_cut
        offset = piece.start + len(piece.content)


def test_a_long_output_keeps_its_head_and_its_tail_and_says_how_much_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    grown(log, 1_000_000)
    content, n_cut = whole(log)
    assert log.stat().st_blocks * 512 <= CAP + 10_000 * 15
    assert content.startswith(lines(0, 1000))
    assert content.endswith(lines(999_000, 1000))
    assert CAP // 4 < len(content) <= CAP + 10_000 * 15
    assert 0 <= log.stat().st_size - len(content) - n_cut < 100  # the torn line behind the cut


def test_what_follows_a_cut_begins_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    grown(log, 200_000)
    piece = output.read_piece(str(log), CAP // 2, 15)
    assert piece.n_cut > 0
    assert piece.content.startswith(b"line ")


def test_a_short_output_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    log.write_bytes(lines(0, 1000) + b"and no newline")
    output.trim(str(log), CAP)
    assert whole(log) == (lines(0, 1000) + b"and no newline", 0)


def test_offsets_of_what_stays_are_not_changed_by_a_cut(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    grown(log, 200_000)
    with log.open("ab") as file:
        file.write(b"later")
    assert output.read_piece(str(log), 200_000 * 15, 100) == (200_000 * 15, b"later", 200_000 * 15 + 5, 0)


def test_metrics_are_read_behind_a_cut(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    grown(log, 200_000)
    with log.open("ab") as file:
        file.write(b'{"step": 7, "loss": 0.5}\n')
    spec = JobSpec(experiment_name="x", command="true", metric_sources=(JsonLines(),))
    (reader,) = readers(spec, log=log, folder=tmp_path, job_id="j1")
    points = [point[:3] for _ in range(5) for point in reader.read()]
    assert points == [("loss", 0.5, 7)]


def test_metrics_are_read_behind_the_prefix_of_a_rank(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    log.write_bytes(b'[default0]:{"step": 7, "loss": 0.5}\n')
    spec = JobSpec(experiment_name="x", command="true", metric_sources=(JsonLines(),))
    (reader,) = readers(spec, log=log, folder=tmp_path, job_id="j1")
    assert [point[:3] for point in reader.read()] == [("loss", 0.5, 7)]


def test_ranks_are_found_by_name_and_in_the_folders_of_torchrun(tmp_path: Path) -> None:
    ranks = tmp_path / output.RANKS
    for name in ("rank_0.log", "rank1.txt", "rank_1.err.log", "notes.md"):
        ranks.mkdir(exist_ok=True)
        (ranks / name).write_text(name)
    for path in ("none_x/attempt_0/2/stdout.log", "none_x/attempt_1/2/stdout.log", "none_x/attempt_1/2/stderr.log"):
        (ranks / path).parent.mkdir(parents=True, exist_ok=True)
        (ranks / path).write_text(path)
    found = {name: Path(path).relative_to(tmp_path).as_posix() for name, path in output.streams(str(tmp_path)).items()}
    assert found == {
        "main": records.LOG,
        "0": "ranks/rank_0.log",
        "1": "ranks/rank1.txt",
        "1.err": "ranks/rank_1.err.log",
        "2": "ranks/none_x/attempt_1/2/stdout.log",
        "2.err": "ranks/none_x/attempt_1/2/stderr.log",
    }


def test_a_folder_of_ranks_that_the_job_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "rank_0.log").write_bytes(b"x" * 3 * CAP)
    (tmp_path / output.RANKS).symlink_to(tmp_path / "elsewhere")
    output.Keeper(str(tmp_path), CAP).look(1.0, 5.0)
    assert set(output.streams(str(tmp_path))) == {"main"}
    assert (tmp_path / "elsewhere" / "rank_0.log").stat().st_blocks * 512 >= 3 * CAP


def test_the_keeper_looks_soon_while_much_is_written_and_seldom_when_nothing_is(tmp_path: Path) -> None:
    keeper = output.Keeper(str(tmp_path), CAP)
    log = tmp_path / records.LOG
    quiet = [keeper.look(1.0, 5.0) for _ in range(10)]
    log.write_bytes(b"x" * 10 * CAP)
    assert quiet[-1] == 5.0
    assert keeper.look(1.0, 5.0) < 0.1
    assert log.stat().st_blocks * 512 <= CAP


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_what_the_job_puts_in_place_of_its_output_is_left_alone(tmp_path: Path, make: object) -> None:
    path = str(tmp_path / records.LOG)
    make(path)  # type: ignore[operator]
    assert output.trim(path, CAP) in (0, os.lstat(path).st_size)
    with pytest.raises(FileNotFoundError):
        output.read_piece(path, 0, 10)


def test_a_folder_of_rank_logs_that_became_a_link_is_neither_read_nor_trimmed(tmp_path: Path) -> None:
    attempt, outside = tmp_path / "attempt", tmp_path / "outside"
    (attempt / output.RANKS).mkdir(parents=True)
    outside.mkdir()
    secret = outside / "0.log"
    secret.write_bytes(b"x" * (4 * CAP))
    (attempt / output.RANKS / "deep").symlink_to(outside)
    path = str(attempt / output.RANKS / "deep" / "0.log")
    assert output.trim(path, CAP, folder=str(attempt)) == 0
    assert secret.stat().st_blocks * 512 >= 4 * CAP
    with pytest.raises(FileNotFoundError):
        output.read_piece(path, 0, 10, folder=str(attempt))

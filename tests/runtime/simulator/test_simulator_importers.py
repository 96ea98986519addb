"""Traces of five kinds become jobs; what is wrong with a file is said with the line."""

from __future__ import annotations

import gzip
from dataclasses import asdict
from pathlib import Path

import pytest
from scenarios import COSTS, DATA, trace_job

from runtime.model.codec import encode_recorded
from runtime.model.events import Recorded
from runtime.model.state import State
from runtime.scheduling.policy import Policy
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.errors import BadTrace
from runtime.simulator.importers import READERS, Format, journal
from runtime.simulator.scenario import Scenario
from runtime.simulator.simulation import simulate
from runtime.simulator.workload import Skipped, TraceJob, arranged

SACCT = """JobID|Submit|Start|End|State|ReqTRES|AllocTRES|NNodes|Account|Partition|QOS
7|2026-01-05T10:00:00|2026-01-05T10:05:00|2026-01-05T11:05:00|COMPLETED|cpu=8,gres/gpu=8|cpu=8,gres/gpu=8,gres/gpu:a100=8|2|vision|gpu|high
7.batch|2026-01-05T10:00:00|2026-01-05T10:05:00|2026-01-05T11:05:00|COMPLETED||cpu=8,gres/gpu=8|2|vision||
8_1|2026-01-05T10:01:00|2026-01-05T10:01:00|2026-01-05T10:02:30|FAILED|cpu=1,gres/gpu=1||1|speech|gpu|
9|2026-01-05T10:02:00|Unknown|Unknown|PENDING|cpu=1,gres/gpu=1||1|speech|gpu|normal
10|2026-01-05T10:03:00|2026-01-05T10:04:00|Unknown|RUNNING|cpu=1,gres/gpu=1||1|speech|gpu|normal
11|2026-01-05T10:03:00|2026-01-05T10:04:00|2026-01-05T10:09:00|COMPLETED|cpu=1||1|speech|cpu|normal
"""
HP_SPOT = """job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
1,13,A10,20,1,1,0,2764799,HP
2,57,A100-SXM4-80GB,15,4.0,16,9589663,41060,Spot
3,57,A10,15,0.5,1,5,60,Spot
4,57,A10,15,0,1,5,60,Spot
"""


def read(kind: Format, path: Path) -> tuple[list[TraceJob], Skipped]:
    skipped = Skipped()
    return list(READERS[kind](path, skipped)), skipped


def written(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_philly_rows_are_jobs() -> None:
    jobs, skipped = read(Format.PHILLY, DATA / "philly_jobs_400.csv")
    assert (len(jobs), skipped.n_by_reason) == (400, {})
    first = jobs[0]
    assert (first.submitted_at_s, first.run_s, first.n_devices, first.project) == (1507532515.0, 66.0, 1, "11cb48")


def test_jobs_are_arranged_by_submission() -> None:
    times = [job.submitted_at_s for job in arranged(read(Format.PHILLY, DATA / "philly_jobs_400.csv")[0])]
    assert times == sorted(times)


def test_a_compressed_trace_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv.gz"
    path.write_bytes(gzip.compress((DATA / "philly_jobs_400.csv").read_bytes()))
    assert read(Format.PHILLY, path)[0] == read(Format.PHILLY, DATA / "philly_jobs_400.csv")[0]


def test_openb_takes_classes_and_waits_from_the_trace() -> None:
    jobs, skipped = read(Format.OPENB, DATA / "openb_pod_list_200.csv")
    assert len(jobs) + sum(skipped.n_by_reason.values()) == 200
    assert {job.priority_class for job in jobs} <= {"critical", "normal", "exploratory"}
    assert all(job.recorded_wait_s is not None and job.recorded_wait_s >= 0 for job in jobs)
    assert jobs[0].experiment == "LS 12000 16384 1000"
    first = jobs[0]
    assert (first.job_id, first.submitted_at_s, first.run_s) == ("openb-pod-0000", 0.0, 12537496.0)
    assert skipped.n_simplified["asked for a share of a device and get a whole one"] > 0


def test_hp_spot_jobs_are_workers_on_nodes(tmp_path: Path) -> None:
    jobs, skipped = read(Format.HP_SPOT, written(tmp_path, HP_SPOT))
    assert [job.priority_class for job in jobs] == ["critical", "exploratory", "exploratory"]
    assert [(job.n_devices, job.devices_per_node) for job in jobs] == [(1, 1), (64, 4), (1, 1)]
    assert jobs[1].accelerator == "A100-SXM4-80GB"
    assert [(job.project, job.experiment) for job in jobs[:2]] == [("13", "HP 20 CPU"), ("57", "Spot 15 CPU")]
    assert (sum(skipped.n_by_reason.values()), sum(skipped.n_simplified.values())) == (1, 1)


def test_sacct_jobs_are_those_that_ran_on_devices(tmp_path: Path) -> None:
    jobs, skipped = read(Format.SACCT, written(tmp_path, SACCT))
    assert [job.job_id for job in jobs] == ["7", "8_1"]
    first = jobs[0]
    assert (first.n_devices, first.devices_per_node, first.accelerator) == (8, 4, "a100")
    assert (first.run_s, first.recorded_wait_s, first.priority_class) == (3600.0, 300.0, "high")
    assert (jobs[1].priority_class, jobs[1].run_s) == ("gpu", 90.0)
    assert {job.experiment for job in jobs} == {""}
    assert skipped.n_by_reason == {"never started": 1, "had not ended yet": 1, "asks for no device": 1}


def test_sacct_jobs_of_one_name_and_user_are_one_experiment(tmp_path: Path) -> None:
    header = "JobID|JobName|User|Submit|Start|End|AllocTRES"
    times = "2026-01-05T10:00:00|2026-01-05T10:05:00|2026-01-05T11:05:00|gres/gpu=1"
    names = ("1|train_7|ann", "2|train_8|ann", "3|train_8|bob", "4|eval|ann")
    text = "\n".join([header, *(f"{name}|{times}" for name in names)])
    jobs, _ = read(Format.SACCT, written(tmp_path, text + "\n"))
    assert [job.experiment for job in jobs] == ["ann/train", "ann/train", "bob/train", "ann/eval"]


def test_sacct_without_devices_says_what_to_ask_for(tmp_path: Path) -> None:
    path = written(tmp_path, "JobID|Submit|Start|End\n")
    with pytest.raises(BadTrace, match="AllocTRES"):
        read(Format.SACCT, path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no column timestamp"),
        ("a,b\n1,2\n", "the first line has: a, b"),
        ("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,x,1,c\n", "line 2: column duration is 'x'"),
        ("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,nan,1,c\n", "not a finite number"),
        ("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,5,1.5,c\n", "not a whole number"),
        ("timestamp,duration,num_gpus,cluster\nyesterday,5,1,c\n", "line 2: 'yesterday' is no date"),
        ("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,5,1,c,6\n", "more cells than there are columns"),
    ],
)
def test_a_broken_trace_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadTrace, match=words):
        read(Format.PHILLY, written(tmp_path, text))


def test_a_missing_trace_is_named() -> None:
    with pytest.raises(BadTrace, match=r"/nowhere/x\.csv: can not be read: No such file"):
        read(Format.PHILLY, Path("/nowhere/x.csv"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"timestamp,duration,num_gpus,cluster\n\xff\xfe\x00")
    with pytest.raises(BadTrace, match="can not be read"):
        read(Format.PHILLY, path)


@pytest.fixture
def journal_file(tmp_path: Path) -> Path:
    """The journal of a simulated life: an urgent job preempts one, a third runs undisturbed, a fourth has not ended."""
    from runtime.store.engine import open_engine
    from runtime.store.journal import StoredEvent, append
    from runtime.store.migrate import migrate

    recorded: list[Recorded] = []

    def watch(_: State, entry: Recorded) -> None:
        recorded.append(entry)

    jobs = [
        trace_job("j1", 0, 1000, costs=COSTS),
        trace_job("j2", 500, 100, priority="critical"),
        trace_job("j3", 3000, 70),
        trace_job("j4", 4000, 50),
    ]
    simulate(Scenario(jobs=jobs, nodes=parse_nodes("1x1xH100"), policy=Policy()), watch=watch)
    stored = [
        StoredEvent(job_id=getattr(entry.event, "job_id", None), **encode_recorded(entry)) for entry in recorded[:-1]
    ]
    path = tmp_path / "runtime.db"
    engine = open_engine(f"sqlite:///{path}")
    migrate(engine)
    with engine.begin() as connection:
        append(connection, stored)
    engine.dispose()
    return path


def test_our_journal_tells_how_long_jobs_need(journal_file: Path) -> None:
    jobs, skipped = read(Format.JOURNAL, journal_file)
    assert {job.job_id: job.run_s for job in jobs} == {"j1": 1000.0 + COSTS.restart_s, "j2": 100.0, "j3": 70.0}
    assert {job.experiment for job in jobs} == {"trace"}
    assert {job.job_id: job.recorded_wait_s for job in jobs} == {"j1": 0.0, "j2": 20.0, "j3": 0.0}
    assert skipped.n_by_reason == {"had not ended yet": 1}


def test_our_journal_tells_how_often_jobs_saved_and_how_long_that_took_on_notice(journal_file: Path) -> None:
    costs = {job.job_id: job.costs for job in read(Format.JOURNAL, journal_file)[0]}
    assert costs["j1"].notice_checkpoint_s == COSTS.notice_checkpoint_s
    assert costs["j1"].grace_s == COSTS.grace_s
    assert costs["j3"].checkpoint_every_s is None
    assert costs["j3"].notice_checkpoint_s == COSTS.notice_checkpoint_s, "nobody asked it, and others took so long"


def test_jobs_from_before_the_journal_begins_are_counted(journal_file: Path) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(f"sqlite:///{journal_file}")
    with engine.begin() as connection:
        first = "(select min(seq) from events where type = 'job_submitted')"
        connection.execute(sa.text(f"delete from events where seq = {first}"))
    engine.dispose()
    jobs, skipped = read(Format.JOURNAL, journal_file)
    assert "j1" not in {job.job_id for job in jobs}
    assert skipped.n_by_reason[journal.EARLIER] == 1


def test_our_journal_tells_its_nodes(journal_file: Path) -> None:
    (node,) = journal.read_nodes(journal_file)
    assert [device.kind for device in node.devices] == ["H100"]


def test_reading_the_journal_changes_nothing_in_it(journal_file: Path) -> None:
    before = journal_file.read_bytes()
    read(Format.JOURNAL, journal_file)
    assert journal_file.read_bytes() == before


@pytest.mark.parametrize("content", [None, b"", b"no database at all, but long enough to be looked at by SQLite" * 9])
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "runtime.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadTrace, match=r"runtime\.db"):
        read(Format.JOURNAL, path)
    assert path.exists() == (content is not None)


def test_every_format_has_a_reader() -> None:
    assert set(READERS) == set(Format)
    assert asdict(trace_job("j", 0, 1))["recorded_wait_s"] is None

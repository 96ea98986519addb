"""`nightlab simulate` answers with a table or an envelope, and says what to do when it can not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_process import eventually, nightlab

from nightlab.__main__ import main
from runtime.engines.contract import AttemptKey
from runtime.engines.fake import FakeEngine, fake_node
from runtime.server.config import ServerConfig
from runtime.server.threaded import threaded_server
from runtime_client.models import JobSpec

TRACE = Path(__file__).parent.parent / "runtime" / "simulator" / "data" / "philly_jobs_400.csv"
PHILLY = ("simulate", str(TRACE), "--format", "philly")


def simulate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code, and standard output followed by standard error."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out + shown.err


def test_it_tells_waits_utilization_and_losses(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = simulate(capsys, *PHILLY, "--nodes", "8x8", "--critical-share", "0.1")
    assert code == 0
    assert "400 jobs on 64 devices of 8 nodes" in shown
    assert all(word in shown for word in ("critical", "normal", "wait mean", "device-hours idle", "preemption"))


def test_json_is_one_envelope(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = simulate(capsys, *PHILLY, "--nodes", "8x8", "--json")
    data = json.loads(shown)["data"]
    assert (data["n_devices"], data["n_nodes"], data["classes"][0]["n_jobs"]) == (64, 8, 400)
    assert set(data["classes"][0]["wait"]) == {"mean_s", "p50_s", "p99_s", "max_s"}


def test_the_answer_does_not_depend_on_the_process() -> None:
    arguments = (*PHILLY, "--nodes", "1x8", "--critical-share", "0.3", "--node-mtbf", "30d", "--json")
    answers = {nightlab(*arguments, PYTHONHASHSEED=seed).out for seed in ("1", "2")}
    assert len(answers) == 1


def test_the_plot_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, shown = simulate(capsys, *PHILLY, "--nodes", "8x8", "--plot", str(tmp_path / "x.png"))
    assert (code, "drawn:" in shown) == (0, True)
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*PHILLY,), "--nodes is missing"),
        ((*PHILLY, "--nodes", "many"), "such as 64x8"),
        ((*PHILLY, "--nodes", "8x8", "--window", "1999-01-01..1999-01-02"), "no job was submitted in 1999"),
        ((*PHILLY, "--nodes", "8x8", "--window", "now"), "FROM..TO"),
        ((*PHILLY, "--nodes", "8x8", "--critical-share", "2"), "from 0 to 1"),
        ((*PHILLY, "--nodes", "8x8", "--classes", "normal"), "OLD=NEW"),
        ((*PHILLY, "--nodes", "8x8", "--classes", "normal=urgent"), "'urgent' is not in the policy"),
        ((*PHILLY, "--nodes", "8x8", "--checkpoint-every", "0"), "--checkpoint-every must be more than 0"),
        ((*PHILLY, "--nodes", "8x8", "--grace", "never"), "--grace"),
        ((*PHILLY, "--nodes", "8x8", "--plot", "x.gif"), ".svg, .png, .pdf"),
        ((*PHILLY, "--nodes", "8x8", "--policy", "/nowhere.yaml"), "/nowhere.yaml: can not be read"),
        (("simulate", str(TRACE), "--format", "sacct", "--nodes", "8x8"), "is not the output of `sacct -P`"),
        (("simulate", str(TRACE), "--format", "pbs", "--nodes", "8x8"), "philly, openb, hp-spot, sacct, journal"),
        (("simulate", "/nowhere.csv", "--format", "philly", "--nodes", "8x8"), "/nowhere.csv: can not be read"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    code, shown = simulate(capsys, *arguments)
    assert code == 2
    assert words in shown


def test_the_journal_of_a_real_home_is_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A preemption, a failure and a success of a real server, simulated while it runs, with a plot."""
    engine = FakeEngine(nodes=(fake_node(n_devices=1),))
    config = ServerConfig(home=tmp_path, port=0, low_disk_bytes=0)
    with threaded_server(config, engine=engine) as server, server.client() as client:

        def end(job_id: str, attempt: int, exit_code: int) -> None:
            eventually(lambda: client.job(job_id).state == "running")
            key = AttemptKey(job_id=job_id, attempt=attempt)
            server.on_loop(lambda: engine.finish(key, exit_code=exit_code))

        for level in ("exploratory", "critical", "normal"):
            client.submit(JobSpec.model_validate({"experiment_name": "e", "command": "true", "priority_class": level}))
            if level == "exploratory":
                eventually(lambda: client.job("j1").state == "running")
        end("j2", 1, 0)
        end("j3", 1, 1)
        end("j1", 2, 0)
        eventually(lambda: client.job("j1").is_ended)
        plot = tmp_path / "week.svg"
        arguments = ("simulate", str(tmp_path / "runtime.db"), "--format", "journal", "--plot", str(plot), "--json")
        code, shown = simulate(capsys, *arguments)
    data = json.loads(shown.splitlines()[0])["data"]
    assert (code, [(one["name"], one["n_jobs"]) for one in data["classes"]]) == (
        0,
        [("critical", 1), ("normal", 1), ("exploratory", 1)],
    )
    assert (data["n_devices"], data["skipped"]) == (1, {})
    assert "<svg" in plot.read_text()

"""What a job sees, and what the local engine reads from it: environment, parameters, checkpoints, metrics."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from local_engine_lab import eventually, job, local_engine, local_lab, run_to_end

from runtime.engines import provenance
from runtime.engines.conformance import opened, stop
from runtime.engines.contract import AttemptKey, Checkpointed, Exited, LaunchOrder, MetricsRead, NotLaunched, Started
from runtime.model.states import ExitReason
from runtime.node import cgroups
from runtime_client.home import CODE_FOLDER
from runtime_client.models import CodeSource, Environment, JsonLines, SnapshotMode, StdoutPattern
from runtime_client.snapshot import CodeStore

SECRETS = {
    "OPENAI_API_KEY": "sk-secret-1",
    "AWS_SECRET_ACCESS_KEY": "secret-2",
    "NIGHTLAB_OWNER_TOKEN": "secret-3",
    "MLFLOW_TRACKING_PASSWORD": "secret-4",
    "LD_PRELOAD": "/nonexistent/secret-5.so",
    "BASH_ENV": "/nonexistent/secret-6",
}


async def environment_seen(home: Path, environ: dict[str, str], **fields: Any) -> dict[str, str]:
    async with local_lab(home, environ=environ) as lab:
        ended = await run_to_end(lab, job(("env",), **fields))
        return dict(line.split("=", 1) for line in ended.log_tail.splitlines())


def test_no_secret_of_the_server_reaches_a_job(tmp_path: Path) -> None:
    seen = asyncio.run(environment_seen(tmp_path, {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **SECRETS}))
    assert seen["LC_ALL"] == "C.UTF-8"
    assert not set(SECRETS) & set(seen)
    assert not set(SECRETS.values()) & set(seen.values())


def test_attempt_token_and_gateway_are_given(tmp_path: Path) -> None:
    seen = asyncio.run(environment_seen(tmp_path, {}))
    assert seen["MLFLOW_TRACKING_TOKEN"].startswith("j1.1.")
    assert seen["MLFLOW_TRACKING_URI"] == "http://127.0.0.1:9"
    assert seen["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_attempt_folders_are_private(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            await run_to_end(lab, job("true"))
        folder = tmp_path / "attempts" / "j1" / "1"
        assert folder.stat().st_mode & 0o077 == 0
        assert (folder / "order.json").stat().st_mode & 0o077 == 0

    asyncio.run(run())


def test_parameters_reach_an_unchanged_script(tmp_path: Path) -> None:
    script = tmp_path / "code" / "t.py"
    script.parent.mkdir()
    script.write_text(
        "import os, sys, json\n"
        "text = open(os.environ['HYPERPARAMETERS_PATH']).read()\n"
        "print(json.dumps([sys.argv[1:], text, os.getcwd()]))"
    )

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(
                "python t.py {seed}",
                parameters={"lr": 0.1, "net": {"depth": 3}},
                seed=5,
                args_style="argparse",
                code_source=CodeSource(root_path=str(script.parent)),
                environment=Environment(python=sys.executable),
            )
            words, text, folder = json.loads((await run_to_end(lab, launch)).log_tail)
            assert words == ["5", "--lr", "0.1", "--net.depth", "3"]
            assert yaml.safe_load(text) == {"lr": 0.1, "net": {"depth": 3}, "seed": 5}
            assert folder == str(script.parent)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("command", "fields", "reason", "words"),
    [
        ("python t.py", {"environment": Environment(python="/no/python")}, ExitReason.BAD_PYTHON, "does not exist"),
        ("true", {"code_source": CodeSource(root_path="/no/folder")}, ExitReason.BAD_COMMAND, "/no/folder"),
        (("no-such-program", "x"), {}, ExitReason.BAD_COMMAND, "not on PATH"),
        (
            "true",
            {"metric_sources": (StdoutPattern.model_construct(pattern="("),)},
            ExitReason.BAD_COMMAND,
            "metric pattern",
        ),
        ("t {seed}", {}, ExitReason.BAD_COMMAND, "has no seed"),
    ],
)
def test_what_can_not_run_says_why(
    tmp_path: Path, command: str | tuple[str, ...], fields: dict[str, Any], reason: ExitReason, words: str
) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(command, **fields)
            await lab.engine.start(launch, 1)
            refused = await lab.next(NotLaunched, launch.key)
            assert refused.exit_reason is reason
            assert words in refused.evidence
            assert not lab.all(Started)

    asyncio.run(run())


def test_a_script_whose_interpreter_is_missing_was_not_launched(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job((str(script),))
            await lab.engine.start(launch, 1)
            refused = await lab.next(NotLaunched, launch.key)
            assert refused.exit_reason is ExitReason.BAD_COMMAND
            assert str(script) in refused.evidence

    asyncio.run(run())


def test_a_command_that_the_shell_can_not_find_is_an_exit_with_evidence(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            ended = await run_to_end(lab, job("no-such-program --x"))
            assert ended.exit_code == 127
            assert "no-such-program" in ended.log_tail

    asyncio.run(run())


def test_a_later_attempt_resumes_from_the_newest_whole_checkpoint(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            make = "cd $NIGHTLAB_CHECKPOINT_DIR && mkdir step-5 step-9 && touch step-5/COMPLETE; exit 75"
            assert (await run_to_end(lab, job(make))).checkpoint_step == 5
            show = "basename $NIGHTLAB_RESUME_FROM; echo $NIGHTLAB_ATTEMPT"
            assert (await run_to_end(lab, job(show, attempt=2, resume_step=5))).log_tail == "step-5\n2\n"
            unset = await run_to_end(lab, job("echo ${NIGHTLAB_RESUME_FROM-unset}", job_id="j2"))
            assert unset.log_tail == "unset\n"

    asyncio.run(run())


def test_a_checkpoint_that_lost_one_of_its_files_is_not_resumed_from(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            make = f"{sys.executable} -c 'from runtime_client.training import checkpoint as c; c(1, 1); c(2, 2)'"
            damage = "rm $NIGHTLAB_CHECKPOINT_DIR/step-2/state.pickle; exit 75"
            assert (await run_to_end(lab, job(f"{make}; {damage}"))).checkpoint_step is not None
            show = "basename $NIGHTLAB_RESUME_FROM"
            assert (await run_to_end(lab, job(show, attempt=2, resume_step=2))).log_tail == "step-1\n"

    asyncio.run(run())


def test_a_job_with_a_time_limit_knows_when_it_is_over(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            before = time.time()
            show = "echo ${NIGHTLAB_DEADLINE-unset}"
            deadline = float((await run_to_end(lab, job(show, timeout_minutes=10))).log_tail)
            assert before + 600 <= deadline <= time.time() + 600.001
            assert (await run_to_end(lab, job(show, job_id="j2"))).log_tail == "unset\n"

    asyncio.run(run())


def test_each_checkpoint_is_reported_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(
                "cd $NIGHTLAB_CHECKPOINT_DIR; for i in 1 2; do mkdir step-$i; touch step-$i/COMPLETE;"
                " while ! test -e ../work/go$i; do sleep 0.02; done; done"
            )
            await lab.engine.start(launch, 1)
            work = tmp_path / "attempts" / "j1" / "work"
            await lab.until(lambda: len(lab.all(Checkpointed)) == 1, "checkpoint 1")
            (work / "go1").touch()
            await lab.until(lambda: len(lab.all(Checkpointed)) == 2, "checkpoint 2")
            (work / "go2").touch()
            assert (await lab.next(Exited, launch.key)).checkpoint_step == 2
            assert [c.step for c in lab.all(Checkpointed)] == [1, 2]

    asyncio.run(run())


def metric_values(reports: list[MetricsRead]) -> list[tuple[str, float, int]]:
    return [point[:3] for report in reports for point in report.points]


def test_all_metrics_are_reported_before_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, sweep_s=60.0) as lab:
            sources = (StdoutPattern(pattern=r"loss (?P<loss>\S+)"), JsonLines(path="m.jsonl"))
            command = """echo loss 0.5; echo '{"acc": 1, "step": 3}' > m.jsonl; printf 'loss 0.25'"""
            await run_to_end(lab, job(command, metric_sources=sources))
            assert metric_values(lab.all(MetricsRead)) == [("loss", 0.5, 0), ("loss", 0.25, 1), ("acc", 1.0, 3)]
            assert [type(report) for report in lab.reports] == [Started, MetricsRead, Exited]

    asyncio.run(run())


def test_a_successor_reads_metrics_on_without_repeating_any(tmp_path: Path) -> None:
    async def run() -> None:
        launch = job(
            "for i in 1 2 3 4; do echo loss $i; while ! test -e go$i; do sleep 0.02; done; done",
            metric_sources=(StdoutPattern(pattern=r"loss (?P<loss>\S+)"),),
        )
        work = tmp_path / "attempts" / "j1" / "work"
        async with opened(local_engine(tmp_path)) as first:
            await first.engine.start(launch, 1)
            (work / "go1").touch()
            await first.until(lambda: len(metric_values(first.all(MetricsRead))) == 2, "two points")
        for i in (2, 3, 4):
            (work / f"go{i}").touch()
        async with opened(local_engine(tmp_path)) as second:
            await second.engine.adopt([launch], 2)
            await second.next(Exited, launch.key)
            assert metric_values(second.all(MetricsRead)) == [("loss", 3.0, 2), ("loss", 4.0, 3)]

    asyncio.run(run())


def test_a_pattern_that_hangs_is_switched_off_and_the_job_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            sources = (StdoutPattern(pattern=r"(?P<loss>(a+)+)$"), JsonLines())
            text = "a" * 60
            launch = job(f"""echo {text}b; echo '{{"acc": 1}}'; exit 5""", metric_sources=sources)
            ended = await run_to_end(lab, launch)
            assert ended.exit_code == 5
            assert metric_values(lab.all(MetricsRead)) == [("acc", 1.0, 0)]
            assert b"metric source 1 is switched off" in await lab.log(launch.key)

    asyncio.run(run())


def test_pretend_accelerators_are_assigned_by_index(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, devices="fake:4xH100") as lab:
            assert [d.kind for d in lab.nodes[0].devices] == ["H100"] * 4
            launch = job("echo $CUDA_VISIBLE_DEVICES $WORLD_SIZE $NODE_RANK")
            (placement,) = launch.placements
            wide = type(placement)(node_id="local", devices=(1, 3), first_rank=0)
            launch = type(launch)(
                key=launch.key,
                placements=(wide,),
                spec_json=launch.spec_json,
                attempt_token=launch.attempt_token,
                tracking_url=launch.tracking_url,
                resume_step=None,
                device_kinds=("H100", "H100"),
            )
            assert (await run_to_end(lab, launch)).log_tail == "1,3 2 0\n"

    asyncio.run(run())


def test_a_waiting_supervisor_uses_no_processor_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(("sleep", "1000000"))
            await lab.engine.start(launch, 1)
            leader = (await lab.next(Started, launch.key)).pid
            record = json.loads((tmp_path / "attempts" / "j1" / "1" / "supervisor.json").read_text())
            supervisor, group = record["pid"], record["cgroup"]
            # It moves the leader into its group a moment after the start, once.
            await eventually(lambda: group is None or leader in cgroups.members(group), "the leader is in its group")

            def switches() -> int:
                status = Path(f"/proc/{supervisor}/status").read_text()
                return int(status.split("voluntary_ctxt_switches:")[1].split()[0])

            sleeping = "S (sleeping)"
            await eventually(lambda: sleeping in Path(f"/proc/{supervisor}/status").read_text(), "supervisor asleep")
            loop = asyncio.get_running_loop()

            async def switches_in_half_a_second() -> int:
                before, end = switches(), loop.time() + 0.5
                await eventually(lambda: loop.time() > end, "half a second")
                return switches() - before

            # At first it looks at the output soon and often; then ever more rarely.
            deadline = loop.time() + 20
            while await switches_in_half_a_second() > 2:
                assert loop.time() < deadline, "the supervisor never comes to rest"
            await lab.engine.stop(stop(launch, grace_s=0), 1)
            await lab.next(Exited, launch.key)

    asyncio.run(run())


def snapshot_job(home: Path, code: Path) -> LaunchOrder:
    taken = CodeStore(home / CODE_FOLDER).take(code)
    source = CodeSource(root_path=str(code), snapshot=SnapshotMode.AUTO, snapshot_id=taken.snapshot_id)
    return job("cat t.txt ran.txt; pwd; echo $CODE_SOURCE_PATH; echo ran >> ran.txt", code_source=source)


def test_a_queued_job_runs_what_was_submitted_and_keeps_what_it_wrote(tmp_path: Path) -> None:
    code = tmp_path / "project"
    code.mkdir()
    (code / "t.txt").write_text("as submitted\n")
    launch = snapshot_job(tmp_path, code)
    (code / "t.txt").write_text("edited since\n")

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            work = str(tmp_path / "attempts" / "j1" / "work")
            first = (await run_to_end(lab, launch)).log_tail.splitlines()
            assert [line for line in first if "ran.txt" not in line] == ["as submitted", work, work]
            again = replace(launch, key=AttemptKey(job_id="j1", attempt=2))
            second = (await run_to_end(lab, again)).log_tail.splitlines()
            assert second == ["as submitted", "ran", work, work]

    asyncio.run(run())
    assert sorted(path.name for path in code.iterdir()) == ["t.txt"]


def test_a_snapshot_that_was_removed_is_said(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    launch = snapshot_job(tmp_path, tmp_path / "project")
    for path in (tmp_path / CODE_FOLDER).iterdir():
        path.unlink()

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            await lab.engine.start(launch, 1)
            refused = await lab.next(NotLaunched, launch.key)
            assert refused.exit_reason is ExitReason.BAD_COMMAND
            assert "Submit the job again" in refused.evidence

    asyncio.run(run())


def test_what_an_attempt_ran_with_is_kept_without_secrets(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(
                ("echo", "hi"),
                env_variables={"WANDB_API_KEY": "s3cret", "DB_PASSWORD": "s3cret", "LR": "0.1"},
                environment=Environment(python=sys.executable),
            )
            await run_to_end(lab, launch)
            path = tmp_path / "attempts" / "j1" / "1" / provenance.FILE
            await eventually(path.exists, "the record is written")
            kept = json.loads(path.read_text())
            assert kept["command"] == ["echo", "hi"]
            assert kept["environment"]["LR"] == "0.1"
            assert kept["environment"]["WANDB_API_KEY"] == provenance.HIDDEN
            assert launch.attempt_token not in path.read_text()
            assert "s3cret" not in path.read_text()
            assert any(name.startswith("numpy==") for name in kept["packages"])
            assert kept["devices"] == list(launch.device_kinds)

    asyncio.run(run())

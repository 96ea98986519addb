"""`nightlab job ...`: run, list, get, logs, cancel, explain, diagnose. What needs more room has a module of its own."""

from __future__ import annotations

import sys
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode
from nightlab.output import ago, note, print_json, print_table

from .job_diagnose import diagnose
from .job_run import run
from .options import HomeOption, JsonOption, runtime

if TYPE_CHECKING:
    from pathlib import Path

    from nightlab.following import JobFollower
    from runtime_client.models import JobView

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Run, list, explain, diagnose, cancel jobs; read their output.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab job run --gpus 1 -- python train.py --lr 3e-4",
)
RUN_EPILOG = """\b
Examples:
  nightlab job run --gpus 1 -- python train.py --lr 3e-4
  nightlab job run --watch --param lr=3e-4 --args-style argparse -- python train.py
  nightlab job run -f workload.yaml --override compute.num_accelerators=2
  nightlab job run --array 0-99 --parallel 8 -- python train.py --fold {index}
  nightlab job run --after a10 --after j7=any -- python collect.py
  nightlab job run --finish-by 07:00 -- python train.py
  nightlab job run --continues j12 -- python train.py"""

app.command(
    epilog=RUN_EPILOG,
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)(run)

app.command(epilog="Example:  nightlab job diagnose j1")(diagnose)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Job id, such as j1.", show_default=False)]


@app.command("list", epilog="Example:  nightlab job list --all --state failed")
def list_jobs(
    all_states: Annotated[bool, typer.Option("--all", "-a", help="Ended jobs too.")] = False,
    state: Annotated[
        list[str] | None, typer.Option(help="Only jobs in this state; may be given again.", metavar="STATE")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Only jobs of this research session.", metavar="S")] = None,
    array: Annotated[str | None, typer.Option(help="Only the tasks of this array.", metavar="A")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Newest N jobs.", metavar="N")] = 50,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first: those that wait or run, or all of them."""
    from nightlab.failure import wrong_use
    from nightlab.following import placed
    from runtime_client.models import ENDED_STATES, LIVE_STATES

    allowed = (*LIVE_STATES, *sorted(ENDED_STATES))
    for name in state or ():
        if name not in allowed:
            raise wrong_use(f"--state {name!r} is no state; allowed: {', '.join(allowed)}", code="bad_state")
    states = state or (None if all_states else LIVE_STATES)
    with runtime(home) as client:
        tasks = None if array is None else client.array(array)
        jobs = client.jobs(states=states, session_id=session, array_id=array, limit=limit)
    if as_json:
        print_json(jobs)
        return
    if tasks is not None:
        from nightlab.arrays import array_line

        print(array_line(tasks))
    if not jobs:
        print("no such jobs" if state or all_states else "nothing waits or runs (ended jobs: nightlab job list --all)")
        return
    rows = [
        (
            job.job_id,
            job.state,
            job.spec.experiment_name,
            job.spec.priority_class,
            "" if job.is_ended or job.state == "queued" else placed(job),
            ago(job.submitted_at),
            _remark(job),
        )
        for job in jobs
    ]
    print_table(("job", "state", "experiment", "class", "where", "submitted", "note"), rows, state_column=1)


def _remark(job: JobView) -> str:
    from nightlab.moments import told

    why = job.exit_reason if job.exit_reason not in (None, "completed", job.state) else None
    if job.spec.finish_by is not None and not job.is_ended:
        why = f"until {told(job.spec.finish_by, now=time())}"
    return why or (f"preempted {job.n_preemptions}x" if job.n_preemptions else "")


@app.command("get", epilog="Example:  nightlab job get j1 --json")
def get_job(job_id: JobId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one job: its spec, where it stands, every attempt. Of an array (a10): how many tasks are where."""
    from nightlab.arrays import is_array, print_array
    from nightlab.job_page import print_job

    with runtime(home) as client:
        if is_array(job_id):
            array = client.array(job_id)
            print_json(array) if as_json else print_array(array)
            return
        job = client.job(job_id)
    if as_json:
        print_json(job)
    else:
        print_job(job)


@app.command("logs", epilog="Example:  nightlab job logs j1 -f")
def logs(
    job_id: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Of this attempt.", show_default="the latest", metavar="N")
    ] = None,
    rank: Annotated[
        str | None, typer.Option(help="Of this rank, or `all`.", show_default="the common output", metavar="R")
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Error lines of all ranks, counted.")] = False,
    lines: Annotated[int, typer.Option(min=1, help="The last N lines.", metavar="N")] = 1000,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the output of a job. With -f, follow it through all attempts to its end; Ctrl-C leaves it alone.

    --rank shows ranks with files of their own: those of torchrun, or what a launcher wrote to NIGHTLAB_RANK_LOG_DIR.
    """
    from nightlab.failure import wrong_use
    from nightlab.following import JobFollower
    from nightlab.job_output import ALL, last_lines, print_errors, print_last_lines

    if rank is not None and rank != ALL and not rank.isdecimal():
        raise wrong_use(f"--rank {rank!r} is neither a number nor `{ALL}`", code="bad_rank")
    with runtime(home) as client:
        if errors:
            found = client.log_errors(job_id, attempt=attempt)
            print_json(found) if as_json else print_errors(found)
            return
        if follow:
            shown = not as_json
            _follow(
                JobFollower(client, job_id, shows_output=shown, shows_state=shown, rank=rank, attempt=attempt), as_json
            )
            return
        if rank is not None and not as_json:
            names = print_last_lines(client, job_id, attempt, rank, lines)
            if rank != ALL and rank not in names:
                note(f"rank {rank} has no output of its own; there is: {', '.join(names) or 'nothing'}")
            return
        stream = "main" if rank in (None, ALL) else str(rank)
        chunk = last_lines(client, job_id, attempt, lines, stream=stream)
    if as_json:
        print_json(chunk)
    else:
        sys.stdout.write(chunk.text)


def _follow(follower: JobFollower, as_json: bool) -> None:
    try:
        job = follower.until_end()
    except KeyboardInterrupt:
        note("\ndetached; the job goes on")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if as_json:
        print_json(job)


@app.command("cancel", epilog="Example:  nightlab job cancel j1 j2 --reason 'wrong data'")
def cancel(
    job_ids: Annotated[
        list[str], typer.Argument(metavar="JOB...", help="Job ids; a10 is a whole array.", show_default=False)
    ],
    reason: Annotated[str, typer.Option(help="Kept with the job.", metavar="TEXT")] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """End jobs that wait or run.

    Waiting ones at once, running ones with notice and grace. Exit 1 if one could not be cancelled.
    """
    from nightlab.arrays import is_array
    from runtime_client.errors import Rejected

    done: list[object] = []
    failed: list[dict[str, object]] = []
    with runtime(home) as client:
        for job_id in job_ids:
            cancel_one = client.cancel_array if is_array(job_id) else client.cancel
            try:
                job = cancel_one(job_id, reason=reason)
            except Rejected as error:
                failed.append({"job_id": job_id, "code": error.code, "message": error.message})
                continue
            done.append(job)
            if not as_json:
                print(f"{job_id}: {'cancelled' if job.is_ended else 'asked to stop; it ends within its grace'}")
    if as_json:
        print_json({"cancelled": done, "failed": failed})
    else:
        for one in failed:
            note(f"{one['job_id']}: {one['message']}")
    if failed:
        raise typer.Exit(ExitCode.WORK_FAILED)


@app.command("pin", epilog="Example:  nightlab job pin j7")
def pin(job_id: JobId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Keep the checkpoints of a job, whatever `nightlab gc` would do."""
    _set_pinned(job_id, True, home, as_json)


@app.command("unpin", epilog="Example:  nightlab job unpin j7")
def unpin(job_id: JobId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Treat the checkpoints of a job like those of others again."""
    _set_pinned(job_id, False, home, as_json)


def _set_pinned(job_id: str, is_pinned: bool, home: Path | None, as_json: bool) -> None:
    from runtime_client.models import RunUpdate

    with runtime(home) as client:
        job = client.job(job_id)
        client.update_run(job.run_id, RunUpdate(tags={"nightlab.pinned": "true" if is_pinned else "false"}))
    if as_json:
        print_json({"job_id": job_id, "is_pinned": is_pinned})
    else:
        print(f"{job_id}: {'its checkpoints stay' if is_pinned else 'pinned no more'}")


@app.command("explain", epilog="Example:  nightlab job explain j1")
def explain(job_id: JobId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Say why a job waits and until when, for whom it stepped aside, whom it cost what, or how it ended.

    The answer of the functions that decide, and of the history.
    """
    from nightlab.explanation_page import print_explanation

    with runtime(home) as client:
        explanation = client.explain(job_id)
    if as_json:
        print_json(explanation)
        return
    print_explanation(explanation)

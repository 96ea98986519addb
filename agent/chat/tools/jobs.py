"""Reading jobs: which there are, one of them, why it waits or failed, what it printed."""

from __future__ import annotations

import shlex

from pydantic import Field

from agent.chat.tool import Desk, Result, Slash
from agent.doctor.signs import signs
from agent.reading.job import diagnosed
from agent.tools.errors import FixAndRetry
from agent.tools.outputs import read_errors
from runtime_client.models import ENDED_STATES, LIVE_STATES, Departure, JobView

from .finding import at_runtime, job_of
from .made import Reads
from .showing import duration, number, plural, result, table
from .words import Arguments, JobId, OfJob, Words, of_job, taken

N_JOBS = 40
N_LINES = 40
MOST_LINES = 400
_BYTES_A_LINE = 200
_STATES = (*LIVE_STATES, *sorted(ENDED_STATES))


class Jobs(Arguments):
    state: str | None = Field(
        default=None, description=f"One of {', '.join(_STATES)}; left out: those that wait or run.", max_length=20
    )


class Lines(Arguments):
    job: JobId
    n: int = Field(default=N_LINES, ge=1, le=MOST_LINES, description="Lines at most, the last ones.")


def _jobs(desk: Desk, arguments: Jobs) -> Result:
    state = arguments.state
    if state is not None and state not in _STATES:
        raise FixAndRetry(f"{state!r} is no state of a job; there are: {', '.join(_STATES)}", code="unknown_state")
    with at_runtime(desk) as runtime:
        found = runtime.jobs(states=LIVE_STATES if state is None else (state,), limit=N_JOBS)
        info = runtime.info()
    rows = [
        (
            one.job_id,
            one.state,
            one.spec.experiment_name,
            one.spec.session.session_id if one.spec.session else None,
            one.spec.priority_class,
            one.spec.compute.num_accelerators,
            number(one.device_seconds(desk.store.clock())),
            one.state_reason or one.exit_reason,
        )
        for one in found
    ]
    which = "that wait or run" if state is None else f"in state {state}"
    most = "" if len(found) < N_JOBS else f" ({N_JOBS} are shown at most)"
    said = (
        f"{plural(len(found), 'job')} {which}{most}; {info.n_queued} queued, {info.n_running} running, "
        f"{info.n_devices_free} of {plural(info.n_devices, 'device')} free"
    )
    columns = ("job", "state", "experiment", "session", "class", "devices", "device-seconds", "why")
    return result(said, table=table(columns, rows))


def _job(desk: Desk, arguments: OfJob) -> Result:
    with at_runtime(desk) as runtime:
        job = job_of(runtime, arguments.job)
    spec = job.spec
    command = spec.command if isinstance(spec.command, str) else shlex.join(spec.command)
    said = [
        f"{job.job_id} of {spec.experiment_name}: {job.state}{f', {job.state_reason}' if job.state_reason else ''}",
        f"command: {command}",
        f"class {spec.priority_class}, {spec.compute.num_accelerators} devices, "
        f"{duration(job.device_seconds(desk.store.clock()))} of device time",
    ]
    if spec.parameters:
        said.append("parameters: " + ", ".join(f"{name}={value}" for name, value in spec.parameters.items()))
    if job.checkpoint_step is not None:
        said.append(f"newest checkpoint: step {job.checkpoint_step}")
    if job.exit_reason:
        said.append(f"exit reason: {job.exit_reason}")
    if job.suggestion is not None:
        said.append(f"may help: {job.suggestion.why}")
    said.append(f"MLflow run: {job.run_id}")
    rows = [
        (
            one.attempt,
            one.outcome or "running",
            " ".join(f"{p.node_id}:{','.join(map(str, p.devices))}" for p in one.placements),
            one.exit_code,
            one.beneficiary,
            one.evidence or one.exit_reason,
        )
        for one in job.attempts
    ]
    columns = ("attempt", "outcome", "where", "exit code", "left for", "why")
    return result("\n".join(said), table=table(columns, rows))


def _explain(desk: Desk, arguments: OfJob) -> Result:
    with at_runtime(desk) as runtime:
        job_of(runtime, arguments.job)
        told = runtime.explain(arguments.job)
    said = [told.summary]
    if told.queue_position is not None:
        said.append(f"place in the queue: {told.queue_position}")
    if told.expected_start is not None:
        at = told.expected_start.in_seconds
        when = "unknown" if at is None else f"in {duration(at)}"
        said.append(f"expected start: {when}, {told.expected_start.basis}")
    said += told.details
    if told.beneficiary is not None:
        said.append(f"it leaves, or left last, for {told.beneficiary}")
    if told.suggestion is not None:
        said.append(f"may help: {told.suggestion.why}")
    rows = [(*_departure(one), "it left") for one in told.departures]
    rows += [(*_departure(one), "left for it") for one in told.cost_to_others]
    columns = ("job", "attempt", "cause", "for", "why", "lost device-seconds", "which")
    return result("\n".join(said), table=table(columns, rows))


def _departure(one: Departure) -> tuple[str, int, str, str | None, str | None, float | None]:
    return (one.job_id, one.attempt, one.cause, one.beneficiary, one.reason, number(one.lost_device_seconds))


def _why(desk: Desk, arguments: OfJob) -> Result:
    with at_runtime(desk) as runtime:
        job_of(runtime, arguments.job)
        told = diagnosed(runtime, arguments.job)
    if not told.has_failed or told.view.state == "succeeded":
        return result(f"{arguments.job} is {told.view.state}: it has not failed; /explain {arguments.job} tells more")
    found = told.found
    doubt = "" if found.is_sure or found.failure == "unknown" else " (suspected)"
    said = [f"{arguments.job} is {told.view.state}: {found.failure.value.replace('_', ' ')}{doubt}"]
    said.append(f"cause: {found.cause}")
    said.append(f"what to do: {found.suggestion or signs().words[found.failure].suggestion}")
    if found.change:
        said.append("to set: " + ", ".join(f"{name}={value}" for name, value in found.change.items()))
    rows = [(one,) for one in found.evidence]
    return result("\n".join(said), table=table(("what says so",), rows))


def _logs(desk: Desk, arguments: Lines) -> Result:
    with at_runtime(desk) as runtime:
        job = job_of(runtime, arguments.job)
        chunk = runtime.logs(arguments.job, offset=-_BYTES_A_LINE * arguments.n)
    lines = chunk.text.splitlines()[-arguments.n :]
    if not lines:
        return result(f"{arguments.job} is {job.state}, and has printed nothing{_not_begun(job)}")
    said = f"last {len(lines)} lines of {arguments.job}, attempt {chunk.attempt} ({job.state}):"
    return result("\n".join([said, *lines]))


def _errors(desk: Desk, arguments: OfJob) -> Result:
    with at_runtime(desk) as runtime:
        job = job_of(runtime, arguments.job)
        found = None if not job.attempts else read_errors(runtime, arguments.job, None)
    if found is None or not found.lines:
        return result(f"{arguments.job} is {job.state}, and its output reports no error{_not_begun(job)}")
    rows = [(one.text, one.count, " ".join(map(str, one.ranks))) for one in found.lines[-MOST_LINES:]]
    searched = "all of its output" if found.is_whole else "the end of its output"
    said = f"{len(found.lines)} error lines in {searched}, {arguments.job}, attempt {found.attempt}"
    return result(said, table=table(("line", "times", "ranks"), rows))


def _not_begun(job: JobView) -> str:
    return "" if job.attempts else f": no attempt has begun; /explain {job.job_id}"


def _of_state(words: Words) -> dict[str, str]:
    return taken(words, optional=("state",))


def _lines(words: Words) -> dict[str, str]:
    return taken(words, "job", optional=("n",))


TOOLS = (
    Reads(
        name="list_jobs",
        description="Jobs of the machine that wait or run, or those of one state; who holds devices.",
        arguments=Jobs,
        slash=Slash(name="jobs", usage="/jobs [STATE]", summary="jobs that wait or run", parse=_of_state),
        look=_jobs,
    ),
    Reads(
        name="read_job",
        description="One job: command, state, attempts, parameters, MLflow run.",
        arguments=OfJob,
        slash=Slash(name="job", usage="/job JOB", summary="one job and its attempts", parse=of_job),
        look=_job,
    ),
    Reads(
        name="explain_job",
        description="Why a job waits or had to leave: for whom, when it may start, what others lost for it.",
        arguments=OfJob,
        slash=Slash(name="explain", usage="/explain JOB", summary="why a job waits, and for whom", parse=of_job),
        look=_explain,
    ),
    Reads(
        name="diagnose_job",
        description="Why a job failed, by rules: class of failure, cause, what to change, the lines that say so.",
        arguments=OfJob,
        slash=Slash(name="why", usage="/why JOB", summary="why a job failed", parse=of_job),
        look=_why,
    ),
    Reads(
        name="read_logs",
        description="The last lines that a job printed.",
        arguments=Lines,
        slash=Slash(name="logs", usage="/logs JOB [N]", summary="the last lines of its output", parse=_lines),
        look=_logs,
    ),
    Reads(
        name="read_errors",
        description="The lines of a job's output that report errors, with how often and on which ranks.",
        arguments=OfJob,
        slash=Slash(name="errors", usage="/errors JOB", summary="errors in its output", parse=of_job),
        look=_errors,
    ),
)

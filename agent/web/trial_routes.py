"""One trial as its page shows it: the whole, its curves, its code, what its jobs printed and left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import StreamingResponse

from agent.store.store import AgentStore, TrialNotFound
from agent.store.views import TrialView
from agent.task import Task
from agent.web import trial_outputs, trial_reading
from agent.web.envelope import SAID_OF_REFUSALS
from agent.web.events import Pulse
from agent.web.growth import growth_stream
from agent.web.routes import Store
from agent.web.trial_outputs import LOG_BYTES, MOST_KEYS, NotOfTrial
from agent.web.trial_reading import Connect
from agent.web.trial_wire import ArtifactFolder, CodeChange, Curves, Growth, LogPiece, RunPlace, TrialDetail
from runtime_client.doors.refusal import refused
from runtime_client.errors import NotFound, Rejected, RuntimeClientError
from runtime_client.models import Envelope, ErrorKind, LogErrors
from runtime_client.protocol import Runtime

T = TypeVar("T")
router = APIRouter(prefix="/v1/trials", responses=SAID_OF_REFUSALS)
runs = APIRouter(prefix="/v1/runs", responses=SAID_OF_REFUSALS)


def _connect(request: Request) -> Connect:
    found: Connect = request.app.state.connect
    return found


Door = Annotated[Connect, Depends(_connect)]
JobId = Annotated[str | None, Query(min_length=1, max_length=64, description="One of its jobs; its last training.")]
AttemptNumber = Annotated[int | None, Query(ge=1, lt=2**31, description="The latest, if none is named.")]
Offset = Annotated[int | None, Query(ge=0, lt=2**62)]


@router.get("/{trial_id}/view")
def view(store: Store, connect: Door, trial_id: str) -> Envelope[TrialDetail]:
    """All of one trial but its curves, code and outputs; told without the runtime where that is away."""
    try:
        return Envelope(data=trial_reading.detail(store, trial_id, connect))
    except TrialNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_trial", str(error)) from error


@router.get("/{trial_id}/curves")
def curves(
    store: Store,
    connect: Door,
    trial_id: str,
    key: Annotated[tuple[Annotated[str, Query(max_length=500)], ...], Query(max_length=MOST_KEYS)] = (),
) -> Envelope[Curves]:
    """Names of its metrics, and curves of those asked for (else the objective's) by attempt, at most 1,000 points."""
    trial = _trial(store, trial_id)
    metric = trial_reading.metric_of(trial, Task.model_validate_json(store.session(trial.session_id).task_json))
    return Envelope(data=_asked(connect, lambda runtime: trial_outputs.curves(runtime, trial, metric, key)))


@router.get(
    "/{trial_id}/growth",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "model": Growth, "description": "data of events `growth`"}},
)
async def growth(request: Request, store: Store, connect: Door, trial_id: str) -> StreamingResponse:
    """Server-sent events while a trial runs: it has logged or printed more. Refused for one that has ended (409)."""
    pulse: Pulse = request.app.state.pulse
    pulse.admit()
    trial = await asyncio.to_thread(_trial, store, trial_id)
    if trial.is_ended:
        raise refused(ErrorKind.CONFLICT, "trial_ended", f"{trial_id} has ended: nothing more comes of it")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = growth_stream(pulse, lambda: store.trial(trial_id), connect)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


@router.get("/{trial_id}/diff")
def diff(
    request: Request,
    store: Store,
    trial_id: str,
    against: Annotated[str, Query(pattern="^(parent|base)$")] = "parent",
) -> Envelope[CodeChange]:
    """What its code changes against the code that it was made from, or against the session's base."""
    trial = _trial(store, trial_id)
    home = request.app.state.home
    return Envelope(data=trial_reading.code_change(store, trial, home, is_against_base=against == "base"))


@router.get("/{trial_id}/log")
def log(
    store: Store,
    connect: Door,
    trial_id: str,
    job_id: JobId = None,
    attempt: AttemptNumber = None,
    stream: Annotated[str, Query(pattern=r"^(main|[0-9]{1,6}(\.err)?)$")] = "main",
    offset: Annotated[Offset, Query(description="From this byte on.")] = None,
    before: Annotated[Offset, Query(description="What is older than this byte.")] = None,
    limit: Annotated[int, Query(ge=1, le=LOG_BYTES)] = LOG_BYTES,
) -> Envelope[LogPiece]:
    """A piece of what an attempt printed, as it was printed: without `offset` and `before`, the end of it."""
    trial = _trial(store, trial_id)
    if offset is not None and before is not None:
        raise refused(ErrorKind.INVALID, "invalid_value", "before: give `offset` or `before`, not both", path="before")
    return Envelope(
        data=_asked(
            connect,
            lambda runtime: trial_outputs.log_piece(
                runtime,
                trial,
                job_id=job_id,
                attempt=attempt,
                stream=stream,
                offset=offset,
                before=before,
                limit=limit,
            ),
        )
    )


@router.get("/{trial_id}/log-errors")
def log_errors(
    store: Store, connect: Door, trial_id: str, job_id: JobId = None, attempt: AttemptNumber = None
) -> Envelope[LogErrors]:
    """The error lines of an attempt's outputs, alike ones counted together."""
    trial = _trial(store, trial_id)
    return Envelope(
        data=_asked(connect, lambda runtime: trial_outputs.log_errors(runtime, trial, job_id=job_id, attempt=attempt))
    )


@router.get("/{trial_id}/artifacts")
def artifacts(
    store: Store,
    connect: Door,
    trial_id: str,
    job_id: JobId = None,
    folder: Annotated[str, Query(max_length=500)] = "",
) -> Envelope[ArtifactFolder]:
    """Files and folders of its MLflow run, one folder at a time."""
    trial = _trial(store, trial_id)
    return Envelope(data=_asked(connect, lambda runtime: trial_outputs.artifacts(runtime, trial, job_id, folder)))


@runs.get("/{run_id}")
def run(connect: Door, run_id: str) -> Envelope[RunPlace]:
    """Where an MLflow run is seen, by the runtime's id of it, or by MLflow's own among those of the newest jobs."""
    return Envelope(data=_asked(connect, lambda runtime: trial_reading.run_place(runtime, run_id)))


def _trial(store: AgentStore, trial_id: str) -> TrialView:
    try:
        return store.trial(trial_id)
    except TrialNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_trial", str(error)) from error


def _asked(connect: Connect, ask: Callable[[Runtime], T]) -> T:
    with _refusals(), connect() as runtime:
        return ask(runtime)


@contextmanager
def _refusals() -> Iterator[None]:
    """What the runtime says, in the words of this API."""
    try:
        yield
    except NotOfTrial as error:
        raise refused(ErrorKind.NOT_FOUND, "no_such_job", str(error)) from error
    except NotFound as error:
        raise refused(ErrorKind.NOT_FOUND, error.code, error.message) from error
    except Rejected as error:
        raise refused(ErrorKind.INVALID, error.code, error.message) from error
    except RuntimeClientError as error:
        raise refused(ErrorKind.UNAVAILABLE, "runtime_away", error.message) from error

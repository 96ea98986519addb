"""What a running trial logs and prints is no event of its session: this stream says when there is more of it.

It carries nothing but that; whoever hears it reads again what is looked at. The runtime is asked once in
`LOOK_EVERY_S` while somebody listens, and not at all otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from agent.store.views import TrialView
from agent.web.events import HELLO, KEEP_ALIVE_S, SIGN_OF_LIFE, Pulse
from agent.web.trial_reading import Connect, job_ids
from agent.web.trial_wire import Growth
from runtime_client.errors import NotFound, RuntimeClientError

LOOK_EVERY_S = 1.0
MORE = f"event: growth\ndata: {Growth().model_dump_json()}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Size:
    """How far the job has come that carries a trial now."""

    job_id: str
    state: str
    latest: tuple[tuple[str, float | None], ...]
    n_bytes: int


def size_of(trial: TrialView, connect: Connect) -> Size | None:
    """None: nothing carries it yet, or the runtime is away."""
    names = job_ids(trial)
    if not names:
        return None
    try:
        with connect() as runtime:
            job = runtime.job(names[-1])
            latest = tuple(sorted(runtime.run(job.run_id).latest.items()))
            n_bytes = runtime.logs(job.job_id, offset=-1, limit=1).next_offset if job.attempts else 0
            return Size(job.job_id, job.state, latest, n_bytes)
    except (NotFound, RuntimeClientError):
        return None


async def growth_stream(
    pulse: Pulse, read: Callable[[], TrialView], connect: Connect, *, look_every_s: float = LOOK_EVERY_S
) -> AsyncIterator[bytes]:
    """An event whenever there is more; ends when the trial or the service does, and else by the reader."""
    before = await asyncio.to_thread(lambda: size_of(read(), connect))
    yield HELLO
    silent_s = 0.0
    while not pulse.is_closed:
        await asyncio.sleep(look_every_s)
        trial = await asyncio.to_thread(read)
        now = await asyncio.to_thread(size_of, trial, connect)
        silent_s += look_every_s
        if trial.is_ended or (now is not None and now != before):
            before, silent_s = now, 0.0
            yield MORE
        elif silent_s >= KEEP_ALIVE_S:
            silent_s = 0.0
            yield SIGN_OF_LIFE
        if trial.is_ended:
            return

"""Following a job to its end: its states on standard error, its output on standard output."""

from __future__ import annotations

import time

from runtime_client.models import JobView
from runtime_client.protocol import Runtime

from .job_output import StreamsFollower
from .output import duration, note
from .patience import patiently

PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 1.0


class JobFollower:
    """Prints what is new at each `step`."""

    def __init__(
        self,
        client: Runtime,
        job_id: str,
        *,
        shows_output: bool,
        shows_state: bool,
        rank: str | None = None,
        attempt: int | None = None,
    ) -> None:
        """`rank`: see `job_output.is_wanted`; `attempt`: only this one (None: all, one after the other)."""
        self._client = client
        self._job_id = job_id
        self._rank = rank
        self._only = attempt
        self._streams: StreamsFollower | None = None
        self._shows_output = shows_output
        self._shows_state = shows_state
        self._said = ""

    def until_end(self) -> JobView:
        """Return when the job has ended and all its output is printed.

        Raises:
            RuntimeClientError: the runtime stayed away, or the job is not known.
        """
        pause_s = PAUSE_FIRST_S
        while True:
            job = patiently(lambda: self._client.job(self._job_id))
            self._say_state(job)
            has_printed = self._print_output(job)
            if job.is_ended:
                return job
            pause_s = PAUSE_FIRST_S if has_printed else min(PAUSE_MAX_S, pause_s * 1.5)
            time.sleep(pause_s)

    def _say_state(self, job: JobView) -> None:
        said = state_line(job)
        if self._shows_state and said != self._said:
            note(said)
        self._said = said

    def _print_output(self, job: JobView) -> bool:
        """Print what the attempts wrote since the last time; whether there was anything."""
        if not self._shows_output:
            return False
        has_printed = False
        last = self._streams.attempt if self._streams is not None else 0
        for attempt in (one.attempt for one in job.attempts if one.attempt >= last):
            if self._only not in (None, attempt):
                continue
            if self._streams is None or attempt > self._streams.attempt:
                self._streams = StreamsFollower(
                    client=self._client, job_id=self._job_id, attempt=attempt, rank=self._rank
                )
            has_printed |= self._streams.step()
        return has_printed


def state_line(job: JobView) -> str:
    """`j1 running on local:0,1 (attempt 2)`, `j1 failed after 12 s: ...`."""
    if job.is_ended:
        ran = duration(job.ended_at - job.started_at) if job.ended_at and job.started_at else ""
        after = f" after {ran}" if ran else ""
        why = f": {job.state_reason}" if job.state_reason and job.state != "succeeded" else ""
        return f"{job.job_id} {job.state}{after}{why}"
    if job.state in ("starting", "running") and job.attempts:
        where = placed(job)
        again = f" (attempt {job.attempts[-1].attempt})" if len(job.attempts) > 1 else ""
        return f"{job.job_id} {job.state} on {where}{again}"
    why = f": {job.state_reason}" if job.state_reason else ""
    return f"{job.job_id} {job.state}{why}"


def placed(job: JobView) -> str:
    """Where its latest attempt is or was, as `local:0,1`."""
    if not job.attempts:
        return ""
    return " ".join(
        f"{placement.node_id}:{','.join(str(device) for device in placement.devices)}"
        for placement in job.attempts[-1].placements
    )

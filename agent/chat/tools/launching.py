"""Replicates: a trial's configuration again, on seeds that it has not run on.

A session that still searches makes them itself: they are trials of it, and count in its verdicts. Of another one they
are jobs for whoever asks, with what the trial's own job ran with, and its budgets and claims are not touched.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from agent.chat.entry import Victim
from agent.chat.tool import Desk, Foreseen, Result, Slash
from agent.planner import seeds
from agent.planner.budget import HOUR_S
from agent.reading.session import Known
from agent.store.views import SessionState, TrialView
from agent.tools.again import spec_again
from agent.tools.errors import FixAndRetry, ToolFailed, tool_boundary
from runtime_client.models import DependsOn, Forecast, JobSpec
from runtime_client.protocol import Runtime

from .cancelling import described
from .finding import at_runtime, job_of, known_of, trial_of
from .made import Acts
from .showing import duration, plural, result, table
from .words import Arguments, TrialId, Words, taken

MOST = 20
_MOST_SEEDS = 1_000
"""Looked at for ones that nobody has used."""


class Replicates(Arguments):
    trial: TrialId
    n: int = Field(default=1, ge=1, le=MOST, description="How many, each on a seed of its own.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What a trial ran, to be run again."""

    trial: TrialView
    known: Known
    training: JobSpec
    scorer: JobSpec | None


def _ahead(desk: Desk, arguments: Replicates) -> Foreseen:
    with at_runtime(desk) as runtime:
        recorded = _recorded(desk, runtime, arguments)
        forecast = runtime.what_if(_on_seed(recorded, next(_unused(recorded))))
        if forecast.prospect == "never":
            raise ToolFailed(f"replicates of {recorded.trial.trial_id} can not run: {forecast.summary}", code="never")
        victims = tuple(_victims(runtime, forecast))
    each_s = _cost_s(recorded)
    seconds = None if each_s is None else each_s * arguments.n
    rate = recorded.known.task.budgets.usd_per_device_hour
    usd = None if seconds is None or rate is None else seconds / HOUR_S * rate
    name = recorded.trial.trial_id
    what = f"launch {plural(arguments.n, 'replicate')} of {name} on fresh seeds, {_whose(recorded.known)}"
    why = _why_ask(seconds, victims, desk.ask_above_device_minutes)
    return Foreseen(
        what=f"{what}; the first: {forecast.summary}",
        asks=bool(why),
        why=why,
        device_seconds=seconds,
        cost_usd=usd,
        victims=victims,
    )


def _victims(runtime: Runtime, forecast: Forecast) -> Iterator[Victim]:
    for one in forecast.victims:
        what = f"{described(runtime.job(one.job_id))}, class {one.priority_class}, would be asked to leave"
        yield Victim(job_id=one.job_id, what=what, lost_s=one.lost_device_seconds)


def _why_ask(seconds: float | None, victims: tuple[Victim, ...], limit_minutes: float) -> str:
    """Empty: nobody needs to be asked."""
    if victims:
        return "others would have to leave for it"
    if seconds is None:
        return f"what it costs is not known, which counts as more than {limit_minutes:g} device-minutes"
    if seconds > limit_minutes * 60:
        return f"about {duration(seconds)} of device time are more than {limit_minutes:g} device-minutes"
    return ""


def _whose(known: Known) -> str:
    session_id = known.view.session_id
    if _takes_them(known):
        return f"as trials of session {session_id}, which count in its verdicts"
    return f"as jobs of yours, class {known.task.priority_class}: session {session_id} searches no more"


def _takes_them(known: Known) -> bool:
    return known.view.state is SessionState.RUNNING and known.plan.search_closed is None


def _launch(desk: Desk, arguments: Replicates, by: str) -> Result:
    with at_runtime(desk) as runtime:
        recorded = _recorded(desk, runtime, arguments)
        if _takes_them(recorded.known):
            desk.store.suggest_again(recorded.trial.trial_id, arguments.n, by=by)
            said = f"session {recorded.trial.session_id} is asked for {plural(arguments.n, 'replicate')} of"
            return result(f"{said} {recorded.trial.trial_id}; they go first")
        rows: list[tuple[str, int, str]] = []
        for seed in itertools.islice(_unused(recorded), _MOST_SEEDS):
            if len(rows) == arguments.n:
                break
            submitted = runtime.submit_many([_on_seed(recorded, seed, by=by)])[0]
            if submitted.job is None:
                assert submitted.error is not None
                raise FixAndRetry(f"{submitted.error.message}{_so_far(rows)}", code=submitted.error.code)
            if submitted.is_existing:  # asked for before
                continue
            rows.append((_scored(recorded, runtime, submitted.job.job_id, seed), seed, submitted.job.state))
    name = recorded.trial.trial_id
    said = f"{plural(len(rows), 'replicate')} of {name} launched, outside of {recorded.trial.session_id}"
    return result(said, table=table(("job", "seed", "state"), rows))


def _so_far(rows: list[tuple[str, int, str]]) -> str:
    return f" (launched before that: {', '.join(row[0] for row in rows)})" if rows else ""


def _scored(recorded: _Recorded, runtime: Runtime, job_id: str, seed: int) -> str:
    """The job that gives the value of one that was submitted."""
    if recorded.scorer is None:
        return job_id
    token = f"chat/{recorded.known.view.key}/{recorded.trial.configuration}/{seed}/score"
    follows = {"depends_on": (DependsOn(job=job_id),), "seed": seed, "idempotency_token": token}
    with tool_boundary():
        return runtime.submit(recorded.scorer.model_copy(update=follows)).job_id


def _recorded(desk: Desk, runtime: Runtime, arguments: Replicates) -> _Recorded:
    trial = trial_of(desk, arguments.trial)
    if trial.job_id is None:
        raise FixAndRetry(f"{trial.trial_id} is {trial.state.value}: no job of it is known yet", code="no_job")
    known = known_of(desk, trial.session_id)
    model = trial.facts.device_model
    scorer = None if trial.facts.score_job_id is None else job_of(runtime, trial.facts.score_job_id).spec
    return _Recorded(
        trial=trial,
        known=known,
        training=spec_again(job_of(runtime, trial.job_id).spec, trial_id=trial.trial_id, device_model=model),
        scorer=None if scorer is None else spec_again(scorer, trial_id=trial.trial_id, device_model=None),
    )


def _on_seed(recorded: _Recorded, seed: int, *, by: str = "") -> JobSpec:
    """The token follows from configuration and seed, so that no seed runs twice."""
    name = recorded.trial.trial_id
    return recorded.training.model_copy(
        update={
            "seed": seed,
            "priority_class": recorded.known.task.priority_class,
            "mlflow_run_name": f"{name} seed {seed}",
            "idempotency_token": f"chat/{recorded.known.view.key}/{recorded.trial.configuration}/{seed}",
            "tags": {"nightlab.replicates": name, **({"nightlab.launched_by": by} if by else {})},
        }
    )


def _unused(recorded: _Recorded) -> Iterator[int]:
    """Seeds that the configuration has not run on in its session, and that are not kept for the claim at its end."""
    mine = recorded.trial.configuration
    used = {one.seed for one in recorded.known.history.trials if one.configuration == mine}
    return (seed for seed in seeds.racing(recorded.known.task) if seed not in used)


def _cost_s(recorded: _Recorded) -> float | None:
    """Mean device-seconds of one run: of this configuration, else of the session; None: nothing was measured."""
    trials = [one for one in recorded.known.history.trials if one.is_ended and one.device_seconds > 0]
    alike = [one for one in trials if one.configuration == recorded.trial.configuration]
    found = [one.device_seconds for one in alike or trials]
    return sum(found) / len(found) if found else None


def _words(words: Words) -> dict[str, str]:
    return taken(words, "trial", optional=("n",))


TOOLS = (
    Acts(
        name="launch_replicates",
        description="Run a trial's configuration again on fresh seeds, to see how much of its value is luck.",
        arguments=Replicates,
        slash=Slash(name="launch", usage="/launch TRIAL [N]", summary="run a trial again on fresh seeds", parse=_words),
        ahead=_ahead,
        do=_launch,
    ),
)

"""Reading trials: one of them, two side by side, a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from agent.chat.tool import Desk, Result, Slash
from agent.planner.compared import hold_against
from agent.planner.curve import Point, alike
from agent.store.views import ParamValue, TrialView
from agent.task import Task
from agent.tools.curves import metric_names, read_points
from agent.tools.errors import FixAndRetry
from runtime_client.protocol import Runtime

from .finding import at_runtime, job_of, trial_of
from .made import Reads
from .showing import duration, number, plot, result, table
from .words import Arguments, OfTrial, TrialId, Words, of_trial, taken

MOST_POINTS = 400
"""Of one curve; what is more is thinned out."""
_MOST_CURVES = 4


class TwoTrials(Arguments):
    first: TrialId
    second: TrialId


class OfCurve(Arguments):
    of: str = Field(description="Id of a trial or of a job.", max_length=120)
    metric: str | None = Field(
        default=None, description="Left out: the objective of a trial, what a job has to log.", max_length=250
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sought:
    job_ids: tuple[str, ...]
    """What the curve is made of, oldest first."""
    name: str
    metrics: tuple[str, ...]
    """Wanted first."""


def _trial(desk: Desk, arguments: OfTrial) -> Result:
    trial = trial_of(desk, arguments.trial)
    task = _task(desk, trial)
    rows: list[tuple[str, str | float | int | None]] = [
        ("state", trial.state.value),
        (task.objective.metric, number(trial.value)),
        ("purpose", trial.purpose.value),
        ("seed", trial.seed),
        ("suggested by", trial.suggested_by),
        ("why", trial.why),
        ("hypothesis", trial.hypothesis),
        ("job", trial.job_id),
        ("scored by job", trial.facts.score_job_id),
        ("note", trial.note),
        ("exit reason", trial.exit_reason),
        ("device time", duration(trial.device_seconds)),
        ("device", trial.facts.device_model),
        ("ended early", trial.facts.stopped_early),
        *((f"parameter {name}", _shown(value)) for name, value in trial.params.items()),
    ]
    if trial.facts.edited is not None:
        rows.append(("edited code", f"{trial.facts.edited.size}, from {trial.facts.edited.parent or 'the base'}"))
    if trial.facts.diagnosis is not None:
        rows.append(("diagnosis", trial.facts.diagnosis.cause))
        rows.append(("to change", trial.facts.diagnosis.suggestion))
    value = "no value yet" if trial.value is None else f"{task.objective.metric} = {trial.value:.6g}"
    said = f"{trial.trial_id} of {trial.session_id}: {trial.state.value}, {value}"
    return result(said, table=table(("what", "value"), [row for row in rows if row[1] not in (None, "")]))


def _compare(desk: Desk, arguments: TwoTrials) -> Result:
    first, second = trial_of(desk, arguments.first), trial_of(desk, arguments.second)
    held = hold_against(_siblings(desk, first), _siblings(desk, second), _task(desk, first), _task(desk, second))
    names = [*first.params, *(name for name in second.params if name not in first.params)]
    rows: list[tuple[str, str | float | int | None, str | float | int | None]] = [
        ("value", number(first.value), number(second.value)),
        ("seed", first.seed, second.seed),
        ("code", _code(first), _code(second)),
        ("device", first.facts.device_model, second.facts.device_model),
    ]
    params = [(name, _shown(first.params.get(name)), _shown(second.params.get(name))) for name in names]
    rows += [row for row in params if row[1] != row[2]]
    said = held.words(first.trial_id, second.trial_id)
    if held.result is not None and not held.n_pairs:
        said += " One value each says nothing: replicates on the same seeds would."
    return result(said, table=table(("", first.trial_id, second.trial_id), rows))


def _curve(desk: Desk, arguments: OfCurve) -> Result:
    with at_runtime(desk) as runtime:
        sought = _sought(desk, runtime, arguments)
        drawn = []
        for metric in sought.metrics[:_MOST_CURVES]:
            points = read_points(runtime, sought.job_ids, metric)
            if points:
                drawn.append((metric, points))
    if not drawn:
        raise FixAndRetry(f"{sought.name} has logged no metric yet", code="no_metric")
    said = "; ".join(_told(metric, points) for metric, points in drawn)
    title = f"{sought.name} ({', '.join(sought.job_ids)})"
    series = [(metric, [(float(p.step), _finite(p)) for p in _thinned(points)]) for metric, points in drawn]
    label = drawn[0][0] if len(drawn) == 1 else "value"
    return result(f"{sought.name}: {said}", plot=plot(title, "step", label, series))


def _sought(desk: Desk, runtime: Runtime, arguments: OfCurve) -> _Sought:
    job_ids, name, wanted = _jobs_behind(desk, runtime, arguments.of.strip())
    if arguments.metric is None:
        logged = metric_names(runtime, job_ids)
        usual = tuple(metric for metric in wanted if metric in logged)
        return _Sought(job_ids=job_ids, name=name, metrics=usual or tuple(logged))
    logged = metric_names(runtime, job_ids)
    if arguments.metric not in logged:
        near = ", ".join(alike(arguments.metric, logged) or logged[:10]) or "none yet"
        raise FixAndRetry(f"{name} has logged no {arguments.metric!r}; it has logged: {near}", code="no_metric")
    return _Sought(job_ids=job_ids, name=name, metrics=(arguments.metric,))


def _jobs_behind(desk: Desk, runtime: Runtime, given: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    if given.removeprefix("j").isdecimal():
        job = job_of(runtime, f"j{given.removeprefix('j')}")
        return (job.job_id,), job.job_id, job.spec.success.required_metrics
    trial = trial_of(desk, given)
    if not trial.trained_by:
        raise FixAndRetry(f"{trial.trial_id} has no job yet: it is {trial.state.value}", code="no_job")
    task = _task(desk, trial)
    scored = () if trial.facts.score_job_id is None else (trial.facts.score_job_id,)
    return (*trial.trained_by, *scored), trial.trial_id, (task.objective.metric,)


def _told(metric: str, points: Sequence[Point]) -> str:
    finite = [(p.step, p.value) for p in points if p.is_finite and p.value is not None]
    n_lost = len(points) - len(finite)
    lost = f", {n_lost} not finite" if n_lost else ""
    if not finite:
        return f"{metric}: {len(points)} points, none finite"
    values = [value for _, value in finite]
    last = f"last {finite[-1][1]:.6g} at step {finite[-1][0]}"
    return f"{metric}: {len(points)} points{lost}, {last}, from {min(values):.6g} to {max(values):.6g}"


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Evenly, the last one always."""
    n = len(points)
    if n <= MOST_POINTS:
        return list(points)
    picked = sorted({round(i * (n - 1) / (MOST_POINTS - 1)) for i in range(MOST_POINTS)})
    return [points[i] for i in picked]


def _finite(point: Point) -> float | None:
    return point.value if point.is_finite else None


def _siblings(desk: Desk, trial: TrialView) -> list[TrialView]:
    return [one for one in desk.store.trials(trial.session_id) if one.configuration == trial.configuration]


def _task(desk: Desk, trial: TrialView) -> Task:
    return Task.model_validate_json(desk.store.session(trial.session_id).task_json)


def _code(trial: TrialView) -> str:
    return "the base" if trial.facts.edited is None else f"edited, {trial.facts.edited.tree[:8]}"


def _shown(value: ParamValue) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _two(words: Words) -> dict[str, str]:
    return taken(words, "first", "second")


def _of_curve(words: Words) -> dict[str, str]:
    return taken(words, "of", optional=("metric",))


TOOLS = (
    Reads(
        name="read_trial",
        description="One trial: parameters, value, seed, why it was tried, its job, how it ended.",
        arguments=OfTrial,
        slash=Slash(name="trial", usage="/trial TRIAL", summary="all that is known of a trial", parse=of_trial),
        look=_trial,
    ),
    Reads(
        name="compare_trials",
        description="Is one trial's configuration better than another's? Judged by code, on replicates with the "
        "same seeds; also what differs between them.",
        arguments=TwoTrials,
        slash=Slash(name="compare", usage="/compare TRIAL TRIAL", summary="whether one is better, by code", parse=_two),
        look=_compare,
    ),
    Reads(
        name="read_curve",
        description="The curve of a metric of a trial or a job, drawn for the person; its ends and extremes as text.",
        arguments=OfCurve,
        slash=Slash(
            name="curve", usage="/curve ID [METRIC]", summary="the curve of a metric of a trial or job", parse=_of_curve
        ),
        look=_curve,
    ),
)

"""From the store and the runtime to what the API says of one trial. It changes nothing.

The runtime may be away: what the store knows is told all the same, and why the rest is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from agent.coding.diff import diff_of
from agent.planner.compared import Held, hold_against
from agent.planner.configuration import configuration_id, default_params
from agent.planner.plan_text import UnknownPlanVersion, plan_from_json
from agent.planner.trial_search import Shelf, gain_over_default, standing
from agent.store.store import AgentStore, TrialNotFound
from agent.store.views import Purpose, TrialView
from agent.task import Task
from agent.web.trial_wire import AgainstDefault, CodeChange, JobPart, ParameterRow, RunPlace, Sibling, TrialDetail
from runtime_client.errors import NotFound, RuntimeClientError
from runtime_client.protocol import Runtime

Connect = Callable[[], AbstractContextManager[Runtime]]
JOBS_LOOKED_AT = 200


def detail(store: AgentStore, trial_id: str, connect: Connect) -> TrialDetail:
    """
    Raises:
        TrialNotFound: there is none of this id.
    """
    trial = store.trial(trial_id)
    shelf = _shelf(store, trial.session_id)
    parent = parent_of(store, trial)
    jobs, problem = _jobs(trial, connect)
    is_default = trial.configuration == configuration_id(default_params(shelf.task))
    return TrialDetail(
        trial=trial,
        task_name=shelf.task.task,
        metric=metric_of(trial, shelf.task),
        direction=shelf.task.objective.direction.value,
        hypothesis=(shelf.hypotheses or {}).get(trial.hypothesis or ""),
        parent_id=None if parent is None else parent.trial_id,
        is_default=is_default,
        parameters=_parameters(trial, shelf.task, parent),
        standing=standing(shelf, trial),
        gain_over_default=None if is_default else gain_over_default(shelf, trial),
        against_default=None if is_default else _against_default(shelf, trial),
        replicates=_replicates(trial, shelf.trials),
        jobs=jobs,
        runtime_problem=problem,
    )


def metric_of(trial: TrialView, task: Task) -> str:
    """What its value is of: the look at the held-out metric has another one."""
    if trial.purpose is Purpose.HELD_OUT and task.held_out is not None:
        return task.held_out.metric
    return task.objective.metric


def parent_of(store: AgentStore, trial: TrialView) -> TrialView | None:
    """The trial that it was made from; None: the default."""
    edited = trial.facts.edited
    name = (edited.parent if edited is not None else None) or trial.facts.fixes
    if name is None or name == "base":
        return None
    try:
        found = store.trial(name)
    except TrialNotFound:
        return None
    return found if found.session_id == trial.session_id else None


def code_change(store: AgentStore, trial: TrialView, home: Path | None, *, is_against_base: bool) -> CodeChange:
    """What its code changes against the trial that it was made from, or against the session's base."""
    edited = trial.facts.edited
    parent = None if is_against_base else parent_of(store, trial)
    before = None if parent is None else parent.facts.edited
    against = "base" if before is None or parent is None else parent.trial_id
    if edited is None:
        return CodeChange(against=against, diff=None, problem="it runs the session's base code, unchanged")
    task = Task.model_validate_json(store.session(trial.session_id).task_json)
    found = None if home is None else diff_of(edited, task, home, trial.session_id, against=before)
    if found is None:
        said = "the session's repository of edited code was removed, or can not be read"
        return CodeChange(against=against, diff=None, problem=said)
    return CodeChange(against=against, diff=found.text, is_cut=found.is_cut)


def job_ids(trial: TrialView) -> tuple[str, ...]:
    """Of all jobs that carried it, in the order in which they ran."""
    scoring = trial.facts.score_job_id
    return (*trial.trained_by, scoring) if scoring is not None and scoring not in trial.trained_by else trial.trained_by


def _shelf(store: AgentStore, session_id: str) -> Shelf:
    session, plans = store.session(session_id), store.plans(session_id)
    task = Task.model_validate_json(session.task_json)
    try:
        hypotheses = plan_from_json(plans[-1].plan_json, task).hypotheses if plans else ()
    except UnknownPlanVersion:
        hypotheses = ()
    return Shelf(
        task=task,
        trials=store.trials(session_id),
        best_configuration=session.result.best_configuration if session.result else None,
        verdict=session.result.verdict if session.result else None,
        hypotheses={one.hypothesis_id: one.statement for one in hypotheses},
    )


def _parameters(trial: TrialView, task: Task, parent: TrialView | None) -> tuple[ParameterRow, ...]:
    default = default_params(task)
    before = default if parent is None else parent.params
    names = [*default, *(name for name in trial.params if name not in default)]
    return tuple(
        ParameterRow(name=name, value=trial.params.get(name), default=default.get(name), parent=before.get(name))
        for name in names
    )


def _against_default(shelf: Shelf, trial: TrialView) -> AgainstDefault | None:
    default = configuration_id(default_params(shelf.task))
    held: Held = hold_against(
        [one for one in shelf.trials if one.configuration == trial.configuration],
        [one for one in shelf.trials if one.configuration == default],
        shelf.task,
    )
    if not held.n_pairs:
        return None
    interval = None if held.result is None else held.result.interval
    said = AgainstDefault(comparison=held.comparison.value, reason=held.reason, n_pairs=held.n_pairs)
    if interval is None:
        return said
    known = {name: getattr(interval, name) for name in ("estimate", "low", "high", "confidence")}
    return said.model_copy(update=known)


def _replicates(trial: TrialView, trials: Sequence[TrialView]) -> tuple[Sibling, ...]:
    return tuple(
        Sibling(trial_id=one.trial_id, seed=one.seed, purpose=one.purpose.value, state=one.state, value=one.value)
        for one in trials
        if one.configuration == trial.configuration and one.trial_id != trial.trial_id and one.is_at_search_fidelity
    )


def _jobs(trial: TrialView, connect: Connect) -> tuple[tuple[JobPart, ...], str | None]:
    """Its jobs, and why the runtime says nothing of them."""
    names = job_ids(trial)
    if not names:
        return (), None
    try:
        with connect() as runtime:
            return tuple(_job(runtime, name, _role(trial, name)) for name in names), None
    except RuntimeClientError as error:
        known = "the runtime does not answer"
        return tuple(JobPart(job_id=name, role=_role(trial, name), problem=known) for name in names), error.message


def _role(trial: TrialView, job_id: str) -> str:
    return "training" if job_id in trial.trained_by else "scoring"


def _job(runtime: Runtime, job_id: str, role: str) -> JobPart:
    try:
        job = runtime.job(job_id)
    except NotFound as error:
        return JobPart(job_id=job_id, role=role, problem=error.message)
    return JobPart(
        job_id=job_id,
        role=role,
        state=job.state,
        state_reason=job.state_reason,
        exit_reason=job.exit_reason,
        submitted_at=job.submitted_at,
        ended_at=job.ended_at,
        checkpoint_step=job.checkpoint_step,
        run_id=job.run_id,
        mlflow_url=_web_address(job.mlflow_url),
        attempts=job.attempts,
        suggestion=job.suggestion,
    )


def _web_address(url: str | None) -> str | None:
    """Only a web address becomes a link: the answer of another server is no place for `javascript:`."""
    return url if url is not None and url.startswith(("http://", "https://")) else None


def run_place(runtime: Runtime, run_id: str) -> RunPlace:
    """
    Raises:
        NotFound: there is no such run, or it is MLflow's own id and none of the newest jobs has it.
    """
    try:
        found = runtime.run(run_id)
    except NotFound:
        ours = [job.run_id for job in runtime.jobs(limit=JOBS_LOOKED_AT) if job.mlflow_run_id == run_id]
        if not ours:
            raise
        found = runtime.run(ours[0])
    url = _web_address(found.mlflow_url)
    return RunPlace(run_id=found.run_id, name=found.run_name, experiment=found.experiment_name, mlflow_url=url)

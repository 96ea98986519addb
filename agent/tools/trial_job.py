"""The job that carries a trial: the task's template with parameters, seed, fence and lineage filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.planner.budget import device_seconds_at_most
from agent.planner.comparable import needs_exclusive
from agent.planner.configuration import default_params
from agent.private_files import private_in_code
from agent.store.views import ParamValue, Purpose, SessionView, TrialView
from agent.task import Task
from runtime_client.models import (
    CodeSource,
    Compute,
    DependsOn,
    JobSpec,
    JobView,
    Sandbox,
    SessionFence,
    SnapshotMode,
    SuccessCriteria,
    Worth,
)

IDLE_CLASS = "exploratory"
"""Of work for slots that have nothing else to do, whatever the class of the task."""


def metric_of(task: Task, trial: TrialView) -> str:
    """The metric whose value a trial is run for."""
    is_look = trial.purpose is Purpose.HELD_OUT and task.held_out is not None
    return task.held_out.metric if is_look and task.held_out is not None else task.objective.metric


def trial_job(
    task: Task,
    session: SessionView,
    trial: TrialView,
    *,
    fence: int,
    before: JobView | None = None,
    code_root: Path | None = None,
) -> JobSpec:
    """The submission of a trial. The same trial and submission number give the same idempotency token.

    Args:
        before: the job that it goes on from, with the code that it began with; None: it begins.
        code_root: folder with the code of this trial; None: that of the task.
    """
    parameters: dict[str, ParamValue] = dict(task.job.parameters)
    if task.fidelity is not None:
        parameters[task.fidelity.parameter] = task.fidelity.value
    parameters.update(trial.params)
    if trial.purpose is Purpose.HELD_OUT and task.held_out is not None:
        parameters.update(task.held_out.parameters)
    return JobSpec(
        experiment_name=task.task,
        command=task.job.command,
        compute=_alone_if_needed(task.job.compute, task),
        environment=task.job.environment,
        code_source=_code_of(task, code_root) if before is None else before.spec.code_source,
        **_shut_off(task),
        finish_by=session.finish_by,
        continues=None if before is None else before.job_id,
        parameters=parameters,
        seed=trial.seed,
        args_style=task.job.args_style,
        env_variables=task.job.env_variables,
        priority_class=IDLE_CLASS if trial.is_idle_work else task.priority_class,
        worth=None
        if trial.worth is None
        else Worth(gain=trial.worth.gain, uncertainty=trial.worth.uncertainty, cost_s=trial.worth.cost_s),
        project=task.project,
        max_retries=task.job.max_retries,
        timeout_minutes=task.job.timeout_minutes,
        hang_minutes=task.job.hang_minutes,
        grace_seconds=task.job.grace_seconds,
        metric_sources=task.job.metric_sources,
        success=_success(task, trial) if task.score is None else SuccessCriteria(),
        mlflow_run_name=trial.trial_id,
        mlflow_parent_run_id=session.hypothesis_run_id,
        tags={
            "nightlab.session": trial.session_id,
            "nightlab.trial": trial.trial_id,
            "nightlab.purpose": trial.purpose.value,
            "nightlab.suggested_by": trial.suggested_by,
            "nightlab.configuration": trial.configuration,
            **({"nightlab.idle_time": trial.purpose.value} if trial.is_idle_work else {}),
            **_origin_tags(trial),
        },
        session=SessionFence(
            session_id=trial.session_id, fence=fence, device_seconds=device_seconds_at_most(task.budgets)
        ),
        idempotency_token=f"{session.key}/{trial.trial_id}/{trial.purpose.value}/{trial.submission}",
    )


def _code_of(task: Task, root: Path | None) -> CodeSource | None:
    """Without what is private. Edited code always runs from a snapshot: its folder goes when it was taken."""
    source, private = task.job.code_source, private_in_code(task)
    if source is not None and private:
        source = source.model_copy(update={"left_out": (*source.left_out, *private)})
    if root is None or source is None:
        return source
    return source.model_copy(update={"root_path": str(root), "snapshot": SnapshotMode.AUTO})


def _shut_off(task: Task) -> dict[str, Any]:
    """How far the training jobs of code trials are, base ones too: all are measured under the same conditions."""
    if task.code is None or task.code.sandbox != "sealed":
        return {}
    data = [source.path for source in task.data if source.fingerprint != "label"]
    return {"sandbox": Sandbox.SEALED, "readable": (*task.code.readable, *data)}


def _origin_tags(trial: TrialView) -> dict[str, str]:
    """Where it comes from and what was predicted of it, as far as that is known."""
    facts, expected, edited = trial.facts, trial.facts.expected, trial.facts.edited
    known = {
        "nightlab.code.tree": None if edited is None else edited.tree,
        "nightlab.code.commit": None if edited is None else edited.commit,
        "nightlab.code.parent": None if edited is None else edited.parent or "base",
        "nightlab.prompt": facts.prompt,
        "nightlab.model": facts.model,
        "nightlab.brief": facts.brief,
        "nightlab.fixes": facts.fixes,
        "nightlab.expected_probability": None if expected is None else f"{expected.probability:g}",
        "nightlab.expected_gain": None if expected is None or expected.effect is None else f"{expected.effect:g}",
    }
    return {name: value for name, value in known.items() if value is not None}


def like_job(task: Task, *, finish_by: float | None) -> JobSpec:
    """A job that asks for what a trial's asks for: to be foretold, never submitted. It takes no snapshot of code."""
    parameters: dict[str, ParamValue] = {**task.job.parameters, **default_params(task)}
    if task.fidelity is not None:
        parameters[task.fidelity.parameter] = task.fidelity.value
    return JobSpec(
        experiment_name=task.task,
        command=task.job.command,
        compute=_alone_if_needed(task.job.compute, task),
        environment=task.job.environment,
        parameters=parameters,
        seed=task.seeds.search,
        args_style=task.job.args_style,
        priority_class=task.priority_class,
        project=task.project,
        timeout_minutes=task.job.timeout_minutes,
        grace_seconds=task.job.grace_seconds,
        finish_by=finish_by,
    )


def score_job(
    task: Task,
    session: SessionView,
    trial: TrialView,
    training: JobSpec,
    training_id: str,
    *,
    fence: int,
    code: CodeSource | None = None,
    readable: tuple[str, ...] = (),
    tags: dict[str, str] | None = None,
) -> JobSpec:
    """The submission of the job that measures a trial after its training.

    It has the training's parameters, seed, environment, class, worth and level of sandbox. The same trial and
    submission number give the same idempotency token.

    Args:
        code: of a scorer that is kept apart; None: the training's.
        readable: private files that this job reads, besides what the training reads.
        tags: of this job, besides those of the training.
    """
    assert task.score is not None
    own: dict[str, Any] = {} if code is None else {"code_source": code}
    if training.sandbox is Sandbox.SEALED and readable:
        own["readable"] = (*training.readable, *readable)
    inherited = training.tags if code is None else _without_code(training.tags)
    limit = SessionFence(session_id=trial.session_id, fence=fence, device_seconds=device_seconds_at_most(task.budgets))
    return training.model_copy(
        update={
            "command": task.score.command,
            "compute": _alone_if_needed(task.score.compute, task),
            "timeout_minutes": task.score.timeout_minutes,
            "depends_on": (DependsOn(job=training_id),),
            "success": _success(task, trial),
            "mlflow_run_name": f"{trial.trial_id}-score",
            "tags": {**inherited, **(tags or {}), "nightlab.score_of": training_id},
            "session": limit,
            "finish_by": session.finish_by,
            "continues": None,
            "idempotency_token": f"{session.key}/{trial.trial_id}/{trial.purpose.value}/{trial.submission}/score",
            **own,
        }
    )


def _without_code(tags: dict[str, str]) -> dict[str, str]:
    """Those that do not tell what code the training ran."""
    own = ("nightlab.code", "nightlab.code_is_dirty")
    return {name: text for name, text in tags.items() if name not in own and not name.startswith("mlflow.source.")}


def _success(task: Task, trial: TrialView) -> SuccessCriteria:
    return SuccessCriteria(required_metrics=(metric_of(task, trial),))


def _alone_if_needed(compute: Compute, task: Task) -> Compute:
    """What measures a speed, a memory or what fits into some seconds shares its devices with nobody."""
    return compute.model_copy(update={"exclusive": True}) if needs_exclusive(task) else compute

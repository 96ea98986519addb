"""The public record: MLflow runs of the session and of its hypothesis, plan revisions, final values.

Session = parent run, hypothesis = child, the trials' jobs = grandchildren. All of it may be repeated.
"""

from __future__ import annotations

from agent.deps import Deps
from agent.store.views import FinalResult, Interval
from runtime_client.models import NewRun, RunUpdate

_TAG_LIMIT = 4000


def open_runs(deps: Deps) -> None:
    """Create the two runs, once; the same tokens return the same runs."""
    session = deps.memory.session
    if session.run_id is not None and session.hypothesis_run_id is not None:
        return
    parent = deps.runtime.create_run(
        NewRun(
            experiment_name=deps.task.task,
            run_name=session.session_id,
            tags={"nightlab.session": session.session_id, "nightlab.kind": "session"},
            idempotency_token=f"{session.key}/session",
        )
    )
    child = deps.runtime.create_run(
        NewRun(
            experiment_name=deps.task.task,
            run_name=f"{session.session_id}-hypothesis-1",
            parent_run_id=parent.run_id,
            tags={
                "nightlab.session": session.session_id,
                "nightlab.kind": "hypothesis",
                "nightlab.hypothesis": deps.memory.plan.claim.statement,
                "nightlab.acceptance": deps.memory.plan.claim.acceptance,
            },
            idempotency_token=f"{session.key}/hypothesis/1",
        )
    )
    deps.record.set_runs(parent.run_id, child.run_id)
    deps.memory.session = deps.record.session()


def publish_plans(deps: Deps) -> None:
    """Hand every plan revision that was not handed over yet to the runtime, as an artifact of the session's run."""
    run_id = deps.memory.session.run_id
    if not deps.memory.has_unpublished_plans or run_id is None:
        return
    for revision, plan_json in deps.record.unpublished_plans():
        deps.runtime.log_artifact(run_id, f"plan/revision-{revision}.json", plan_json.encode())
        deps.record.published_plan(revision)
    deps.memory.has_unpublished_plans = False


def close_runs(deps: Deps, result: FinalResult | None, *, status: str, message: str) -> None:
    """Write the final values and end both runs."""
    session = deps.memory.session
    metrics: dict[str, float] = {}
    tags = {"nightlab.message": message[:_TAG_LIMIT]}
    if result is not None:
        tags |= {
            "nightlab.verdict": result.verdict,
            "nightlab.comparison": result.comparison,
            "nightlab.best_configuration": result.best_configuration,
            "nightlab.default_configuration": result.default_configuration,
        }
        if result.code is not None:
            tags |= {
                "nightlab.best_code": result.code.state.commit,
                "nightlab.best_code_parent": result.code.parent or "base",
            }
            metrics |= _interval("over_parent", result.code.over_parent)
        metrics |= _interval("best_mean", result.best_mean)
        metrics |= _interval("default_mean", result.default_mean)
        metrics |= _interval("difference", result.difference)
        if result.held_out_value is not None:
            metrics["held_out"] = result.held_out_value
    params = {f"best.{name}": str(value) for name, value in result.best.items()} if result is not None else {}
    for run_id in (session.hypothesis_run_id, session.run_id):
        if run_id is not None:
            deps.runtime.update_run(run_id, RunUpdate(params=params, tags=tags, metrics=metrics, status=status))


def _interval(name: str, interval: Interval | None) -> dict[str, float]:
    if interval is None:
        return {}
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}

"""Small words for planner tests: trials and histories in one line."""

from __future__ import annotations

from agent.planner.configuration import canonical, configuration_id
from agent.planner.history import History
from agent.store.views import ParamValue, Purpose, TrialFacts, TrialState, TrialView
from agent.task import Task


def a_trial(
    task: Task,
    number: int,
    params: dict[str, ParamValue],
    value: float | None = None,
    *,
    seed: int = 0,
    purpose: Purpose = Purpose.SEARCH,
    state: TrialState | None = None,
    exit_reason: str | None = None,
    note: str | None = None,
    device_seconds: float | None = None,
    is_submitting: bool = False,
    facts: TrialFacts | None = None,
) -> TrialView:
    """Measured when it has a value; else as `state` says (launched by default). 10 device-seconds, none if proposed.

    Its configuration is that of its parameters, and of the code that its facts name.
    """
    point = canonical(params, task)
    known = facts or TrialFacts()
    found = state or (TrialState.MEASURED if value is not None else TrialState.LAUNCHED)
    return TrialView(
        trial_id=f"s1-t{number}",
        session_id="s1",
        number=number,
        configuration=configuration_id(point, known.edited),
        params=point,
        seed=seed,
        purpose=purpose,
        suggested_by="test",
        why="test",
        state=found,
        job_id=None if found is TrialState.PROPOSED else f"j{number}",
        value=value,
        note=note,
        exit_reason=exit_reason,
        device_seconds=(0.0 if found is TrialState.PROPOSED else 10.0) if device_seconds is None else device_seconds,
        proposed_at=0.0,
        launched_at=None,
        ended_at=None,
        is_submitting=is_submitting,
        facts=known,
    )


def a_history(*trials: TrialView) -> History:
    return History.of(trials)

"""When a session can not succeed: its first trials all end the same way without a value. Pure."""

from __future__ import annotations

from agent.doctor.diagnosis import FailureClass
from agent.doctor.rules import class_of_reason
from agent.doctor.signs import signs
from agent.planner.history import History
from agent.planner.proposers.doctor import may_be_mended
from agent.store.views import TrialState, TrialView
from agent.task import Task

NOT_SEALED = "sandbox_unavailable"
"""No node can seal the job that a trial of the task asks for: others would fare no better."""
N_ALIKE = 4
"""So many first trials that fail alike, the default among them, end the session."""

_NEW = "then start a new session"
_ADVICE = {
    "criteria_not_met": f"correct objective.metric in the task file, or log that metric in the script; {_NEW}",
    "non_finite_metric": f"make the default configuration train without NaN, or narrow the space; {_NEW}",
    "bad_python": f"set environment.python to an interpreter that exists; {_NEW}",
    "bad_command": f"correct job.command or job.code_source in the task file; {_NEW}",
    "run_timeout": f"raise job.timeout_minutes, or make one trial shorter; {_NEW}",
    "out_of_memory_device": f"make the default configuration smaller; {_NEW}",
    "out_of_memory_host": f"make the default configuration smaller; {_NEW}",
    "bad_arguments": f"make job.args_style and the space fit the arguments of the script; {_NEW}",
    "hung": f"look at stacks.txt among the logs of the attempt, or set job.hang_minutes; {_NEW}",
    NOT_SEALED: f"start nightlab where jobs can be sealed (`nightlab node list` says what is missing); {_NEW}",
    "refused": f"correct what the runtime names in the task file; {_NEW}",
}
"""By exit reason, where another task file is needed, and so a new session. The rest is mended as the doctor says, and
the session resumed."""
_OTHERWISE = "run the command by hand with the default parameters, and mend what its output says"


def hopeless(task: Task, history: History) -> str | None:
    """Why going on makes no sense and what to do about it, in words; None: it goes on."""
    ended = [trial for trial in history.search if trial.is_ended]
    is_of_the_machine = bool(ended) and ended[0].exit_reason == NOT_SEALED
    n_needed = 1 if is_of_the_machine else min(N_ALIKE, task.budgets.trials)
    first = history.search[: max(n_needed, 1)]
    if len(ended) < n_needed or not all(trial.state is TrialState.INVALID for trial in ended):
        return None
    if not all(trial.is_ended for trial in first) or len({trial.exit_reason for trial in first}) != 1:
        return None
    if may_be_mended(task, history):
        return None
    advice = _ADVICE.get(first[0].exit_reason or "") or _suggestion(first[0])
    if not advice.endswith(_NEW):
        advice += f"; then go on with: nightlab research resume {first[0].session_id}"
    what = "the default configuration ended without a value"
    if len(first) > 1:
        what = f"the first {len(first)} trials all ended without a value, the default configuration among them"
    return f"{what} ({first[0].trial_id}: {first[0].note}). What to do: {advice}"


def _suggestion(trial: TrialView) -> str:
    """What the doctor suggests, or would suggest for such an exit reason."""
    found = trial.facts.diagnosis
    if found is not None and found.failure is not FailureClass.UNKNOWN:
        return found.suggestion
    failure = class_of_reason(trial.exit_reason)
    return _OTHERWISE if failure is None else signs().words[failure].suggestion

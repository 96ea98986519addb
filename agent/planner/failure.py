"""When a session can not succeed: its first trials all end the same way without a value. Pure."""

from __future__ import annotations

from agent.planner.history import History
from agent.store.views import TrialState
from agent.task import Task

N_ALIKE = 4
"""So many first trials that fail alike, the default among them, end the session."""

_ADVICE = {
    "criteria_not_met": "correct objective.metric in the task file, or log that metric in the script",
    "non_finite_metric": "make the default configuration train without NaN, or narrow the space",
    "bad_python": "set environment.python to an interpreter that exists",
    "bad_command": "correct job.command or job.code_source in the task file",
    "import_error": "install what is missing into the Python of environment.python",
    "missing_file": "correct the path, or put the file where the script looks for it",
    "run_timeout": "raise job.timeout_minutes, or make one trial shorter",
    "queue_timeout": "free devices or ask for fewer in job.compute",
    "out_of_memory_device": "make the default configuration smaller",
    "out_of_memory_host": "make the default configuration smaller",
    "refused": "correct what the runtime names in the task file",
}


def hopeless(task: Task, history: History) -> str | None:
    """Why going on makes no sense and what to do about it, in words; None: it goes on."""
    ended = [trial for trial in history.search if trial.is_ended]
    n_needed = min(N_ALIKE, task.budgets.trials)
    first = history.search[: max(n_needed, 1)]
    if len(ended) < n_needed or not all(trial.state is TrialState.INVALID for trial in ended):
        return None
    if not all(trial.is_ended for trial in first) or len({trial.exit_reason for trial in first}) != 1:
        return None
    reason = first[0].exit_reason
    advice = _ADVICE.get(reason or "", "run the command by hand with the default parameters and look at its output")
    return (
        f"the first {len(first)} trials all ended without a value, the default configuration among them "
        f"({first[0].trial_id}: {first[0].note}). What to do: {advice}; then start a new session"
    )

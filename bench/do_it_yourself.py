"""What users put together themselves, on the same worlds and devices as a session of the lab, in virtual time.

Each tries the default first, then so many configurations in all, and claims its last best where that is not the
default: on one evaluation each, as such loops do. Devices are taken in the order of a queue, first come first served.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agent.planner.configuration import canonical, configuration_id, default_params
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.store.views import ParamValue, Purpose, TrialState, TrialView
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter, Task
from nightlab.lab.world import World
from runtime_client.models import JobSpec

Params = Mapping[str, ParamValue]
_STEP = 0.2
"""Standard deviation of a changed number, as a share of its range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    claimed: Params | None
    """None: it claims no gain."""
    span_s: float
    held_s: float
    """Device-seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """One world as such a loop sees it."""

    task: Task
    world: World
    draw: int

    def run(self, params: Params) -> tuple[float | None, float]:
        """The one value of a configuration, and how long it took; None: it gave none."""
        spec = JobSpec(
            experiment_name=self.task.task, command="look-up", parameters=dict(params), seed=self.task.seeds.search
        )
        course = self.world.course(spec, self.draw)
        curve = course.curves.get(self.task.objective.metric)
        return (curve[-1] if curve and course.exit_code == 0 else None), course.run_s

    def is_better(self, value: float | None, than: float | None) -> bool:
        return value is not None and (than is None or gain(value, than, self.task.objective.direction) > 0)


def keep_or_revert(lookup: Lookup, n_trials: int, *, wave: int) -> Result:
    """Change one parameter of the best so far and keep what is better; `wave` of them at once, then wait for all."""
    numbers = random.Random(lookup.draw)
    default = default_params(lookup.task)
    best, (best_value, span_s) = default, lookup.run(default)
    held_s, n_left = span_s, n_trials - 1
    while n_left > 0:
        tries = [_changed(best, lookup.task, numbers) for _ in range(min(wave, n_left))]
        n_left -= len(tries)
        runs = [(params, *lookup.run(params)) for params in tries]
        span_s += max(run_s for _, _, run_s in runs)
        held_s += sum(run_s for _, _, run_s in runs)
        for params, value, _ in runs:
            if lookup.is_better(value, best_value):
                best, best_value = params, value
    is_new = configuration_id(best) != configuration_id(default)
    return Result(claimed=best if is_new else None, span_s=span_s, held_s=held_s)


def one_at_a_time(lookup: Lookup, n_trials: int, _n_devices: int) -> Result:
    return keep_or_revert(lookup, n_trials, wave=1)


def waves(lookup: Lookup, n_trials: int, n_devices: int) -> Result:
    return keep_or_revert(lookup, n_trials, wave=n_devices)


def optuna_on_a_queue(lookup: Lookup, n_trials: int, n_devices: int) -> Result:
    """Optuna's TPE, the default first, a new trial for each device as it becomes free; the best value wins."""
    sampler, task = OptunaSampler(lookup.task), lookup.task
    trials: list[TrialView] = []
    running: list[tuple[float, int, float | None]] = []
    now = held_s = 0.0
    while len(trials) < n_trials or running:
        while len(trials) < n_trials and len(running) < n_devices:
            asked = sampler.ask(History.of(trials), 1)[0].params if trials else default_params(task)
            trials.append(_launched(task, len(trials) + 1, asked))
            value, run_s = lookup.run(asked)
            held_s += run_s
            heapq.heappush(running, (now + run_s, len(trials), value))
        now, number, value = heapq.heappop(running)
        trials[number - 1] = _ended(trials[number - 1], value)
    best = History.of(trials).best(task.objective.direction)
    is_new = best is not None and best.number != 1
    return Result(claimed=best.params if best is not None and is_new else None, span_s=now, held_s=held_s)


PEERS: Mapping[str, Callable[[Lookup, int, int], Result]] = {
    "one at a time": one_at_a_time,
    "waves": waves,
    "Optuna on a queue": optuna_on_a_queue,
}


def _changed(params: Params, task: Task, numbers: random.Random) -> dict[str, ParamValue]:
    """One parameter is another one."""
    name = numbers.choice(list(task.space))
    return canonical({**params, name: _other(params[name], task.space[name], numbers)}, task)


def _other(value: ParamValue, parameter: Parameter, numbers: random.Random) -> ParamValue:
    match parameter:
        case CategoricalParameter():
            return numbers.choice([choice for choice in parameter.choices if choice != value] or [value])
        case FloatParameter() | IntParameter():
            assert isinstance(value, int | float), "a number of the space"
            ratio = parameter.high / parameter.low if parameter.log else 1.0
            step = numbers.gauss(0.0, _STEP)
            moved = value * ratio**step if parameter.log else value + step * (parameter.high - parameter.low)
            if isinstance(parameter, FloatParameter):
                return min(max(moved, parameter.low), parameter.high)
            whole = round(moved) if round(moved) != value else round(value + (1 if step > 0 else -1))
            return min(max(whole, parameter.low), parameter.high)


def _launched(task: Task, number: int, params: Params) -> TrialView:
    return TrialView(
        trial_id=f"t{number}",
        session_id="peer",
        number=number,
        configuration=configuration_id(params),
        params=dict(params),
        seed=task.seeds.search,
        purpose=Purpose.SEARCH,
        suggested_by="peer",
        why="",
        state=TrialState.LAUNCHED,
        job_id=f"j{number}",
        value=None,
        note=None,
        exit_reason=None,
        device_seconds=0.0,
        proposed_at=0.0,
        launched_at=0.0,
        ended_at=None,
    )


def _ended(trial: TrialView, value: float | None) -> TrialView:
    return replace(trial, state=TrialState.INVALID if value is None else TrialState.MEASURED, value=value)

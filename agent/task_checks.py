"""What is wrong with a task whose parts are right one by one: parts that contradict each other, or reach nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.code_checks import code_checks
from agent.fidelity_checks import fidelity_checks
from agent.model_checks import model_checks
from agent.planner.configuration import canonical, configuration_id, default_params, problems
from agent.planner.forbidden import why_no_condition
from agent.planner.proposers.points import listed
from agent.planner.seeds import n_pairs_at_most
from agent.planner.suggested import allowed
from agent.private_files import private_checks
from agent.task import CategoricalParameter, Task
from agent.trust_checks import trust_checks

_SEED_NAMES = frozenset({"seed", "randomseed", "rngseed", "globalseed", "randomstate", "rngstate"})
"""Names of seeds in any spelling: `random_seed`, `random-state`, `RandomSeed`."""
_FIRST_SEED_BELOW = 2**31
"""Seeds count up from the first ones, and stay below 2**32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    path: str
    """Dotted path in the file, `` (empty) for the whole."""
    message: str


def cross_checks(task: Task) -> Iterator[Problem]:
    """Every problem of a task whose parts are right one by one."""
    root = task.job.code_source.root_path if task.job.code_source else ""
    if root and not Path(root).is_dir():
        yield Problem(path="job.code_source.root_path", message=f"{root} is not a folder")
    searched = sorted(task.space)
    for name in task.job.parameters:
        if name in task.space:
            yield Problem(path=f"job.parameters.{name}", message=f"is searched too (space.{name}); keep one of them")
    yield from _reach_checks(task)
    yield from _fidelity_checks(task, searched)
    if task.held_out is not None:
        for name in task.held_out.parameters:
            if name in task.space:
                what = "is searched; a held-out job runs the chosen configuration, so it may not change it"
                yield Problem(path=f"held_out.parameters.{name}", message=what)
        if task.held_out.metric == task.objective.metric:
            what = f"{task.held_out.metric!r} is the objective itself; a held-out metric must be another one"
            yield Problem(path="held_out.metric", message=what)
    for name, parameter in task.space.items():
        if isinstance(parameter, CategoricalParameter):
            yield from _choice_checks(name, parameter)
    yield from _seed_checks(task)
    yield from _possible_checks(task)
    yield from _forbid_checks(task)
    yield from _point_checks(task)
    parts = (trust_checks, model_checks, code_checks, private_checks, fidelity_checks)
    found = (problem for checks in parts for problem in checks(task))
    yield from (Problem(path=path, message=what) for path, what in found)


def _forbid_checks(task: Task) -> Iterator[Problem]:
    for at, text in enumerate(task.forbid):
        wrong = why_no_condition(text, task)
        if wrong is not None:
            yield Problem(path=f"forbid.{at}", message=wrong)


def _seed_checks(task: Task) -> Iterator[Problem]:
    """The seed is nobody's to choose: searched, the luckiest wins; fixed, every replicate is the same run again."""
    for name in task.space:
        if re.sub(r"[\W_]", "", name.casefold()) in _SEED_NAMES:
            what = "the seed is set by nightlab (see seeds); searched, the luckiest would win: choose another name"
            yield Problem(path=f"space.{name}", message=what)
    fixed = "would fix the seed of every trial, so that replicates repeat one run; leave it out: nightlab sets it"
    if "seed" in task.job.parameters:
        yield Problem(path="job.parameters.seed", message=fixed)
    if task.held_out is not None and "seed" in task.held_out.parameters:
        yield Problem(path="held_out.parameters.seed", message=fixed)
    if task.fidelity is not None and task.fidelity.parameter == "seed":
        yield Problem(path="fidelity.parameter", message=fixed)


def _point_checks(task: Task) -> Iterator[Problem]:
    """Points that no trial can be made of, or that the budget has no room for."""
    is_whole = True
    for at, point in enumerate(task.search.points):
        for name, value in point.items():
            path = f"search.points.{at}.{name}"
            if name not in task.space:
                is_whole = False
                yield Problem(path=path, message=f"is not in the space; allowed: {', '.join(task.space)}")
            elif problems(canonical({**default_params(task), name: value}, task), task):
                is_whole = False
                yield Problem(path=path, message=f"{value!r} is not allowed; allowed: {allowed(name, task)}")
    if not task.search.points or not is_whole:
        return
    n = len(listed(task).keys() | {configuration_id(default_params(task))})
    if n > task.budgets.trials:
        what = (
            f"{task.budgets.trials} is too few for search.points: they are {n} different configurations, the default "
            f"included, which comes first in any case; give {n} at least"
        )
        yield Problem(path="budgets.trials", message=what)


def _possible_checks(task: Task) -> Iterator[Problem]:
    """What no session could ever do: use seeds that do not exist, run nothing, reach the target or a verdict."""
    for field in ("search", "first_fresh", "first_racing"):
        value = getattr(task.seeds, field)
        if value >= _FIRST_SEED_BELOW:
            what = f"{value} is too large; it must be below {_FIRST_SEED_BELOW}, since others follow it"
            yield Problem(path=f"seeds.{field}", message=what)
    commands = {"job.command": task.job.command} | ({"score.command": task.score.command} if task.score else {})
    for path, command in commands.items():
        if not "".join(command).strip():
            yield Problem(path=path, message=f"is empty; seen: {command!r}")
    low, target, high = task.objective.valid.low, task.objective.target, task.objective.valid.high
    if target is not None and ((low is not None and target < low) or (high is not None and target > high)):
        what = f"{target:g} lies outside objective.valid: a value that reaches it would not count"
        yield Problem(path="objective.target", message=what)
    yield from _pairs_checks(task)


def _pairs_checks(task: Task) -> Iterator[Problem]:
    """A pair at most doubles the evidence, so that too few can support no claim, however large the gain."""
    from agent.planner.statistics import pairs_needed  # scipy, which a command that reads a task may do without

    if not task.search.confirm:
        return
    n, total = n_pairs_at_most(task), task.trust.error_budget
    needed = pairs_needed(1.0, 0.0, total / 2)
    if needed is not None and n < needed:
        what = (
            f"{n} pairs can support no claim, however large the gain: trust.error_budget {total:g} (half of it is for "
            f"the end) takes {needed} at least; give that many, or a larger error budget"
        )
        yield Problem(path="seeds.max_pairs", message=what)


def _reach_checks(task: Task) -> Iterator[Problem]:
    """Parameters that would never reach the script: the search would compare a configuration with itself.

    `args_style: none`, written out, is taken at its word: the script reads the file at HYPERPARAMETERS_PATH.
    """
    if "args_style" in task.job.model_fields_set:
        return
    command = task.job.command if isinstance(task.job.command, str) else " ".join(task.job.command)
    names = [*task.space, *([task.fidelity.parameter] if task.fidelity else [])]
    lost = [name for name in names if f"{{{name}}}" not in command]
    if lost and "HYPERPARAMETERS_PATH" not in command:
        what = (
            f"is required: nothing passes {', '.join(lost)} to the command. `argparse` appends --{lost[0]} VALUE "
            f"(others: hydra, env, yaml); or write {{{lost[0]}}} in the command; or `none`, for a script that reads "
            "the file at HYPERPARAMETERS_PATH"
        )
        yield Problem(path="job.args_style", message=what)


def _fidelity_checks(task: Task, searched: list[str]) -> Iterator[Problem]:
    if task.fidelity is None:
        return
    name = task.fidelity.parameter
    if name in task.space:
        what = f"{name!r} is searched ({', '.join(searched)}); the fidelity parameter has one fixed value"
        yield Problem(path="fidelity.parameter", message=what)
    if name in task.job.parameters and task.job.parameters[name] != task.fidelity.value:
        what = f"{task.fidelity.value!r} contradicts job.parameters.{name}: {task.job.parameters[name]!r}"
        yield Problem(path="fidelity.value", message=what)


def _choice_checks(name: str, parameter: CategoricalParameter) -> Iterator[Problem]:
    seen: list[object] = []
    for choice in parameter.choices:
        if choice in seen:
            yield Problem(path=f"space.{name}.choices", message=f"{choice!r} is given twice (or equals another choice)")
        seen.append(choice)

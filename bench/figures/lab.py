"""Figures of whole sessions in the virtual-time lab."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import fmean

from agent.store.views import Purpose
from agent.task import Task
from bench.figure import Figure, median_of, quartiles
from nightlab.lab.scripted import with_thinker
from nightlab.lab.sessions import Lived, Setting, live_alone
from nightlab.lab.synthetic import SyntheticWorld
from runtime.simulator.cluster import parse_nodes

N_DEVICES = 8


def busy_percent(quick: bool) -> Figure:
    """Share of the devices' time that trials hold while a slow proposer feeds them, no filler.

    From the first start to the last end of the session: the start, when nothing is thought yet, and the end, when
    the best is confirmed, count. The control has no backlog: each call gives one trial.
    """
    n_trials, draws = (300, range(1)) if quick else (400, range(5))
    setting = _setting(n_trials)
    lived = [_lived(setting, draw, batch=4) for draw in draws]
    control = [_lived(setting, draw, batch=1) for draw in range(1)]
    shares = [_busy(one) for one in lived]
    fed = fmean(_busy_while_fed(one) for one in lived)
    return Figure(
        id="agent.busy_percent",
        value=median_of(shares),
        unit="%",
        control=median_of([_busy(one) for one in control]),
        n=len(shares),
        spread=quartiles(shares),
        note=f"{n_trials} trials of 60 to 300 s on {N_DEVICES} devices, virtual time; proposer: 30 s a call, 4 trials "
        f"a call; {fed:.1f} % from the first start to the last search trial's; control: 1 trial a call",
    )


def _setting(n_trials: int) -> Setting:
    task = Task.model_validate(
        {
            "task": "busy",
            "objective": {"metric": "score", "direction": "maximize"},
            "job": {"command": "train"},
            "space": {
                "lr": {"type": "float", "low": 1e-5, "high": 1e-1, "log": True, "default": 1e-3},
                "width": {"type": "int", "low": 16, "high": 512, "default": 64},
                "kind": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"},
            },
            "budgets": {"trials": n_trials},
            "idle": {"replicate": False, "explore": False},
        }
    )
    return Setting(task=task, world=SyntheticWorld("sphere", task), nodes=parse_nodes(f"1x{N_DEVICES}"))


def _lived(setting: Setting, draw: int, *, batch: int) -> Lived:
    with tempfile.TemporaryDirectory(prefix="nl-bench-") as folder:
        return live_alone(
            setting, draw, Path(folder), change=lambda deps, actor: with_thinker(deps, actor, batch=batch)
        )


def _busy(lived: Lived) -> float:
    return _share(lived, max(end for _, end in _spans(lived)))


def _busy_while_fed(lived: Lived) -> float:
    """Until the last search trial started: as long as the proposer has something to do."""
    return _share(lived, max(t.launched_at or 0.0 for t in lived.trials if t.purpose is Purpose.SEARCH))


def _share(lived: Lived, until: float) -> float:
    spans = _spans(lived)
    begin = min(start for start, _ in spans)
    held = sum(min(end, until) - start for start, end in spans if start < until)
    return 100 * held / (N_DEVICES * (until - begin))


def _spans(lived: Lived) -> list[tuple[float, float]]:
    return [(a.ordered_at, a.ended_at or a.ordered_at) for job in lived.jobs for a in job.attempts]

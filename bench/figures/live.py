"""Figures of sessions with a real, small language model: how many of its turns are lost, and whether it hurts.

Whole sessions of the lab on tables of real training runs, in virtual time; the model is really asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, stdev

from scipy.stats import beta
from scipy.stats import t as student

from bench.figure import Figure, Unavailable
from bench.live_model import Played, play, served_model
from bench.tables import MEASURED, load

N_TRIALS = 24
N_DRAWS = 10
N_WITHOUT = 5
"""Sessions without a model beside each one with it, of as many sampler seeds."""
_SURE = 0.95


def lost_turns_percent(quick: bool) -> Figure:
    """Questions to the model from which no usable answer came, of all."""
    lived = _with_model(1, 6) if quick else _with_model(N_DRAWS, N_TRIALS)
    turns = [one for session in lived for one in session.asked if one.n_calls]
    calls = [call for session in lived for call in session.calls]
    n_lost = sum(one.value is None for one in turns)
    n_lost_calls = sum(call.outcome != "used" for call in calls)
    n_of_model = sum(session.n_of_model for session in lived)
    took_s = sorted(one.took_s for one in turns)
    return Figure(
        id="model.lost_turns_percent",
        value=100 * n_lost / len(turns),
        unit="%",
        control=100 * n_lost_calls / len(calls),
        n=len(turns),
        spread=(0.0, 100 * _upper(n_lost, len(turns))),
        note=f"{n_lost} of {len(turns)} questions, begun by {calls[0].rung}; control: {n_lost_calls} of {len(calls)} "
        f"calls, after which the question was asked again; {n_of_model} trials came of it; a question took "
        f"{took_s[len(took_s) // 2]:.0f} s, {took_s[-1]:.0f} at most; spread: to the upper 95 % bound",
    )


def live_difference(quick: bool) -> Figure:
    """Final regret with the real model less that without it on the same draws: upper 95 % bound of the mean.

    Without it, the mean of several sessions: the sampler's seed moves the regret more than the model does.
    """
    if quick:
        raise Unavailable("it asks a real model many times: measure it without --quick, it takes most of an hour")
    with_model = [one.regret for one in _with_model(N_DRAWS, N_TRIALS)]
    without = [[_without(draw, 1000 * n) for n in range(N_WITHOUT)] for draw in range(N_DRAWS)]
    found = [one - fmean(others) for one, others in zip(with_model, without, strict=True)]
    by_chance = [one - fmean(others[:i] + others[i + 1 :]) for others in without for i, one in enumerate(others)]
    mean, width = fmean(found), _width(found, len(found))
    return Figure(
        id="model.live_difference",
        value=mean + width,
        unit="regret",
        control=_width(by_chance, len(found)),
        n=len(found),
        spread=(mean - width, mean + width),
        note=f"mean {mean:+.4f}: {fmean(with_model):.4f} with, {fmean(map(fmean, without)):.4f} without it; control: "
        "the bound of a session without a model instead, whose mean is 0; "
        f"by draw {', '.join(f'{one:+.3f}' for one in found)}",
    )


@lru_cache(maxsize=2)
def _with_model(n_draws: int, n_trials: int) -> tuple[Played, ...]:
    """Each session goes on with the model where the one before it ended, as sessions of one home folder do."""
    model = served_model()
    lived: list[Played] = []
    for draw in range(n_draws):
        table = load(MEASURED[draw % len(MEASURED)])
        before = next((one.calls for one in reversed(lived) if one.calls), ())
        lived.append(play(table, draw, n_trials=n_trials, model=model, before=before))
    return tuple(lived)


def _without(draw: int, sampler_seed: int = 0) -> float:
    table = load(MEASURED[draw % len(MEASURED)])
    return play(table, draw, n_trials=N_TRIALS, model=None, sampler_seed=sampler_seed).regret


def _width(differences: Sequence[float], n: int) -> float:
    """From the mean of `n` of them to its one-sided bound."""
    return float(student.ppf(_SURE, n - 1)) * stdev(differences) / math.sqrt(n)


def _upper(k: int, n: int) -> float:
    """Upper one-sided bound of a share (Clopper and Pearson, 1934)."""
    return 1.0 if k == n else float(beta.ppf(_SURE, k + 1, n - k))

"""Seeds of random lives: a few in the fast lane, the others in the suite `lives`."""

from __future__ import annotations

from typing import Any

import pytest

N_FAST = 3


def lives(n: int) -> list[Any]:
    """The seeds 0 to n - 1, for `parametrize`."""
    return [seed if seed < N_FAST else pytest.param(seed, marks=pytest.mark.lives) for seed in range(n)]

"""Points around eight places in 32 dimensions, on scales of their own, and which place each belongs to."""

import numpy as np

MEMBERS = 4


def examples(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    places = np.random.default_rng(20261203).normal(0, 1, (8, 32))
    labels = random.integers(0, 8, n)
    return (places[labels] + random.normal(0, 2.0, (n, 32))) * np.linspace(0.5, 20.0, 32), labels

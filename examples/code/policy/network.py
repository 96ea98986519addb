"""The policy: what is seen in, scores of the actions out. Yours to change.

`weights` are tensors of `autodiff` on numpy, or of torch: use methods that both have, listed in `autodiff/__init__.py`.
"""

import numpy as np


def init(random: np.random.Generator, n_features: int, n_actions: int, width: int) -> dict[str, np.ndarray]:
    return {
        "hidden": random.normal(0, 0.5, (n_features, width)),
        "hidden_bias": np.zeros(width),
        "out": random.normal(0, 0.05, (width, n_actions)),
        "out_bias": np.zeros(n_actions),
    }


def logits(weights, observed):
    """observed: a tensor (n, n_features). Returns (n, n_actions), any scale."""
    hidden = (observed @ weights["hidden"] + weights["hidden_bias"]).tanh()
    return hidden @ weights["out"] + weights["out_bias"]

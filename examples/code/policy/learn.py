"""What is learned from a batch of ways, and how weights change. Yours to change.

`ways` has arrays of numpy, one row a step and one column a boat: `rewards` and `is_counted` (whether the boat was under
way), both (steps, boats).
"""

import numpy as np


def advantages(ways) -> np.ndarray:
    """(steps, boats): by how much each action was better (positive) or worse than it might have been."""
    returns = ways.rewards.sum(axis=0)
    return np.broadcast_to(returns, ways.rewards.shape)


def loss(log_probabilities, chosen, ways, constant):
    """What is made small. log_probabilities: a tensor (steps * boats, actions); chosen: of the actions taken,
    (steps * boats,). `constant` makes a tensor of an array."""
    weight = (advantages(ways) * ways.is_counted).reshape(-1) / ways.is_counted.sum()
    return -(chosen * constant(weight)).sum()


class Optimizer:
    def __init__(self, weights, n_updates):
        self.weights = weights
        self.n_updates = n_updates

    def step(self, update, gradients):
        """After each of `n_updates` batches; `update` counts from 0. Arrays of numpy or torch, changed in place."""
        for name, gradient in gradients.items():
            self.weights[name] -= 0.4 * gradient

"""What of a model is tuned on instructions, on which characters, and how weights change. Yours to change."""

import numpy as np


def tuned(names: list[str]) -> list[str]:
    """Of the names of the weights (embedding, hidden, hidden_bias, out, out_bias), those that change."""
    return ["out", "out_bias"]


def importance(is_answer: np.ndarray) -> np.ndarray:
    """How much each character of a batch counts in the loss; most belong to prompts, one in each to the answer."""
    return np.ones(len(is_answer))


class Optimizer:
    """`weights` and `gradients` map names to arrays of numpy or of torch, changed in place."""

    def __init__(self, weights, n_steps):
        self.weights = weights
        self.n_steps = n_steps

    def step(self, step, gradients):
        """After each of `n_steps` batches; `step` counts from 0."""
        for name, gradient in gradients.items():
            self.weights[name] -= 0.1 * gradient

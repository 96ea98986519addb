"""How weights change. Yours to change.

`weights` and `gradients` map names to arrays of numpy or of torch: plain arithmetic works on both, and weights are
changed in place.
"""


class Optimizer:
    def __init__(self, weights, n_steps):
        self.weights = weights
        self.n_steps = n_steps

    def step(self, step, gradients):
        """After each of `n_steps` batches; `step` counts from 0."""
        for name, gradient in gradients.items():
            self.weights[name] -= 0.1 * gradient

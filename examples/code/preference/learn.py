"""What is learned from pairs of continuations, and how weights change. Yours to change."""


def loss(chosen, rejected, first_chosen, first_rejected):
    """One number, to be made small.

    Tensors (pairs,) of log probabilities: of the preferred and of the other continuation, by the model that is trained;
    `first_...`: by the model at the start, which stays as it is.
    """
    return -chosen.mean()


class Optimizer:
    """`weights` and `gradients` map names to arrays of numpy or of torch, changed in place."""

    def __init__(self, weights, n_steps):
        self.weights = weights
        self.n_steps = n_steps

    def step(self, step, gradients):
        """After each of `n_steps` batches; `step` counts from 0."""
        for name, gradient in gradients.items():
            self.weights[name] -= 0.003 * gradient

"""The language model: the last characters in, scores of the next one out. Yours to change.

`weights` are tensors of `autodiff` on numpy, or of torch: use methods that both have, listed in `autodiff/__init__.py`.
"""

import numpy as np

SEEN = 6  # characters, of the 24 that are given
EMBEDDED = 8


def init(random: np.random.Generator, n_characters: int, width: int) -> dict[str, np.ndarray]:
    """The weights at the start, by name. Called once; `width` is as the task says."""
    return {
        "embedding": random.normal(0, 1, (n_characters, EMBEDDED)),
        "hidden": random.normal(0, 1, (SEEN * EMBEDDED, width)),
        "hidden_bias": np.zeros(width),
        "out": random.normal(0, 1, (width, n_characters)),
        "out_bias": np.zeros(n_characters),
    }


def logits(weights, characters):
    """characters: whole numbers (batch, 24), oldest first. Returns (batch, n_characters), any scale."""
    batch = characters.shape[0]
    seen = weights["embedding"][characters[:, -SEEN:]].reshape(batch, SEEN * EMBEDDED)
    hidden = (seen @ weights["hidden"] + weights["hidden_bias"]).tanh()
    return hidden @ weights["out"] + weights["out_bias"]

"""The model that `sft` and `preference` begin with: the last 24 characters in, scores of the next one out. Fixed."""

from pathlib import Path

import numpy as np

from charlm.texts import CHARACTERS, CONTEXT

EMBEDDED, WIDTH = 8, 96
WEIGHTS = Path(__file__).resolve().parent / "weights.npz"


def init(random: np.random.Generator) -> dict[str, np.ndarray]:
    n_inputs, n_characters = CONTEXT * EMBEDDED, len(CHARACTERS)
    return {
        "embedding": random.normal(0, 0.5, (n_characters, EMBEDDED)),
        "hidden": random.normal(0, n_inputs**-0.5, (n_inputs, WIDTH)),
        "hidden_bias": np.zeros(WIDTH),
        "out": random.normal(0, WIDTH**-0.5, (WIDTH, n_characters)),
        "out_bias": np.zeros(n_characters),
    }


def logits(weights, characters):
    """characters: whole numbers (batch, 24), oldest first. Returns (batch, n_characters)."""
    seen = weights["embedding"][characters].reshape(characters.shape[0], CONTEXT * EMBEDDED)
    hidden = (seen @ weights["hidden"] + weights["hidden_bias"]).tanh()
    return hidden @ weights["out"] + weights["out_bias"]


def load(path: Path = WEIGHTS) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name].astype(np.float32) for name in arrays.files}

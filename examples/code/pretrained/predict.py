"""What the model answers with the weights that training left. Run by scorers, in a process of its own."""

from pathlib import Path

import numpy as np

from autodiff import NumpyBackend
from pretrained import model

BACKEND = NumpyBackend()
_weights = {}


def logits(characters: np.ndarray) -> np.ndarray:
    """(batch, 24) characters; (batch, n_characters) scores."""
    if not _weights:
        left = model.load(Path(__file__).resolve().parents[1] / "model.npz")
        _weights.update({name: BACKEND.tensor(array) for name, array in left.items()})
    return BACKEND.array(model.logits(_weights, BACKEND.integers(characters)))

"""Characters as numbers, and how many of them the model is given."""

import numpy as np

CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz0123456789.,;:?+=()[]"
CONTEXT = 24


def encode(text: str) -> np.ndarray:
    number = {character: i for i, character in enumerate(CHARACTERS)}
    return np.array([number[character] for character in text], np.int64)

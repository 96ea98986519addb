"""Characters as numbers, and how many of them the model is given."""

import numpy as np

CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz0123456789.,;:?+=()[]"
CONTEXT = 24


def encode(text: str) -> np.ndarray:
    number = {character: i for i, character in enumerate(CHARACTERS)}
    return np.array([number[character] for character in text], np.int64)


def windows_before(prompt: str, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each character of the text: the CONTEXT before it, with spaces for nothing, (length, CONTEXT); and itself."""
    whole = encode(" " * CONTEXT + prompt + text)
    places = np.arange(len(whole) - len(text), len(whole))
    return whole[places[:, None] + np.arange(-CONTEXT, 0)], whole[places]

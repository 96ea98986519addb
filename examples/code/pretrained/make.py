"""Train the model that others begin with, and write `weights.npz`. `python -m pretrained.make` (a minute or less)

On the notes of `charlm` and lists of made-up words; of instructions and preferences it knows nothing.
"""

import random as plain_random
from pathlib import Path

import numpy as np

from autodiff import NumpyBackend
from charlm.texts import CONTEXT, encode
from pretrained import model
from pretrained.words import word

NOTES = Path(__file__).resolve().parents[1] / "charlm" / "data" / "train.txt"
STEPS, BATCH, SEED = 4000, 128, 20261203


def main() -> None:
    draw = plain_random.Random(SEED)
    lists = "\n".join(", ".join(word(draw) for _ in range(4)) + "." for _ in range(500))
    text = encode(NOTES.read_text() + "\n" + lists)
    random, backend = np.random.default_rng(SEED), NumpyBackend()
    weights = {name: backend.tensor(array, requires_grad=True) for name, array in model.init(random).items()}
    squares = {name: np.zeros_like(weight.data) for name, weight in weights.items()}
    for step in range(STEPS):
        starts = random.integers(0, len(text) - CONTEXT, BATCH)
        scores = model.logits(weights, text[starts[:, None] + np.arange(CONTEXT)]).log_softmax(-1)
        (-scores[np.arange(BATCH), text[starts + CONTEXT]].mean()).backward()
        for name, weight in weights.items():
            squares[name] = 0.99 * squares[name] + 0.01 * weight.grad**2
            weight.data -= 0.005 * (1 - step / STEPS) * weight.grad / (np.sqrt(squares[name]) + 1e-8)
            weight.grad = None
    np.savez_compressed(model.WEIGHTS, **{name: weight.data.astype(np.float16) for name, weight in weights.items()})


if __name__ == "__main__":
    main()

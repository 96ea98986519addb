"""Train a character model for a fixed number of steps and leave it in `model.npz`. `python -m charlm.train --seed 3`

Data, steps, batches and loss are fixed here; `model.py` and `optim.py` may change. The last tenth of the text is not
trained on: its loss is printed as the training goes. What counts is measured afterwards, by `score.py`.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from autodiff import open_backend
from charlm import model, optim
from charlm.texts import CHARACTERS, CONTEXT, encode

HERE = Path(__file__).resolve().parent
PRINT_EVERY = 250  # steps


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--width", type=int, default=64, help="passed to model.init")
    parser.add_argument("--seed", type=int, default=0, help="first weights, and which windows are drawn")
    parser.add_argument("--device", default="numpy", help="numpy, or with torch: cpu, cuda")
    parser.add_argument("--evaluate_test", action="store_true", help="is for score.py; changes nothing here")
    return parser.parse_args()


def windows(text, starts):
    """The characters before, (batch, CONTEXT), and the one that follows each."""
    return text[starts[:, None] + np.arange(CONTEXT)], text[starts + CONTEXT]


def cross_entropy(scores, targets, backend):
    rows = backend.integers(np.arange(len(targets)))
    return -scores.log_softmax(-1)[rows, backend.integers(targets)].mean()


def gradients(weights):
    """Of all that the loss depends on."""
    return {name: tensor.grad for name, tensor in weights.items() if tensor.grad is not None}


def main():
    args = arguments()
    backend = open_backend(args.device)
    text = encode((HERE / "data" / "train.txt").read_text())
    n_trained = len(text) * 9 // 10
    watched = windows(text, np.arange(n_trained, len(text) - CONTEXT, CONTEXT))

    first = model.init(np.random.default_rng([args.seed, 0]), len(CHARACTERS), args.width)
    weights = {name: backend.tensor(array, requires_grad=True) for name, array in first.items()}
    optimizer = optim.Optimizer({name: tensor.data for name, tensor in weights.items()}, args.steps)
    draw = np.random.default_rng([args.seed, 1])

    for step in range(args.steps):
        given, targets = windows(text, draw.integers(0, n_trained - CONTEXT, args.batch_size))
        loss = cross_entropy(model.logits(weights, backend.integers(given)), targets, backend)
        loss.backward()
        optimizer.step(step, gradients(weights))
        for tensor in weights.values():
            tensor.grad = None
        if (step + 1) % PRINT_EVERY == 0:
            seen = cross_entropy(model.logits(weights, backend.integers(watched[0])), watched[1], backend)
            print(json.dumps({"step": step + 1, "loss": loss.item(), "watched_loss": seen.item()}), flush=True)

    np.savez("model.npz", **{name: backend.array(tensor) for name, tensor in weights.items()})


if __name__ == "__main__":
    main()

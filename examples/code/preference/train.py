"""Teach a small pre-trained model what is preferred, from a fixed set of pairs, and leave it in `model.npz`.
`python -m preference.train --seed 3`

Model, data, steps and batches are fixed here; `learn.py` may change.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from autodiff import open_backend
from charlm.texts import CONTEXT
from preference import learn, pairs
from pretrained import model

HERE = Path(__file__).resolve().parent
PRINT_EVERY = 50  # steps


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch_size", type=int, default=16, help="pairs")
    parser.add_argument("--seed", type=int, default=0, help="which pairs are drawn")
    parser.add_argument("--device", default="numpy", help="numpy, or with torch: cpu, cuda")
    parser.add_argument("--evaluate_test", action="store_true", help="is for score.py; changes nothing here")
    return parser.parse_args()


def log_probabilities(weights, given, targets, counts, backend):
    """Tensors (pairs,): of the preferred continuations, and of the others."""
    scores = model.logits(weights, backend.integers(given.reshape(-1, CONTEXT))).log_softmax(-1)
    picked = scores[backend.integers(np.arange(targets.size)), backend.integers(targets.reshape(-1))]
    whole = (picked.reshape(*counts.shape) * backend.tensor(counts)).sum(-1)
    return whole[:, 0], whole[:, 1]


def main():
    args = arguments()
    backend = open_backend(args.device)
    data = pairs.read(HERE / "data" / "train.txt")
    first = {name: backend.tensor(array) for name, array in model.load().items()}
    weights = {name: backend.tensor(array, requires_grad=True) for name, array in model.load().items()}
    optimizer = learn.Optimizer({name: tensor.data for name, tensor in weights.items()}, args.steps)
    draw = np.random.default_rng(args.seed)
    for step in range(args.steps):
        drawn = draw.integers(0, len(data[0]), args.batch_size)
        batch = [part[drawn] for part in data]
        chosen, rejected = log_probabilities(weights, *batch, backend)
        loss = learn.loss(chosen, rejected, *log_probabilities(first, *batch, backend))
        loss.backward()
        optimizer.step(step, {name: tensor.grad for name, tensor in weights.items() if tensor.grad is not None})
        for tensor in weights.values():
            tensor.grad = None
        if (step + 1) % PRINT_EVERY == 0:
            print(json.dumps({"step": step + 1, "loss": loss.item()}), flush=True)
    np.savez("model.npz", **{name: backend.array(tensor) for name, tensor in weights.items()})


if __name__ == "__main__":
    main()

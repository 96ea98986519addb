"""Tune a small pre-trained model on instructions, for a fixed number of steps, and leave it in `model.npz`.
`python -m sft.train --seed 3`

Model, data, steps and batches are fixed here; `tune.py` may change.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from autodiff import open_backend
from charlm.texts import windows_before
from pretrained import model
from sft import tune

HERE = Path(__file__).resolve().parent
PRINT_EVERY = 200  # steps


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch_size", type=int, default=128, help="characters, of prompts and answers")
    parser.add_argument("--seed", type=int, default=0, help="which characters are drawn")
    parser.add_argument("--device", default="numpy", help="numpy, or with torch: cpu, cuda")
    parser.add_argument("--evaluate_test", action="store_true", help="is for score.py; changes nothing here")
    return parser.parse_args()


def positions():
    """Of every character of every example: what comes before, itself, and whether it is the answer."""
    pairs = [line.split("\t") for line in (HERE / "data" / "train.txt").read_text().splitlines()]
    parts = [windows_before("", prompt + answer) for prompt, answer in pairs]
    is_answer = [np.arange(len(targets)) == len(targets) - 1 for _, targets in parts]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), np.concatenate(is_answer)


def main():
    args = arguments()
    backend = open_backend(args.device)
    given, targets, is_answer = positions()
    first = model.load()
    changed = set(tune.tuned(list(first)))
    weights = {name: backend.tensor(array, requires_grad=name in changed) for name, array in first.items()}
    optimizer = tune.Optimizer({name: weights[name].data for name in sorted(changed)}, args.steps)
    draw = np.random.default_rng(args.seed)
    rows = backend.integers(np.arange(args.batch_size))
    for step in range(args.steps):
        drawn = draw.integers(0, len(targets), args.batch_size)
        scores = model.logits(weights, backend.integers(given[drawn])).log_softmax(-1)
        counts = tune.importance(is_answer[drawn])
        loss = -(
            scores[rows, backend.integers(targets[drawn])] * backend.tensor(counts / max(counts.sum(), 1e-9))
        ).sum()
        loss.backward()
        optimizer.step(step, {name: weights[name].grad for name in sorted(changed) if weights[name].grad is not None})
        for tensor in weights.values():
            tensor.grad = None
        if (step + 1) % PRINT_EVERY == 0:
            print(json.dumps({"step": step + 1, "loss": loss.item()}), flush=True)
    np.savez("model.npz", **{name: backend.array(tensor) for name, tensor in weights.items()})


if __name__ == "__main__":
    main()

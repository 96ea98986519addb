"""Train the ensemble that is asked later, and leave it in `model.npz`. `python -m speed.train --seed 3`

Fixed, and without a word of `infer.py`: what trials change can not touch what they are measured on.
"""

import argparse
import json

import numpy as np

from autodiff import open_backend
from speed.examples import MEMBERS, examples


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="of each member")
    parser.add_argument("--width", type=int, default=48, help="hidden units of a member")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="numpy", help="numpy, or with torch: cpu, cuda")
    return parser.parse_args()


def train_member(inputs, labels, args, random, backend):
    n_classes = int(labels.max()) + 1
    weights = {
        "first": random.normal(0, inputs.shape[1] ** -0.5, (inputs.shape[1], args.width)),
        "bias": np.zeros(args.width),
        "second": random.normal(0, args.width**-0.5, (args.width, n_classes)),
        "last": np.zeros(n_classes),
    }
    weights = {name: backend.tensor(array, requires_grad=True) for name, array in weights.items()}
    for _ in range(args.steps):
        drawn = random.integers(0, len(labels), 64)
        hidden = (backend.tensor(inputs[drawn]) @ weights["first"] + weights["bias"]).relu()
        scores = (hidden @ weights["second"] + weights["last"]).log_softmax(-1)
        loss = -scores[backend.integers(np.arange(64)), backend.integers(labels[drawn])].mean()
        loss.backward()
        for tensor in weights.values():
            tensor.data -= 0.2 * tensor.grad
            tensor.grad = None
    return {name: backend.array(tensor) for name, tensor in weights.items()}, loss.item()


def main():
    args = arguments()
    random = np.random.default_rng(args.seed)
    inputs, labels = examples(random, 4000)
    left = {"mean": inputs.mean(axis=0), "deviation": inputs.std(axis=0)}
    inputs = (inputs - left["mean"]) / left["deviation"]
    for i in range(MEMBERS):
        member, loss = train_member(inputs, labels, args, random, open_backend(args.device))
        left |= {f"{name}_{i}": array.astype(np.float64) for name, array in member.items()}
        print(json.dumps({"step": i + 1, "loss": loss}), flush=True)
    np.savez("model.npz", **left)


if __name__ == "__main__":
    main()

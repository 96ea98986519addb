"""Measure what a training left: on pairs that it has not seen, the mean probability that it gives to the preferred
continuation, of the two. `python -m preference.score`"""

import argparse
import json
from pathlib import Path

import numpy as np

from candidates import opened
from charlm.texts import CHARACTERS, CONTEXT
from preference import pairs

PRIVATE = Path(__file__).resolve().parent / "private"


def preferred(candidate, name: str) -> float:
    given, targets, counts = pairs.read(PRIVATE / name)
    shape = (targets.size, len(CHARACTERS))
    scores = candidate.call("logits", given.reshape(-1, CONTEXT), shape=shape).astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    picked = scores[np.arange(targets.size), targets.reshape(-1)].reshape(targets.shape)
    first, other = (picked * counts).sum(axis=-1).T
    return float((0.5 + 0.5 * np.tanh((first - other) / 2)).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluate_test", action="store_true", help="also on the test pairs; looks are counted")
    args, _ = parser.parse_known_args()  # the training's parameters come along
    with opened("pretrained.predict") as candidate:
        measured = {"preferred": preferred(candidate, "valid.txt")}
        if args.evaluate_test:
            measured["test_preferred"] = preferred(candidate, "test.txt")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()

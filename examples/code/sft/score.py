"""Measure what a training left: the share of unseen instructions that it answers rightly. `python -m sft.score`"""

import argparse
import json
from pathlib import Path

import numpy as np

from candidates import opened
from charlm.texts import CHARACTERS, encode, windows_before

PRIVATE = Path(__file__).resolve().parent / "private"


def accuracy(candidate, name: str) -> float:
    pairs = [line.split("\t") for line in (PRIVATE / name).read_text().splitlines()]
    given = np.concatenate([windows_before(prompt, answer)[0] for prompt, answer in pairs])
    scores = candidate.call("logits", given, shape=(len(pairs), len(CHARACTERS)))
    return float((scores.argmax(axis=1) == encode("".join(answer for _, answer in pairs))).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluate_test", action="store_true", help="also on the test instructions; looks are counted")
    args, _ = parser.parse_known_args()  # the training's parameters come along
    with opened("pretrained.predict") as candidate:
        measured = {"accuracy": accuracy(candidate, "valid.txt")}
        if args.evaluate_test:
            measured["test_accuracy"] = accuracy(candidate, "test.txt")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()

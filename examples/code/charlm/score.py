"""Measure what a training left: bits per character on text that it has not seen. `python -m charlm.score`

The model only gives scores for the next character of windows that do not overlap, in no order; that scores become
probabilities and bits is done here, so no scale and no NaN can help it.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from candidates import opened
from charlm.texts import CHARACTERS, CONTEXT, encode

PRIVATE = Path(__file__).resolve().parent / "private"


def bits_per_character(candidate, text: np.ndarray) -> float:
    starts = np.random.default_rng(0).permutation(np.arange(0, len(text) - CONTEXT, CONTEXT + 1))
    given, targets = text[starts[:, None] + np.arange(CONTEXT)], text[starts + CONTEXT]
    scores = candidate.call("logits", given, shape=(len(starts), len(CHARACTERS))).astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)
    log_probabilities = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-log_probabilities[np.arange(len(starts)), targets].mean() / np.log(2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluate_test", action="store_true", help="also on the test text; looks at it are counted")
    args, _ = parser.parse_known_args()  # the training's parameters come along
    with opened("charlm.predict") as candidate:
        measured = {"bits_per_character": bits_per_character(candidate, encode((PRIVATE / "valid.txt").read_text()))}
        if args.evaluate_test:
            test = encode((PRIVATE / "test.txt").read_text())
            measured["test_bits_per_character"] = bits_per_character(candidate, test)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()

"""Measure what a training left: the mean return of 1,000 ways that it has not sailed. `python -m policy.score`

The harbour is here, and the policy is only asked: it sees what its boats see, and the highest score is what they do.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from candidates import opened
from policy.harbour import N_ACTIONS, STEPS, Harbour

PLAN = json.loads((Path(__file__).resolve().parent / "private" / "harbours.json").read_text())


def mean_return(candidate, seed: int) -> float:
    harbour = Harbour(np.random.default_rng(seed), PLAN["boats"])
    returns = np.zeros(PLAN["boats"])
    for _ in range(STEPS):
        scores = candidate.call("logits", harbour.observed(), shape=(PLAN["boats"], N_ACTIONS))
        returns += harbour.step(scores.argmax(axis=1))
    return float(returns.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluate_test", action="store_true", help="also in the test harbours; looks are counted")
    args, _ = parser.parse_known_args()  # the training's parameters come along
    with opened("policy.predict") as candidate:
        measured = {"mean_return": mean_return(candidate, PLAN["valid_seed"])}
        if args.evaluate_test:
            measured["test_mean_return"] = mean_return(candidate, PLAN["test_seed"])
    print(json.dumps(measured))


if __name__ == "__main__":
    main()

"""How many times faster than at first are the same answers? `python -m speed.score`

The first implementation, from this scorer's own copy, and the trial's are asked the same questions in turn, each in a
process of its own, so that what slows the machine down slows both. Every answer is compared; no question comes twice.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from candidates import opened, weights_left
from speed.examples import examples

HERE = Path(__file__).resolve().parents[1]
PLAN = json.loads((Path(__file__).resolve().parent / "private" / "questions.json").read_text())


def timed(candidate, inputs):
    started = perf_counter()
    answer = candidate.call("probabilities", inputs, shape=(len(inputs), 8))
    return perf_counter() - started, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    args, _ = parser.parse_known_args()  # the training's parameters come along
    random = np.random.default_rng([PLAN["seed"], args.seed])
    weights = weights_left()
    ratios = []
    with opened("speed.serve", HERE) as first, opened("speed.serve") as trial:
        for candidate in (first, trial):
            candidate.call("load", weights)
        for i in range(PLAN["rounds"] + PLAN["untimed"]):
            inputs, _ = examples(random, PLAN["questions"])
            order = (first, trial) if i % 2 else (trial, first)
            (one_s, one), (other_s, other) = (timed(candidate, inputs) for candidate in order)
            difference = float(np.abs(one - other).max())
            if difference > PLAN["tolerance"]:
                raise SystemExit(
                    f"not scored: a probability is off by {difference:.2g}; {PLAN['tolerance']} is allowed"
                )
            if i >= PLAN["untimed"]:
                ratios.append(one_s / other_s if order[0] is first else other_s / one_s)
    print(json.dumps({"speedup": median(ratios)}))


if __name__ == "__main__":
    main()

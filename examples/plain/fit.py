"""Fit a noisy sine by gradient descent, with nothing but Python. Metrics are printed lines; see task.yaml."""

import argparse
import math
import random


def features(x, degree):
    return [x**power for power in range(degree + 1)]


def mean_squared_error(weights, points):
    degree = len(weights) - 1
    return sum((sum(w * f for w, f in zip(weights, features(x, degree))) - y) ** 2 for x, y in points) / len(points)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--degree", type=int, default=1)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    points = []
    for _ in range(60):
        x = rng.uniform(-1, 1)
        points.append((x, math.sin(3 * x) + rng.gauss(0, 0.1)))
    train, validation = points[:40], points[40:]

    weights = [0.0] * (args.degree + 1)
    for step in range(1, args.steps + 1):
        gradient = [0.0] * len(weights)
        for x, y in train:
            inputs = features(x, args.degree)
            error = sum(w * f for w, f in zip(weights, inputs)) - y
            for i, f in enumerate(inputs):
                gradient[i] += 2 * error * f / len(train)
        weights = [w - args.lr * g for w, g in zip(weights, gradient)]
        if step % 20 == 0:
            print(f"step {step} val_error {mean_squared_error(weights, validation):.6f}", flush=True)


if __name__ == "__main__":
    main()

"""What is trained, and how: a polynomial by stochastic gradient descent."""

import random

DEGREE = 1
STEPS = 3000
RATE = 0.05


def train(rows, seed):
    random.seed(seed)
    weights = [random.gauss(0.0, 0.3) for _ in range(DEGREE + 1)]
    for _ in range(STEPS):
        x, y = random.choice(rows)
        powers = [x**k for k in range(len(weights))]
        error = sum(w * p for w, p in zip(weights, powers, strict=True)) - y
        weights = [w - RATE * error * p for w, p in zip(weights, powers, strict=True)]
    return weights

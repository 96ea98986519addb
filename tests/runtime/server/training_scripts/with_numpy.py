"""Least squares by noisy descent with momentum, in numpy: slow until a file appears.

Without the state of the random generator, or of the momentum, the curve after a resume is another one.
"""

import sys
import time
from pathlib import Path

import numpy as np

from runtime_client import training

n_steps, hurry = int(sys.argv[1]), Path(sys.argv[2])
np.random.seed(7)
x = np.random.randn(64, 8)
y = x @ np.arange(8.0)
weights, velocity, done = np.zeros(8), np.zeros(8), 0
saved = training.restore()
if saved:
    done, weights, velocity, state = saved.value
    np.random.set_state(state)
print(f"begins with {done + 1}", flush=True)
for step in range(done + 1, n_steps + 1):
    if not hurry.exists():
        time.sleep(0.02)
    batch = np.random.choice(64, 16, replace=False)
    error = x[batch] @ weights - y[batch]
    velocity = 0.9 * velocity - 0.001 * (x[batch].T @ error + np.random.randn(8))
    weights = weights + velocity
    training.log_metrics({"loss": np.square(error).mean()}, step=step)
    training.end_step(step, lambda: (step, weights, velocity, np.random.get_state()), every=20)  # noqa: B023

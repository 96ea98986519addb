"""Learn to steer boats by trying, for a fixed number of batches, and leave the policy in `model.npz`.
`python -m policy.train --seed 3`

The environment and how many ways are sailed are fixed here; `network.py` and `learn.py` may change.
"""

import argparse
import json
from dataclasses import dataclass

import numpy as np

from autodiff import open_backend
from policy import learn, network
from policy.harbour import N_ACTIONS, N_FEATURES, STEPS, Harbour

PRINT_EVERY = 20  # updates


@dataclass(frozen=True)
class Ways:
    observed: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    is_counted: np.ndarray


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--boats", type=int, default=128, help="ways in a batch")
    parser.add_argument("--width", type=int, default=32, help="passed to network.init")
    parser.add_argument("--seed", type=int, default=0, help="first weights, and all that happens in the harbour")
    parser.add_argument("--device", default="numpy", help="numpy, or with torch: cpu, cuda")
    parser.add_argument("--evaluate_test", action="store_true", help="is for score.py; changes nothing here")
    return parser.parse_args()


def sailed(weights, backend, random, n_boats) -> Ways:
    harbour = Harbour(random, n_boats)
    seen, taken, rewards, counted = [], [], [], []
    for _ in range(STEPS):
        seen.append(harbour.observed())
        counted.append(harbour.is_under_way)
        scores = backend.array(network.logits(weights, backend.tensor(seen[-1])))
        taken.append((scores + random.gumbel(size=scores.shape)).argmax(axis=1))
        rewards.append(harbour.step(taken[-1]))
    return Ways(np.stack(seen), np.stack(taken), np.stack(rewards), np.stack(counted))


def loss_of(weights, ways, backend):
    log_probabilities = network.logits(weights, backend.tensor(ways.observed.reshape(-1, N_FEATURES))).log_softmax(-1)
    taken = backend.integers(ways.actions.reshape(-1))
    chosen = log_probabilities[backend.integers(np.arange(ways.actions.size)), taken]
    return learn.loss(log_probabilities, chosen, ways, backend.tensor)


def main():
    args = arguments()
    backend = open_backend(args.device)
    first = network.init(np.random.default_rng([args.seed, 0]), N_FEATURES, N_ACTIONS, args.width)
    weights = {name: backend.tensor(array, requires_grad=True) for name, array in first.items()}
    optimizer = learn.Optimizer({name: tensor.data for name, tensor in weights.items()}, args.updates)
    random = np.random.default_rng([args.seed, 1])
    for update in range(args.updates):
        ways = sailed(weights, backend, random, args.boats)
        loss_of(weights, ways, backend).backward()
        optimizer.step(update, {name: tensor.grad for name, tensor in weights.items() if tensor.grad is not None})
        for tensor in weights.values():
            tensor.grad = None
        if (update + 1) % PRINT_EVERY == 0:
            print(json.dumps({"step": update + 1, "batch_return": ways.rewards.sum(axis=0).mean()}), flush=True)
    np.savez("model.npz", **{name: backend.array(tensor) for name, tensor in weights.items()})


if __name__ == "__main__":
    main()

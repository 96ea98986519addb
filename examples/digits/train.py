"""Train a small neural network on scikit-learn's bundled handwritten digits, one epoch at a time.

A plain training script: it imports nothing of nightlab and runs without it (`python train.py`). What it knows
of the outside comes from environment variables, all of them optional:

    MLFLOW_TRACKING_URI       where metrics go; without it they are only printed
    NIGHTLAB_CHECKPOINT_DIR   where checkpoints go: folders `step-<epoch>`, complete once they hold `COMPLETE`
    NIGHTLAB_RESUME_FROM      the checkpoint to go on from
    NIGHTLAB_PREEMPT_FILE     when this file appears (or SIGTERM arrives): checkpoint and leave with exit code 75

A run that was interrupted and resumed ends with exactly the numbers of one that was not: a checkpoint holds the
weights, the optimizer's state, the random state and the epoch.
"""

import argparse
import os
import pickle
import signal
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

CHECKPOINTED = 75  # exit code: "I have saved my state, run me again"
CHECKPOINT_EVERY = 10  # epochs


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, default=1e-3, help="step size of Adam")
    parser.add_argument("--hidden", type=int, default=32, help="units of the hidden layer")
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--alpha", type=float, default=1e-4, help="strength of the L2 penalty")
    parser.add_argument("--activation", default="relu", choices=["relu", "tanh", "logistic"])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="initial weights, order, and which examples are drawn")
    parser.add_argument("--evaluate_test", action="store_true", help="also log test_accuracy, once, at the end")
    return parser.parse_args()


def load_splits():
    """Train, validation and test, the same for every seed: 900, 450 and 447 images."""
    images, digits = load_digits(return_X_y=True)
    order = np.random.RandomState(20240607).permutation(len(digits))
    return [(images[part] / 16.0, digits[part]) for part in np.split(order, [900, 1350])]


def choose_logger():
    if "MLFLOW_TRACKING_URI" not in os.environ:
        return lambda name, value, step: print(f"epoch {step}: {name} {value!r}", flush=True)
    import mlflow  # takes seconds: only where it is used

    return lambda name, value, step: mlflow.log_metric(name, value, step=step)


def save_checkpoint(root, epoch, state):
    folder = root / f"step-{epoch:06d}"
    if (folder / "COMPLETE").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in [("state.pickle", pickle.dumps(state)), ("COMPLETE", b"")]:  # the marker last
        with open(folder / name, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def load_checkpoint(folder):
    if not folder or not Path(folder, "COMPLETE").exists():
        return None
    return pickle.loads(Path(folder, "state.pickle").read_bytes())


def main():
    args = parse_arguments()
    signals = []
    signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))
    notice_file = os.environ.get("NIGHTLAB_PREEMPT_FILE", "")
    checkpoint_dir = os.environ.get("NIGHTLAB_CHECKPOINT_DIR")

    log_metric = choose_logger()
    train, validation, test = load_splits()

    state = load_checkpoint(os.environ.get("NIGHTLAB_RESUME_FROM"))
    if state is None:
        random = np.random.RandomState(args.seed)
        drawn = random.choice(len(train[1]), size=720, replace=False)  # each seed sees its own four fifths
        model = MLPClassifier(
            hidden_layer_sizes=(args.hidden,),
            activation=args.activation,
            alpha=args.alpha,
            batch_size=args.batch_size,
            learning_rate_init=args.lr,
            random_state=random,
        )
        state = (0, drawn, model)
    done, drawn, model = state

    for epoch in range(done + 1, args.epochs + 1):
        model.partial_fit(train[0][drawn], train[1][drawn], classes=range(10))
        log_metric("train_loss", float(model.loss_), epoch)
        log_metric("val_accuracy", float(model.score(*validation)), epoch)

        is_leaving = bool(signals) or os.path.exists(notice_file)
        if checkpoint_dir and (is_leaving or epoch % CHECKPOINT_EVERY == 0):
            save_checkpoint(Path(checkpoint_dir), epoch, (epoch, drawn, model))
        if is_leaving and epoch < args.epochs:
            print(f"asked to leave after epoch {epoch}", flush=True)
            return CHECKPOINTED if checkpoint_dir else 128 + signal.SIGTERM

    if args.evaluate_test:
        log_metric("test_accuracy", float(model.score(*test)), args.epochs)
    return 0


if __name__ == "__main__":
    sys.exit(main())

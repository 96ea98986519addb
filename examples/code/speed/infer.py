"""An ensemble's answer, as it was first written down. Yours to change: the same answers, sooner."""

import numpy as np


def prepare(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Called once. `mean`, `deviation`; and of member i `first_i`, `bias_i`, `second_i`, `last_i`."""
    return weights


def probabilities(prepared, inputs: np.ndarray) -> np.ndarray:
    """(n, 32) inputs; (n, 8) probabilities, the mean over the members."""
    answers = []
    for row in inputs:
        row = (row - prepared["mean"]) / prepared["deviation"]
        members = []
        for i in range(4):
            hidden = np.maximum(row @ prepared[f"first_{i}"] + prepared[f"bias_{i}"], 0.0)
            scores = hidden @ prepared[f"second_{i}"] + prepared[f"last_{i}"]
            powers = np.exp(scores - scores.max())
            members.append(powers / powers.sum())
        answers.append(np.mean(members, axis=0))
    return np.stack(answers)

"""Pairs as arrays: of each continuation the windows before its characters, padded to one length."""

from pathlib import Path

import numpy as np

from charlm.texts import CONTEXT, windows_before

LONGEST = 8


def read(file: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows (pairs, 2, LONGEST, CONTEXT), characters and whether they count (pairs, 2, LONGEST); preferred first."""
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    given = np.zeros((len(lines), 2, LONGEST, CONTEXT), np.int64)
    targets, counts = np.zeros(given.shape[:3], np.int64), np.zeros(given.shape[:3])
    for i, (prompt, *pair) in enumerate(lines):
        for j, text in enumerate(pair):
            given[i, j, : len(text)], targets[i, j, : len(text)] = windows_before(prompt, text)
            counts[i, j, : len(text)] = 1
    return given, targets, counts

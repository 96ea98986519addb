"""The environment: boats in a harbour of 9 by 9 fields, each on its way to a berth of its own, many at once.

A current pushes a boat one field east or west after its move, in three of ten steps; its direction depends on the row.
A step costs 0.05, the berth gives 1 and ends the way. Edges hold a boat back.
"""

import numpy as np

SIZE, STEPS = 9, 24
N_FEATURES = 6
MOVES = np.array([(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)])
N_ACTIONS = len(MOVES)
CURRENT = np.array([1, 1, -1, 1, -1, -1, 1, -1, 1])  # by row


class Harbour:
    def __init__(self, random: np.random.Generator, n_boats: int):
        self._random = random
        self.boats = random.integers(0, SIZE, (n_boats, 2))
        self.berths = random.integers(0, SIZE, (n_boats, 2))
        self.is_under_way = (self.boats != self.berths).any(axis=1)

    def observed(self) -> np.ndarray:
        """(n_boats, 6): place, way to the berth, current here, whether still under way."""
        rows = self.boats[:, 1]
        return np.column_stack(
            [
                self.boats / SIZE - 0.5,
                (self.berths - self.boats) / SIZE,
                CURRENT[rows],
                self.is_under_way,
            ]
        ).astype(np.float32)

    def step(self, actions: np.ndarray) -> np.ndarray:
        """Rewards; nothing happens to a boat that has arrived."""
        moving = self.is_under_way
        pushed = self._random.random(len(moving)) < 0.3
        drift = np.where(pushed, CURRENT[self.boats[:, 1]], 0)
        moved = self.boats + MOVES[actions]
        moved[:, 0] += drift
        self.boats = np.where(moving[:, None], np.clip(moved, 0, SIZE - 1), self.boats)
        arrived = moving & (self.boats == self.berths).all(axis=1)
        self.is_under_way = moving & ~arrived
        return np.where(moving, -0.05, 0.0) + arrived

"""The session's error budget: how sure each claim of "better" must be, so that all together are false rarely. Pure.

Half is for the claim at the end. Less is handed to the claims on the way, in the order in which challengers are
opened: most of it evenly, the rest to the early ones. The share of a claim that was accepted is passed on to the next
one (fallback), since an error that was not made needs no cover. A fifth is kept back: all claims use the same runs of
the default, and a margin costs little. The chance of any false claim stays below the total.

Sources: Wiens and Dmitrienko, The fallback procedure, Journal of Biopharmaceutical Statistics 15(6), 2005; Tian and
Ramdas, Online control of the familywise error rate, Statistical Methods in Medical Research 30(4), 2021.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

_FINAL = 0.5
_EVENLY = 0.2
_EARLY = 0.1
"""Parts of the total; what is missing to 1 is kept back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudget:
    total: float
    """Chance at most of any false claim of better in the whole session."""
    n_planned: int
    """Challengers that will be opened at most, as far as is known at the start; more get less."""

    def __post_init__(self) -> None:
        if not 0 < self.total < 1 or self.n_planned < 1:
            raise ValueError(
                f"total ({self.total}) must lie between 0 and 1, and n_planned ({self.n_planned}) be 1 or more"
            )

    @property
    def final_share(self) -> float:
        """For the claim at the end, on fresh seeds."""
        return self.total * _FINAL

    def share(self, order: int, accepted: Collection[int] = ()) -> float:
        """For the claim of the challenger opened as number `order` (1, 2, ...).

        `accepted` are the numbers of the claims accepted so far: what the one just before had is added. A share may
        grow while its claim is open, and never shrinks.
        """
        if order < 1:
            raise ValueError(f"order ({order}) must be 1 or more")
        first = order
        while first > 1 and first - 1 in accepted:
            first -= 1
        return math.fsum(self._own_share(number) for number in range(first, order + 1))

    def _own_share(self, order: int) -> float:
        evenly = _EVENLY / self.n_planned if order <= self.n_planned else 0.0
        early = _EARLY * 6 / (math.pi * order) ** 2
        return self.total * (evenly + early)

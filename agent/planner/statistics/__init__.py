"""The statistics kernel: comparisons, intervals, evidence, the error budget, corrections, power. Pure.

`docs/statistics.md` explains what each means to a researcher.
"""

from agent.planner.statistics.correction import Basis, Corrected, Standing, corrected, pooled_noise, standing
from agent.planner.statistics.error_budget import ErrorBudget
from agent.planner.statistics.intervals import CONFIDENCE, difference_interval, mean_interval, paired_interval
from agent.planner.statistics.power import pairs_needed, smallest_detectable
from agent.planner.statistics.sequential import (
    SequentialComparison,
    SequentialTest,
    SignBet,
    compare_sequentially,
    planned_bet,
)
from agent.planner.statistics.verdicts import Comparison, Verdict, compare, verdict_on_improvement

__all__ = [
    "CONFIDENCE",
    "Basis",
    "Comparison",
    "Corrected",
    "ErrorBudget",
    "SequentialComparison",
    "SequentialTest",
    "SignBet",
    "Standing",
    "Verdict",
    "compare",
    "compare_sequentially",
    "corrected",
    "difference_interval",
    "mean_interval",
    "paired_interval",
    "pairs_needed",
    "planned_bet",
    "pooled_noise",
    "smallest_detectable",
    "standing",
    "verdict_on_improvement",
]

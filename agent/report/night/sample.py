"""A made-up sweep of many nights with everything in it: a regression, a skipped and a failed night, a deadline.

Deterministic; nothing in it was measured. `python -m agent.report.night.sample night.html` writes its page.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.report import sample
from agent.store.views import Interval
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import (
    CellBest,
    CellView,
    Change,
    NightOutcome,
    NightState,
    NightSummary,
    NightView,
    WatchResult,
)

from .facts import CellPart, NightReport
from .write import replace_text

DAY_S = 86_400.0
BASE = {"digits@main": 0.9712, "digits@main/v2": 0.9655, "faces@main": 0.884}
SWEEP = Sweep.model_validate(
    {
        "sweep": "digits-nightly",
        "matrix": {"tasks": ["digits.yaml", "faces.yaml"], "code": ["main"]},
        "method": {"kind": "random", "trials": 18},
        "replicates": 3,
        "finish_by": "07:00",
        "time_zone": "Europe/Berlin",
        "budgets": {"device_hours": 12, "cost_usd": 30, "usd_per_device_hour": 2.5},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Luck:
    """What the made-up nights are drawn from."""

    random: random.Random


def sample_night(*, n_nights: int = 24, cells: tuple[str, ...] = tuple(BASE)) -> NightReport:
    """Tonight one cell got worse and another one faster; the night before was skipped."""
    luck = _Luck(random=random.Random(11))
    facts = sample.sample_report_input()
    end = facts.made_at
    history = tuple(_past(number, n_nights, end, cells, luck) for number in range(1, n_nights))
    summary = _tonight(cells, luck)
    cell_views = tuple(
        CellView(
            night_id=f"{SWEEP.sweep}-n{n_nights}",
            position=at,
            cell=cell,
            task_json=sample.TASK.model_dump_json(),
            session_id="s1" if at == 0 else f"s{at + 1}",
            is_resumed=False,
        )
        for at, cell in enumerate(cells)
    )
    night = _night(n_nights, n_nights, end, NightOutcome.DEADLINE, summary, luck)
    return NightReport(
        night=replace(night, cells=cell_views, message="2 trials wait to go on"),
        sweep=SWEEP,
        summary=summary,
        cells=tuple(
            CellPart(
                view=view,
                task=sample.TASK,
                session=replace(facts.session, session_id=view.session_id or "", report_path="/home/reports/s1.html"),
                best=summary.cells[at],
                trials=facts.trials
                if at == 0
                else tuple(replace(t, trial_id=f"s{at + 1}-t{t.number}") for t in facts.trials[:12]),
                jobs=facts.jobs if at == 0 else (),
                mlflow_url=facts.mlflow_url,
            )
            for at, view in enumerate(cell_views)
        ),
        history=history,
        missed=(end - 2 * DAY_S,) if n_nights > 3 else (),
        beneficiaries=tuple(
            j for j in facts.jobs if j.job_id in {a.beneficiary for v in facts.jobs for a in v.attempts}
        ),
        n_devices=facts.n_devices,
        zone=ZoneInfo("Europe/Berlin"),
        made_at=end + 60.0,
    )


def _night(
    number: int, n_nights: int, end: float, outcome: NightOutcome, summary: NightSummary | None, luck: _Luck
) -> NightView:
    created = end - (n_nights - number) * DAY_S - 8.5 * 3600
    ended = created + luck.random.uniform(4, 8.4) * 3600
    return NightView(
        night_id=f"{SWEEP.sweep}-n{number}",
        sweep=SWEEP.sweep,
        number=number,
        file="/home/ada/sweeps/digits.yaml",
        sweep_json=SWEEP.model_dump_json(),
        state=NightState.ENDED,
        outcome=outcome,
        message="",
        created_at=created,
        finish_by=created + 8.5 * 3600,
        ended_at=ended,
        pid=None,
        report_html=None,
        report_markdown=None,
        summary=summary,
        is_reference=number == 3,
        settled_at=ended,
    )


def _past(number: int, n_nights: int, end: float, cells: tuple[str, ...], luck: _Luck) -> NightView:
    if number == n_nights - 1:
        night = _night(number, n_nights, end, NightOutcome.SKIPPED, None, luck)
        return replace(night, message="digits-nightly-n22 still ran")
    if number == 7:
        return replace(
            _night(number, n_nights, end, NightOutcome.FAILED, NightSummary(), luck),
            message="the data folder was empty",
        )
    worse = number == 12
    watched = (_worse(cells[0]),) if worse else ()
    bests = tuple(_best(cell, at, -0.012 if worse and at == 0 else 0.0, luck) for at, cell in enumerate(cells))
    summary = NightSummary(cells=bests, watched=watched, device_seconds=20_000.0)
    outcome = NightOutcome.DEADLINE if number % 5 == 0 else NightOutcome.DONE
    return _night(number, n_nights, end, outcome, summary, luck)


def _best(cell: str, at: int, shift: float, luck: _Luck) -> CellBest:
    base = BASE.get(cell, 0.9) + shift
    value = base + 0.008 + luck.random.gauss(0, 0.0012)
    half = 0.0028
    failed = 2 if luck.random.random() < 0.2 else 0
    return CellBest(
        cell=cell,
        task=cell.split("@")[0],
        metric="val_accuracy",
        direction="maximize",
        session_id=f"s{at + 1}",
        n_trials=57,
        n_measured=57 - failed,
        n_failed=failed,
        default_value=base + luck.random.gauss(0, 0.0007),
        best_params=dict(sample.BEST),
        best=Interval(estimate=value, low=value - half, high=value + half, confidence=0.95, n=12),
        basis="fresh",
        comparison="better" if at < 2 else "indistinguishable",
        seconds=42.0 + 9 * at + luck.random.gauss(0, 0.8),
        memory_mb=820.0 + 150 * at + luck.random.gauss(0, 6),
    )


def _worse(cell: str) -> WatchResult:
    return _watch(
        cell, "metric", Change.WORSE, (-0.0117, -0.0151, -0.0083), 36, "below the reference in 34 of 36 pairs"
    )


def _tonight(cells: tuple[str, ...], luck: _Luck) -> NightSummary:
    bests = [_best(cell, at, -0.0117 if at == 0 else 0.0, luck) for at, cell in enumerate(cells)]
    if len(bests) > 2:
        bests[2] = replace(bests[2], n_measured=41, n_failed=4, comparison=None)
    watched = [_worse(cells[0])]
    watched.append(_watch(cells[0], "speed", Change.UNCHANGED, (0.004, -0.011, 0.02), 36, "within 5 % either way"))
    for cell in cells[1:]:
        watched.append(_watch(cell, "metric", Change.UNCHANGED, (0.0008, -0.0012, 0.0029), 36, "no change was shown"))
        watched.append(_watch(cell, "speed", Change.BETTER, (-0.128, -0.15, -0.104), 33, "faster in 33 of 33 pairs"))
        watched.append(_watch(cell, "memory", Change.UNKNOWN, None, 2, "2 pairs; 8 are needed to show any change"))
    return NightSummary(
        cells=tuple(bests),
        watched=tuple(watched),
        device_seconds=38_412.0,
        n_preemptions=1,
        given_back_s=1260.0,
        cost_usd=26.68,
        n_resumed=3,
        n_left=2,
        notified=("slack://****/: told of a regression", "mailtos://ops@example.org: not told, the server refused it"),
    )


def _watch(
    cell: str, what: str, change: Change, bounds: tuple[float, float, float] | None, n: int, reason: str
) -> WatchResult:
    interval = (
        None if bounds is None else Interval(estimate=bounds[0], low=bounds[1], high=bounds[2], confidence=0.99, n=n)
    )
    return WatchResult(
        cell=cell,
        what=what,
        change=change,
        reference="digits-nightly-n3",
        n_pairs=n,
        interval=interval,
        p_value=None if interval is None else 0.0004 if change in (Change.WORSE, Change.BETTER) else 0.4,
        alpha=0.0011,
        reason=reason,
    )


def _main(arguments: list[str]) -> int:
    from .build import build_night_html

    path = Path(arguments[0] if arguments else "night.html")
    replace_text(path, build_night_html(sample_night()))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))

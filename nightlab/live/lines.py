"""The live view where there is no terminal: one line an event, each printed once."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.report import wording
from nightlab.inert import clean

from . import text as words
from .snapshot import LiveSnapshot, Phase


@dataclass(slots=True)
class Narrator:
    """Turns successive snapshots into lines that were not told before."""

    _told: set[str] = field(default_factory=set)
    _activity: set[tuple[float, str]] = field(default_factory=set)
    _phase: Phase | None = None
    _best: float | None = None

    def news(self, snapshot: LiveSnapshot) -> list[str]:
        lines = []
        if snapshot.phase is not self._phase:
            self._phase = snapshot.phase
            lines.append(f"session {snapshot.session_id}: {snapshot.phase}")
        for entry in snapshot.activity:
            if (entry.at, entry.text) not in self._activity:
                self._activity.add((entry.at, entry.text))
                lines.append(f"{clean(entry.step)}: {clean(entry.text)}")
        if snapshot.best is not None and snapshot.best != self._best:
            self._best = snapshot.best
            lines.append(
                f"best so far: {clean(snapshot.metric)} {wording.number(snapshot.best)} "
                f"(trial {snapshot.best_trial}: {words.params(snapshot.best_params)})"
            )
        lines.extend(line for line in _preemption_lines(snapshot) if self._is_new(line))
        lines.extend(line for line in map(clean, snapshot.notices) if self._is_new(line))
        stamp = wording.clock(snapshot.since_start_s)
        return [f"[{stamp:>6}] {line}" for line in lines]

    def _is_new(self, line: str) -> bool:
        if line in self._told:
            return False
        self._told.add(line)
        return True


def _preemption_lines(snapshot: LiveSnapshot) -> list[str]:
    lines = []
    for p in snapshot.preemptions:
        name = p.job_id if p.trial_number is None else f"{p.job_id} (trial {p.trial_number})"
        lines.append(f"preempted: {name} was asked to make room for {p.beneficiary}")
        step = "no checkpoint" if p.checkpoint_step is None else f"checkpoint of step {p.checkpoint_step}"
        if p.left_at is not None:
            lines.append(f"preempted: {name} left after {wording.duration(p.left_at - p.ordered_at)}, {step}")
        if p.resumed_attempt is not None:
            lines.append(f"resumed: {name} goes on as attempt {p.resumed_attempt}, same MLflow run")
    return lines

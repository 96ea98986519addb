"""What the demo found, and whether it did all that it promises. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.report.facts import ReportInput, is_measured
from agent.report.timeline import Preemption, SlotUse, preemptions, segments, slot_use
from agent.store.views import SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    facts: ReportInput
    use: SlotUse
    preemptions: tuple[Preemption, ...]
    urgent_job_id: str | None
    is_mirrored: bool
    """MLflow has every record."""

    @property
    def n_measured(self) -> int:
        return sum(is_measured(t) for t in self.facts.trials)

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """What is not as promised; empty: the demo is complete."""
        session, result = self.facts.session, self.facts.session.result
        found = []
        if session.state is not SessionState.FINISHED or result is None:
            found.append(f"the session is {session.state}: {session.message or 'it has no result'}")
        if self.urgent_job_id is None:
            found.append("the urgent job was never submitted: no moment came at which all slots were training")
        elif not any(job.job_id == self.urgent_job_id and job.state == "succeeded" for job in self.facts.jobs):
            found.append(f"the urgent job {self.urgent_job_id} did not succeed")
        for p in self.preemptions:
            if p.state != "succeeded" or p.resumed_attempt is None:
                found.append(f"{p.job_id} was preempted and did not finish afterwards: it is {p.state}")
        if self.urgent_job_id is not None and not self.preemptions:
            found.append("the urgent job found a free slot: nothing had to be preempted")
        if not self.is_mirrored:
            found.append("MLflow has not got every record yet; `nightlab up` on the same folder delivers the rest")
        return tuple(found)


def outcome_of(facts: ReportInput, *, urgent_job_id: str | None, is_mirrored: bool) -> Outcome:
    held = segments(facts.jobs, facts.trials, now=facts.made_at)
    return Outcome(
        facts=facts,
        use=slot_use(held, facts.points, n_devices=facts.n_devices),
        preemptions=preemptions(facts.jobs, facts.trials),
        urgent_job_id=urgent_job_id,
        is_mirrored=is_mirrored,
    )

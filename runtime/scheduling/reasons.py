"""The reasons that a round gives for its actions, in words. Pure."""

from __future__ import annotations

from runtime.model.devices import Masks, placement_masks
from runtime.model.nouns import Job, Placement

from .asking import describe_placements, describe_shape
from .heads import heads_of
from .paper import Round
from .preempt import Candidate
from .reserve import holds_s


def start_reason(paper: Round, job: Job, placements: tuple[Placement, ...]) -> str:
    if not paper.blocked:
        return "first in the queue, and its devices are free"
    takes_s = holds_s(paper.state, job, paper.now_s)
    given = placement_masks(placements)
    rivals = (head for head in heads_of(paper, job) if _meet(given, head.wanted))
    for kept in (head.reservation for head in rivals if head.reservation is not None):
        if takes_s is None or not _meet(given, kept.devices):
            return f"its devices are not among those that are kept for {kept.job_id}, which comes first"
        left_s = kept.at_s - paper.now_s
        return f"expected to end in {takes_s:.0f} s, before {kept.job_id} can start in {left_s:.0f} s"
    head = paper.blocked[0]
    what = f"{head.job_id} waits for {describe_shape(head.lane.shape)}"
    if job.is_preemptible and job.priority < head.priority:
        return f"fills devices that would idle while {what}; it will be preempted when they can be used"
    return f"its devices are of no use to {head.job_id}, which comes first"


def preempt_reason(job: Job, victim: Candidate, placements: tuple[Placement, ...]) -> str:
    why = ""
    if victim.instead_of is not None:
        why = f"; it promises less for what it still costs than {victim.instead_of} of its experiment, which stays"
    return (
        f"{job.job_id} ({job.priority_class}) needs {describe_shape(job.shape)} and gets "
        f"{describe_placements(placements)}; {victim.job.job_id} ({victim.job.priority_class}) loses "
        f"{victim.lost_s:.0f} device-seconds since its last checkpoint{why}"
    )


def _meet(some: Masks, others: Masks) -> bool:
    return any(mask & others.get(node, 0) for node, mask in some.items())

"""Each property is shown to fail: a fault is planted in the core, and random lives with fixed seeds must find it.

The expected words are the name of the property (or the rule of `check`) that has to catch the fault.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from core_amounts import AMOUNT_COMMANDS
from core_driver import IDLE_WORK_COMMANDS, QUOTAS, run
from core_graph import GRAPH_COMMANDS, check_graph
from core_hours import HOUR_COMMANDS
from core_properties import PropertyBroken

from runtime.model import apply as apply_module
from runtime.model import codec, dependencies, outcome
from runtime.model import usage as usage_module
from runtime.model.devices import indexes_of
from runtime.model.errors import IllegalTransition, InvariantViolation
from runtime.model.estimates import Estimates
from runtime.model.ground import UNBOUND, CoreGroup
from runtime.model.holds import Standing
from runtime.model.indexes import ArrayLine, Indexes
from runtime.model.leaving import Leaving
from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.model.states import HOLDING
from runtime.model.usage import Usages
from runtime.scheduling import fairshare as fairshare_module
from runtime.scheduling import finishing, fit, preempt
from runtime.scheduling import heads as heads_module
from runtime.scheduling import order as order_module
from runtime.scheduling import paper as paper_module
from runtime.scheduling import round as round_module
from runtime.scheduling.policy import Policy
from runtime.scheduling.room import Room

pytestmark = pytest.mark.lives

N_SEEDS = 150
N_COMMANDS = 60
CAUGHT = (PropertyBroken, InvariantViolation, IllegalTransition)

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    name: str
    plant: Plant
    caught_by: str
    """Parts of the message, any of which will do, separated by `|`."""
    policy: Policy | None = None
    has_graph: bool = False
    """Whether it takes jobs that wait for each other, and arrays."""
    has_needs: bool = False
    """Whether it takes jobs that ask for more than devices."""
    has_idle_work: bool = False
    """Whether it takes jobs that say what they are worth."""
    has_hours: bool = False
    """Whether it takes jobs that have to be over by some hour."""
    has_operator: bool = False
    """Whether it takes somebody who pauses, drains and reserves."""
    first_seed: int = 0
    """The life that is lived first: one that is known to find a fault that few lives find."""


def asks_nobody_for_its_hour(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(finishing, "_is_to_be_asked", lambda job, attempt: False)


def sleeps_over_hours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "next_hour_s", lambda state, now_s: None)


def prefers_equals(patch: pytest.MonkeyPatch) -> None:
    sound = preempt.choose_victims

    def faulty(shape: Any, priority: int, *rest: Any) -> preempt.Search:
        return sound(shape, priority + 1, *rest)

    patch.setattr(round_module, "choose_victims", faulty)


def ignores_preemptibility(patch: pytest.MonkeyPatch) -> None:
    def faulty(state: State, *, now_s: float, min_run_s: float, leaving: Iterable[str]) -> list[preempt.Candidate]:
        jobs = [state.jobs[job_id] for job_id in state.index.holding - set(leaving)]
        found = [preempt._candidate(j, j.attempt, now_s, min_run_s) for j in jobs if j.attempt and not j.attempt.stop]
        return sorted(found, key=preempt._harm)

    patch.setattr(paper_module, "candidates", faulty)


def ignores_minimum_run_time(patch: pytest.MonkeyPatch) -> None:
    sound = preempt.candidates

    def faulty(state: State, **facts: Any) -> list[preempt.Candidate]:
        return sound(state, **{**facts, "min_run_s": 0.0})

    patch.setattr(paper_module, "candidates", faulty)


def asks_again_who_is_leaving(patch: pytest.MonkeyPatch) -> None:
    def faulty(state: State, *, now_s: float, min_run_s: float, leaving: Iterable[str]) -> list[preempt.Candidate]:
        jobs = [state.jobs[job_id] for job_id in state.index.holding]
        found = [preempt._candidate(j, j.attempt, now_s, min_run_s) for j in jobs if j.attempt and j.is_preemptible]
        return sorted(found, key=preempt._harm)

    patch.setattr(paper_module, "candidates", faulty)
    patch.setattr(round_module, "_at_hand", lambda free, state, leaving: free.copy())
    patch.setattr(round_module, "_served", lambda state: frozenset())


def takes_an_extra_victim(patch: pytest.MonkeyPatch) -> None:
    sound = preempt.choose_victims

    def faulty(shape: Any, priority: int, at_hand: Any, wanted: Any, pool: Any, now_s: float) -> preempt.Search:
        search = sound(shape, priority, at_hand, wanted, pool, now_s)
        extra = [c for c in pool if c.job.priority < priority and c.mature_at_s <= now_s and c not in search.victims]
        return replace(search, victims=(*search.victims, *extra[:1])) if search.victims else search

    patch.setattr(round_module, "choose_victims", faulty)


def does_not_prune(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(preempt, "_pruned", lambda shape, available, wanted, chosen: tuple(chosen))


def keeps_who_promises_least(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(preempt, "exchanged", lambda victims, others, is_enough: {})


def preempts_before_it_fits(patch: pytest.MonkeyPatch) -> None:
    def faulty(shape: Any, priority: int, at_hand: Any, wanted: Any, pool: Any, now_s: float) -> preempt.Search:
        lower = tuple(c for c in pool if c.job.priority < priority and c.mature_at_s <= now_s)
        return preempt.Search(victims=lower[:1])

    patch.setattr(round_module, "choose_victims", faulty)
    patch.setattr(paper_module, "place", lambda shape, room, typical: SOUND_PLACE(shape, room) or _some_of(shape, room))


SOUND_PLACE = paper_module.place


def _some_of(shape: Any, room: Room) -> Any:
    n_left = sum(mask.bit_count() for mask in room.devices.values())
    return SOUND_PLACE(replace(shape, n_devices=n_left, devices_per_node=None), room) if n_left else None


def preempts_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "_served", lambda state: frozenset())
    patch.setattr(round_module, "_at_hand", lambda free, state, leaving: free.copy())


def gives_devices_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Room, "take", lambda self, placements: None)


def gives_promised_devices_away(patch: pytest.MonkeyPatch) -> None:
    def faulty(paper: Any, job: Job, placements: Any, victims: Any) -> None:
        paper.promises[job.job_id] = round_module.Promise(placements=placements, victims=victims)

    patch.setattr(round_module, "_promise", faulty)


def splits_gangs(patch: pytest.MonkeyPatch) -> None:
    def faulty(shape: Any, room: Room, typical: Any) -> Any:
        placed = SOUND_PLACE(shape, room)
        if placed is None or len(placed) < 2:
            return placed
        return placed[:-1]

    patch.setattr(paper_module, "place", faulty)


def ignores_the_kind_of_device(patch: pytest.MonkeyPatch) -> None:
    def faulty(shape: Any, kinds: Any, index: Any) -> Any:
        return {node: masks[None] for node, masks in kinds.items() if masks[None]}

    patch.setattr(paper_module, "usable", faulty)


def lets_others_overtake(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "allowed", lambda paper, lane, wanted, until_s=0.0: wanted)


def never_preempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "choose_victims", lambda *_: preempt.Search())


def starts_in_reverse(patch: pytest.MonkeyPatch) -> None:
    def faulty_sorted(values: Any, **how: Any) -> Any:
        return sorted(values, **{**how, "reverse": not how.get("reverse", False)})

    patch.setattr(round_module, "sorted", faulty_sorted, raising=False)


def forgets_to_wake(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "_plan_wake", lambda paper, n_expired: None)


def decides_by_chance(patch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()

    def faulty(shape: Any, room: Room, typical: Any) -> Any:
        highest = replace(room, devices={node: mask & (mask - 1) for node, mask in room.devices.items()})
        other = SOUND_PLACE(shape, highest) if next(calls) % 2 else None
        return other or SOUND_PLACE(shape, room)

    patch.setattr(paper_module, "place", faulty)


def changes_the_state_while_deciding(patch: pytest.MonkeyPatch) -> None:
    sound = round_module.expired

    def faulty(state: State, now_s: float) -> Any:
        due = sound(state, now_s)
        del state.index.deadlines[: len(due)]
        return due

    patch.setattr(round_module, "expired", faulty)


def obeys_late_reports(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_module, "is_late", lambda state, event: False)


def lets_late_stops_hit_the_new_attempt(patch: pytest.MonkeyPatch) -> None:
    sound = apply_module._apply_to_job

    def faulty(state: State, event: Any, recorded: Any) -> None:
        job = state.jobs.get(event.job_id) if hasattr(event, "job_id") else None
        if job is not None and job.attempt is not None and hasattr(event, "attempt"):
            event = replace(event, attempt=job.attempt.number)
        sound(state, event, recorded)

    patch.setattr(apply_module, "_apply_to_job", faulty)


def leaks_devices(patch: pytest.MonkeyPatch) -> None:
    sound = Indexes.remove_job

    def faulty(self: Indexes, job: Job, clock_s: float) -> None:
        before = dict(self.free)
        sound(self, job, clock_s)
        if job.state in HOLDING and job.attempt is not None and job.attempt.stop is not None:
            self.free.update(before)

    patch.setattr(Indexes, "remove_job", faulty)


def takes_devices_that_are_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Room, "within", lambda self, shape, wanted: replace(self, devices=dict(wanted)))
    patch.setattr(apply_module, "_placement_fault", lambda state, job, placements: None)


def keeps_ended_jobs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "drop_job", lambda self, job_id: None)


def requeues_for_ever(patch: pytest.MonkeyPatch) -> None:
    def faulty(state: Any, reason: Any) -> outcome.Disposition:
        then = outcome.Then.REQUEUE
        return outcome.Disposition(then=then, end_state=None, exit_reason=reason, not_before_s=0.0)

    patch.setattr(outcome, "_end", faulty)


def retries_for_free_for_ever(patch: pytest.MonkeyPatch) -> None:
    sound = outcome._retry_elsewhere
    patch.setattr(outcome, "_retry_elsewhere", lambda job, *rest: sound(job.but(n_infrastructure=0), *rest))


def loses_a_field_in_the_journal(patch: pytest.MonkeyPatch) -> None:
    sound = codec.encode_event

    def faulty(event: Any) -> Any:
        return {key: value for key, value in sound(event).items() if key != "not_before_s"}

    patch.setattr(codec, "encode_event", faulty)


def loses_a_field_in_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    sound = codec._field_names
    patch.setattr(codec, "_field_names", lambda cls: tuple(n for n in sound(cls) if n != "checkpoint_at_s"))


def asks_without_tokens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "ready_s", lambda state, job, policy, now_s, n_now=0: now_s)


def forgets_evictions(patch: pytest.MonkeyPatch) -> None:
    sound = codec.encode_state
    patch.setattr(codec, "encode_state", lambda state: {**sound(state), "evictions": {}})


def charges_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_module, "accounts_of", lambda job: iter(()))


def keeps_ended_jobs_on_account(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Indexes, "drop_from_account", lambda self, account, job_id: None)


def forgets_what_was_spent(patch: pytest.MonkeyPatch) -> None:
    sound = codec.encode_state
    patch.setattr(codec, "encode_state", lambda state: {**sound(state), "spent": {}})


def forgets_holds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "hold_on", lambda self, job: None)


def leaves_held_jobs_in_the_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "_sort_held", lambda self: None)


def places_on_closed_devices(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Standing, "closed", lambda self, node: 0)


def trusts_suspect_nodes_with_gangs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(paper_module.Round, "_offered_to", lambda self, shape: self.state.index.offered)


def forgets_standings_in_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    sound = codec.encode_state
    patch.setattr(codec, "encode_state", lambda state: {**sound(state), "standings": []})


def never_lifts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "drop_hold", lambda self, key: None)


def believes_that_everything_is_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "holds_s", lambda state, job, now_s: 0.0)


def reserves_too_late(patch: pytest.MonkeyPatch) -> None:
    sound = heads_module.reserve

    def faulty(*facts: Any) -> Any:
        found = sound(*facts)
        return found and replace(found, at_s=found.at_s + 1000.0)

    patch.setattr(heads_module, "reserve", faulty)


def reserves_other_devices(patch: pytest.MonkeyPatch) -> None:
    sound = heads_module.reserve

    def faulty(*facts: Any) -> Any:
        found = sound(*facts)
        return found and replace(found, placements=())

    patch.setattr(heads_module, "reserve", faulty)


def has_endless_patience(patch: pytest.MonkeyPatch) -> None:
    sound = heads_module.reserved_for

    def faulty(paper: Any, job: Job, wanted: Any) -> Any:
        return sound(paper, job.but(queued_since_s=paper.now_s + 1.0), wanted)

    patch.setattr(heads_module, "reserved_for", faulty)


def puts_long_work_first(patch: pytest.MonkeyPatch) -> None:
    sound = order_module.lets_by_s
    patch.setattr(order_module, "lets_by_s", lambda state, lane, policy: -sound(state, lane, policy))


def loses_the_estimates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Estimates, "remembered", lambda self: iter(()))


def loses_the_departures(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leaving, "remembered", lambda self: iter(()))


def loses_the_usages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Usages, "remembered", lambda self: iter(()))


def never_lets_usage_fade(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(usage_module, "exp", lambda power: 1.0)


def weighs_faultily(patch: pytest.MonkeyPatch, **wrong: float) -> None:
    sound = fairshare_module.standings

    def faulty(*facts: Any) -> dict[str, fairshare_module.Standing]:
        return {project: replace(standing, **wrong) for project, standing in sound(*facts).items()}

    patch.setattr(fairshare_module, "standings", faulty)


def ignores_what_is_deserved(patch: pytest.MonkeyPatch) -> None:
    weighs_faultily(patch, deserved=0)


def ignores_weights(patch: pytest.MonkeyPatch) -> None:
    weighs_faultily(patch, entitled=3.0)


def counts_lower_work_in_a_class(patch: pytest.MonkeyPatch) -> None:
    sound = fairshare_module.standings
    patch.setattr(fairshare_module, "standings", lambda state, priority, *facts: sound(state, 0, *facts))


def lets_others_by_without_bound(patch: pytest.MonkeyPatch) -> None:
    sound = fairshare_module.ClassShares.lets_by_s
    patch.setattr(fairshare_module.ClassShares, "lets_by_s", lambda *facts: 1000.0 * sound(*facts))


def forgets_quotas(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_module, "used_up", lambda *facts: None)


def lets_others_take_the_room_in_a_quota(patch: pytest.MonkeyPatch) -> None:
    sound = round_module.used_up
    patch.setattr(round_module, "used_up", lambda quotas, held, closed, job: sound(quotas, held, set(), job))


def forgets_earlier_attempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_module, "worked_s", lambda job, at_s: 0.0)


def never_uses_up_its_running_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(outcome, "worked_s", lambda job, at_s: 0.0)


def counts_a_renewal_as_a_preemption(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_module, "_was_preempted", lambda job: job.attempt.stop is not None)
    patch.setattr(outcome, "_renewed", lambda ending: ending)


def starts_before_its_dependencies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Job, "is_waiting", property(lambda self: False))


def takes_any_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dependencies, "is_met", lambda condition, is_ok: True)


def never_tells_dependents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_module, "tell_dependents", lambda *facts: None)


def forgets_spoiled_arrays(patch: pytest.MonkeyPatch) -> None:
    sound = codec.encode_state
    patch.setattr(codec, "encode_state", lambda state: {**sound(state), "spoiled": []})


def opens_every_task(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ArrayLine, "n_may_open", property(lambda self: len(self.ready)))


def never_opens_the_next_task(patch: pytest.MonkeyPatch) -> None:
    sound = Indexes.settle_array

    def faulty(self: Indexes, array_id: str, *facts: Any) -> None:
        line = self.arrays[array_id]
        if not line.n_live or not line.n_open:
            sound(self, array_id, *facts)

    patch.setattr(Indexes, "settle_array", faulty)


def forgets_the_cores(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Room, "cpu_left", lambda self, node_id: UNBOUND)
    patch.setattr(apply_module, "_part_fault", lambda index, part: None)


def forgets_the_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Room, "memory_left", lambda self, node_id: UNBOUND)
    patch.setattr(apply_module, "_part_fault", lambda index, part: None)


def lets_others_beside_exclusive_jobs(patch: pytest.MonkeyPatch) -> None:
    sound = fit._core_groups

    def faulty(room: Room, node_id: str, mask: int) -> Iterator[CoreGroup]:
        for group in sound(room, node_id, room.index.kinds[node_id][None]):
            for device in indexes_of(group.devices & mask):
                yield replace(group, devices=1 << device)

    patch.setattr(fit, "_core_groups", faulty)


def gives_shares_out_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Room, "set_left", lambda self, node_id, device, left: None)
    patch.setattr(apply_module, "_part_fault", lambda index, part: None)


def takes_any_kind_of_a_list(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fit, "kinds_tried", lambda shape: (None,))


FAULTS = (
    Fault(name="cores_forgotten", plant=forgets_the_cores, caught_by="no core is given", has_needs=True),
    Fault(
        name="memory_forgotten", first_seed=3, plant=forgets_the_memory, caught_by="no memory is given", has_needs=True
    ),
    Fault(
        name="not_alone",
        first_seed=2,
        plant=lets_others_beside_exclusive_jobs,
        caught_by="is alone on its",
        has_needs=True,
    ),
    Fault(
        name="share_twice", first_seed=5, plant=gives_shares_out_twice, caught_by="no part of a device", has_needs=True
    ),
    Fault(
        name="mixed_gang",
        first_seed=1,
        plant=takes_any_kind_of_a_list,
        caught_by="a gang is of one kind",
        has_needs=True,
    ),
    Fault(name="no_waiting", plant=starts_before_its_dependencies, caught_by="index `waiting` equals", has_graph=True),
    Fault(name="any_end", plant=takes_any_end, caught_by="ended as it had to", has_graph=True),
    Fault(name="never_told", plant=never_tells_dependents, caught_by="a job waits for what is live", has_graph=True),
    Fault(
        name="spoiled_lost",
        first_seed=3,
        plant=forgets_spoiled_arrays,
        caught_by="a snapshot holds the whole",
        has_graph=True,
    ),
    Fault(name="array_unbounded", plant=opens_every_task, caught_by="index `queue` equals|`arrays`", has_graph=True),
    Fault(name="array_stuck", plant=never_opens_the_next_task, caught_by="index `arrays` equals", has_graph=True),
    Fault(name="attempts_forgotten", plant=forgets_earlier_attempts, caught_by="running time is counted"),
    Fault(
        name="endless_running",
        first_seed=8,
        plant=never_uses_up_its_running_time,
        caught_by="has used up its running time",
    ),
    Fault(
        name="renewal_counted",
        first_seed=7,
        plant=counts_a_renewal_as_a_preemption,
        caught_by="only a preemption counts",
    ),
    Fault(
        name="tokens_ignored",
        first_seed=24,
        plant=asks_without_tokens,
        caught_by="stay within the bucket",
        policy=Policy(preempt_burst=0.2, preempt_per_hour=0.5),
    ),
    Fault(name="evictions_lost", first_seed=3, plant=forgets_evictions, caught_by="a snapshot holds the whole"),
    Fault(name="charged_to_nobody", plant=charges_nobody, caught_by="charged to a project, once"),
    Fault(name="account_kept", plant=keeps_ended_jobs_on_account, caught_by="index `accounts` equals"),
    Fault(name="spent_lost", plant=forgets_what_was_spent, caught_by="a snapshot holds the whole"),
    Fault(name="hold_forgotten", plant=forgets_holds, caught_by="`held` equals", has_operator=True),
    Fault(name="held_in_queue", plant=leaves_held_jobs_in_the_queue, caught_by="`held` equals", has_operator=True),
    Fault(name="closed_used", plant=places_on_closed_devices, caught_by="`free` equals", has_operator=True),
    Fault(
        name="suspect_gang",
        plant=trusts_suspect_nodes_with_gangs,
        caught_by="a suspect node carries no gang",
        has_operator=True,
    ),
    Fault(
        name="standing_lost",
        plant=forgets_standings_in_the_snapshot,
        caught_by="a snapshot holds the whole state",
        has_operator=True,
    ),
    Fault(name="never_lifted", plant=never_lifts, caught_by="what is taken back is gone", has_operator=True),
    Fault(name="equals_preempted", first_seed=14, plant=prefers_equals, caught_by="victims are strictly lower"),
    Fault(name="any_victim", first_seed=3, plant=ignores_preemptibility, caught_by="victims are preemptible"),
    Fault(
        name="young_victims",
        first_seed=3,
        plant=ignores_minimum_run_time,
        caught_by="victims had their minimum run time",
        policy=Policy(min_run_s=20.0),
    ),
    Fault(
        name="victims_asked_again",
        first_seed=3,
        plant=asks_again_who_is_leaving,
        caught_by="nobody is asked to leave twice",
    ),
    Fault(name="extra_victim", first_seed=3, plant=takes_an_extra_victim, caught_by="every victim is needed"),
    Fault(name="no_pruning", first_seed=111, plant=does_not_prune, caught_by="every victim is needed"),
    Fault(
        name="least_promising",
        first_seed=25,
        plant=keeps_who_promises_least,
        caught_by="who promises least leaves first",
        policy=Policy(),
        has_idle_work=True,
    ),
    Fault(name="unproven", plant=preempts_before_it_fits, caught_by="nobody leaves before the whole gang fits"),
    Fault(
        name="preempts_twice",
        first_seed=3,
        plant=preempts_twice,
        caught_by="nobody else leaves while victims are leaving",
    ),
    Fault(name="device_given_twice", plant=gives_devices_twice, caught_by="no device in two attempts|promised devices"),
    Fault(name="promise_not_kept", plant=gives_promised_devices_away, caught_by="promised devices are kept"),
    Fault(name="split_gang", plant=splits_gangs, caught_by="a gang is whole or absent"),
    Fault(name="wrong_kind", plant=ignores_the_kind_of_device, caught_by="a gang gets what it asked for"),
    Fault(name="overtaking", plant=lets_others_overtake, caught_by="a blocked head is not delayed"),
    Fault(name="blind_backfill", plant=believes_that_everything_is_short, caught_by="a blocked head is not delayed"),
    Fault(name="late_reservation", plant=reserves_too_late, caught_by="a blocked head is not delayed"),
    Fault(name="empty_reservation", plant=reserves_other_devices, caught_by="a blocked head is not delayed"),
    Fault(
        name="endless_patience",
        plant=has_endless_patience,
        caught_by="a blocked head is not delayed",
        policy=Policy(backfill_patience_s=0.0),
    ),
    Fault(
        name="long_work_first",
        first_seed=27,
        plant=puts_long_work_first,
        caught_by="the first in the queue|blocked head",
    ),
    Fault(name="no_quotas", plant=forgets_quotas, caught_by="no quota is exceeded", policy=Policy(quotas=QUOTAS)),
    Fault(
        name="quota_overtaken",
        plant=lets_others_take_the_room_in_a_quota,
        caught_by="no quota is exceeded",
        policy=Policy(quotas=QUOTAS),
    ),
    Fault(
        name="lost_departures", first_seed=12, plant=loses_the_departures, caught_by="a snapshot holds the whole state"
    ),
    Fault(name="lost_estimates", plant=loses_the_estimates, caught_by="a snapshot holds the whole state"),
    Fault(name="lost_usages", plant=loses_the_usages, caught_by="a snapshot holds the whole state"),
    Fault(name="no_fading", plant=never_lets_usage_fade, caught_by="what its project's share says|was held, faded"),
    Fault(name="nothing_deserved", plant=ignores_what_is_deserved, caught_by="what its project's share says"),
    Fault(name="no_weights", plant=ignores_weights, caught_by="what its project's share says"),
    Fault(name="lower_work_counts", plant=counts_lower_work_in_a_class, caught_by="what its project's share says"),
    Fault(name="unbounded_wait", plant=lets_others_by_without_bound, caught_by="overtaken for a bounded time"),
    Fault(
        name="no_preemption",
        first_seed=3,
        plant=never_preempts,
        caught_by="the first in the queue gets what lower ones hold",
    ),
    Fault(name="lowest_class_first", plant=starts_in_reverse, caught_by="the first in the queue|blocked head"),
    Fault(name="no_wake", plant=forgets_to_wake, caught_by="a round is due when something is"),
    Fault(name="chance", plant=decides_by_chance, caught_by="same input, same decision"),
    Fault(name="mutation", plant=changes_the_state_while_deciding, caught_by="schedule leaves the state unchanged"),
    Fault(name="fence_deleted", plant=obeys_late_reports, caught_by="never ordered|does not know this event"),
    Fault(
        name="fence_misread",
        first_seed=1,
        plant=lets_late_stops_hit_the_new_attempt,
        caught_by="a late report changes nothing",
    ),
    Fault(name="leaked_devices", plant=leaks_devices, caught_by="index `free` equals its recomputation"),
    Fault(name="double_device", plant=takes_devices_that_are_held, caught_by="no device in two attempts"),
    Fault(name="ended_job_kept", plant=keeps_ended_jobs, caught_by="ended jobs leave the state|knows what is held"),
    Fault(
        name="endless_free_retries",
        plant=retries_for_free_for_ever,
        caught_by="free retries are bounded",
        policy=Policy(max_infrastructure_retries=1),
    ),
    Fault(
        name="hour_ignored",
        first_seed=3,
        plant=asks_nobody_for_its_hour,
        caught_by="has to leave for its hour",
        has_hours=True,
    ),
    Fault(name="hour_slept_over", plant=sleeps_over_hours, caught_by="a round is due when", has_hours=True),
    Fault(name="endless_requeue", plant=requeues_for_ever, caught_by="every feasible job ends"),
    Fault(name="lossy_journal", plant=loses_a_field_in_the_journal, caught_by="replay equals the live state"),
    Fault(name="lossy_snapshot", plant=loses_a_field_in_the_snapshot, caught_by="a snapshot holds the whole state"),
)


def broken_in_life(seed: int, fault: Fault) -> str | None:
    """What broke first in this life; None: nothing did."""
    more = (
        *(GRAPH_COMMANDS if fault.has_graph else ()),
        *(AMOUNT_COMMANDS if fault.has_needs else ()),
        *(IDLE_WORK_COMMANDS if fault.has_idle_work else ()),
        *(HOUR_COMMANDS if fault.has_hours else ()),
    )
    try:
        world = run(random.Random(seed).randrange, N_COMMANDS, fault.policy, has_operator=fault.has_operator, more=more)
        check_graph(world.journal.recorded)
    except CAUGHT as broken:
        return str(broken)
    return None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    seen: set[str] = set()
    for offset in range(N_SEEDS):
        broken = broken_in_life((fault.first_seed + offset) % N_SEEDS, fault)
        if broken is not None:
            if any(words in broken for words in fault.caught_by.split("|")):
                return
            seen.add(broken[:100])
    pytest.fail(f"expected {fault.caught_by}; {N_SEEDS} lives broke only {seen}")

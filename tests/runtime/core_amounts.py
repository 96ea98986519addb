"""Random lives in which jobs ask for more than devices: lists of kinds, memory, cores, shares, exclusiveness.

What was given out twice is found by the invariants (`runtime.model.amounts`), and that each job gets what it asked for
by `core_properties.check_given`. What hangs on sets of whole devices is not checked in these lives.
"""

from __future__ import annotations

from core_driver import World
from core_language import job

from runtime.model.events import JobSubmitted
from runtime.model.nouns import Needs

CLASSES = ("exploratory", "normal", "critical")
NEEDS: tuple[tuple[int, str | None, Needs], ...] = (
    (1, None, Needs(cpu_milli=1500)),
    (2, None, Needs(cpu_milli=1000, memory_mb=200)),
    (1, None, Needs(memory_mb=700)),
    (1, None, Needs(device_thousandths=500)),
    (1, "H100", Needs(device_thousandths=300, cpu_milli=200)),
    (1, None, Needs(device_thousandths=700)),
    (2, "H100", Needs(or_accelerators=("cpu",))),
    (1, None, Needs(device_memory_mb=60_000)),
    (1, None, Needs(is_exclusive=True)),
    (2, None, Needs(is_exclusive=True, memory_mb=100)),
    (0, None, Needs(cpu_milli=2000)),
    (1, None, Needs(cpu_milli=99_000)),
)


def submit_with_needs(world: World) -> None:
    world.n_jobs += 1
    n_devices, kind, needs = NEEDS[world.pick(len(NEEDS))]
    new = job(
        f"j{world.n_jobs}",
        n_devices=n_devices,
        kind=kind,
        needs=needs,
        priority=CLASSES[world.pick(len(CLASSES))],
        submitted_at=world.now_s,
        timeout_s=(None, None, 50.0)[world.pick(3)],
    )
    world.record(JobSubmitted(job=new))


AMOUNT_COMMANDS = (submit_with_needs,) * 5

"""Long queues and fast submissions.

Source: reports about Ray, SkyPilot, task-spooler.
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

from core_language import Journal, cluster, decide, queued
from lab import lab, spec, until

from runtime.engines.contract import LaunchOrder
from runtime.engines.fake import FakeEngine, fake_node

KIB = 1024


class Instant:
    """Every attempt ends as soon as it has started."""

    def started(self, engine: FakeEngine, order: LaunchOrder) -> None:
        engine.finish(order.key)

    def stopped(self, engine: FakeEngine, order: object) -> None:
        return


def test_a_waiting_job_costs_kibibytes_not_mebibytes() -> None:
    n_jobs = 3000
    tracemalloc.start()
    state = cluster("a:1")
    journal = Journal(state=state)
    before = tracemalloc.get_traced_memory()[0]
    for n in range(1, n_jobs + 1):
        queued(f"j{n}")(journal)
    decide(state)
    per_job = (tracemalloc.get_traced_memory()[0] - before) / n_jobs
    tracemalloc.stop()
    assert per_job < 8 * KIB


def test_jobs_submitted_fast_start_one_after_the_other_without_pauses(tmp_path: Path) -> None:
    n_jobs = 200
    with lab(tmp_path, engine=FakeEngine(nodes=(fake_node(n_devices=4),), script=Instant())) as made:
        began = time.monotonic()
        made.client.submit_many([spec() for _ in range(n_jobs)])
        until(lambda: made.client.info().n_queued == made.client.info().n_running == 0, timeout_s=30)
        assert (time.monotonic() - began) / n_jobs < 0.1, "seconds from one start to the next"


def test_an_answer_does_not_wait_for_a_long_queue(tmp_path: Path) -> None:
    with lab(tmp_path, n_devices=1) as made:
        made.client.submit_many([spec() for _ in range(2000)])
        began = time.monotonic()
        told = made.client.explain("j2000")
        assert told.queue_position == 1999
        made.client.submit(spec(priority_class="critical"))
        assert time.monotonic() - began < 5.0

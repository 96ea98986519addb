"""A snapshot in the middle of a session, with one job being preempted for a critical one."""

from __future__ import annotations

from agent.report.timeline import Preemption
from agent.store.views import ActivityView, Purpose, SessionState
from agent.task import Direction
from nightlab.live.snapshot import LiveSnapshot, Phase, QueueLine, SlotLine, Spend

NOW = 1_800_000_083.0
PARAMS = (("lr", 0.00812), ("hidden", 113), ("batch_size", 64), ("alpha", 3.2e-4), ("activation", "tanh"))


def slots() -> tuple[SlotLine, ...]:
    busy = SlotLine(
        name="cpu:0",
        job_id="j9",
        trial_number=9,
        purpose=Purpose.SEARCH,
        priority_class="exploratory",
        params=PARAMS,
        state="running",
        step=34,
        n_steps=60,
        value=0.95333,
        elapsed_s=6.2,
    )
    leaving = SlotLine(
        name="cpu:1",
        job_id="j8",
        trial_number=8,
        purpose=Purpose.REPLICATE,
        priority_class="exploratory",
        params=PARAMS,
        state="stopping",
        beneficiary="j10",
        step=41,
        n_steps=60,
        value=0.9702,
        elapsed_s=7.5,
    )
    return busy, leaving


def preemption() -> Preemption:
    return Preemption(
        job_id="j5",
        attempt=1,
        trial_number=5,
        beneficiary="j7",
        ordered_at=NOW - 30,
        left_at=NOW - 29.8,
        checkpoint_step=41,
        resumed_attempt=2,
        resumed_at=NOW - 20,
        run_id="0" * 32,
        state="succeeded",
    )


def snapshot(**changes: object) -> LiveSnapshot:
    fields: dict[str, object] = {
        "at": NOW,
        "task_name": "digits",
        "session_id": "s1",
        "metric": "val_accuracy",
        "direction": Direction.MAXIMIZE,
        "session_state": SessionState.RUNNING,
        "phase": Phase.SEARCHING,
        "message": "",
        "since_start_s": 83.0,
        "slots": slots(),
        "queue": (
            QueueLine(job_id="j10", trial_number=None, priority_class="critical", waiting_s=0.3, is_requeued=False),
            QueueLine(job_id="j6", trial_number=6, priority_class="exploratory", waiting_s=4.0, is_requeued=True),
        ),
        "best_series": (0.948, 0.948, 0.961, 0.961, 0.9711, 0.9711, 0.9778),
        "best": 0.97778,
        "best_trial": 7,
        "best_params": PARAMS,
        "default": 0.94889,
        "n_search_measured": 7,
        "n_measured": 7,
        "n_invalid": 1,
        "spend": Spend(
            n_trials=9,
            max_trials=18,
            wall_s=83.0,
            max_wall_s=1800.0,
            device_s=141.0,
            max_device_s=None,
            n_fresh=0,
            max_fresh=10,
        ),
        "activity": tuple(
            ActivityView(at=NOW - 40 + i, step="launch", text=f"trial {i} on a free slot: lr was too low so far")
            for i in range(30)
        ),
        "preemptions": (preemption(),),
        "mlflow_url": "http://127.0.0.1:7071",
        "mlflow_state": "up",
        "n_outbox": 12,
        "notices": (),
        "result": None,
    }
    return LiveSnapshot(**{**fields, **changes})  # type: ignore[arg-type]

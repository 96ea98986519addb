"""A made-up session with everything in it: failures, a preemption, fresh seeds. For trying views without a run.

Deterministic; nothing in it was measured. `python -m agent.report.sample report.html` writes its report.
"""

from __future__ import annotations

import hashlib
import math
import random
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.planner.budget import Spend
from agent.planner.configuration import canonical, configuration_id
from agent.planner.history import History
from agent.planner.plan import Plan, first_plan, revised
from agent.planner.plan_text import plan_to_json
from agent.planner.verdict import conclude
from agent.store.views import (
    ActivityView,
    LookView,
    ParamValue,
    PlanView,
    Purpose,
    SessionState,
    SessionView,
    TrialState,
    TrialView,
)
from agent.task import Task
from runtime_client.models import AttemptView, DeviceView, JobSpec, JobView, MetricPoint, NodeView, PlacementView

from .facts import ReportInput

START = 1_800_000_000.0
N_DEVICES = 2
RUN_S = 7.0
N_RACED = 10
EPOCHS = 60
DEFAULT: dict[str, ParamValue] = {"lr": 1e-3, "hidden": 32, "alpha": 1e-4, "activation": "relu"}
BEST: dict[str, ParamValue] = {"lr": 8.1e-3, "hidden": 113, "alpha": 3.2e-4, "activation": "tanh"}

TASK = Task.model_validate(
    {
        "task": "digits",
        "description": "Which small network reads handwritten digits best?",
        "objective": {"metric": "val_accuracy", "direction": "maximize"},
        "job": {"command": "python train.py", "args_style": "argparse"},
        "space": {
            "lr": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True, "default": 1e-3},
            "hidden": {"type": "int", "low": 8, "high": 128, "log": True, "default": 32},
            "alpha": {"type": "float", "low": 1e-6, "high": 1.0, "log": True, "default": 1e-4},
            "activation": {"type": "categorical", "choices": ["relu", "tanh", "logistic"], "default": "relu"},
        },
        "fidelity": {"parameter": "epochs", "value": EPOCHS},
        "held_out": {"metric": "test_accuracy", "parameters": {"evaluate_test": True}},
        "budgets": {"trials": 18, "wall_minutes": 30},
    }
)


@dataclass(slots=True)
class _Tape:
    """What happened so far on the made-up machine."""

    random: random.Random
    free_at: list[float]
    trials: list[TrialView] = field(default_factory=list)
    jobs: list[JobView] = field(default_factory=list)
    points: dict[str, tuple[MetricPoint, ...]] = field(default_factory=dict)


def sample_report_input() -> ReportInput:
    """A finished session on two slots: a search of 18 trials, a race of two challengers, pairs at the end, a look."""
    tape = _Tape(random=random.Random(7), free_at=[START] * N_DEVICES)
    for number in range(1, 19):
        params = DEFAULT if number == 1 else BEST if number == 13 else _draw(tape.random)
        _run(tape, params, seed=0, purpose=Purpose.SEARCH, fails=number in (6, 11))
        if number == 9:
            _preempt_last(tape)
    for seed in range(100, 100 + N_RACED):
        for params in (BEST, DEFAULT, tape.trials[7].params)[: 3 if seed < 103 else 2]:
            _run(tape, params, seed=seed, purpose=Purpose.REPLICATE)
    tape.free_at = [max(tape.free_at)] * N_DEVICES
    for seed in range(1000, 1000 + TASK.seeds.fresh):
        for params in (BEST, DEFAULT):
            _run(tape, params, seed=seed, purpose=Purpose.REPLICATE)
    _run(tape, BEST, seed=1000, purpose=Purpose.HELD_OUT)
    end = max(tape.free_at)
    plan = _plan(tape)
    return ReportInput(
        session=_session(tape, plan, end),
        plan=PlanView(
            revision=plan.revision, at=end, phase=plan.phase, reason=plan.reason, plan_json=plan_to_json(plan)
        ),
        task=TASK,
        trials=tuple(tape.trials),
        activity=_activity(tape),
        looks=(
            LookView(
                look=1,
                at=tape.trials[-1].launched_at or end,
                metric="test_accuracy",
                configuration=configuration_of(BEST),
                trial_id=tape.trials[-1].trial_id,
                value=0.9597,
            ),
        ),
        jobs=tuple(tape.jobs),
        nodes=(sample_node(),),
        points=tape.points,
        mlflow_url="http://127.0.0.1:5000/#/experiments/1",
        made_at=end,
    )


def sample_node(held_by: tuple[str | None, ...] = (None,) * N_DEVICES) -> NodeView:
    """One machine with a CPU slot for each entry, held by that job."""
    devices = tuple(
        DeviceView(index=i, kind="cpu", uuid=f"cpu-{i}", job_id=job_id, attempt=None if job_id is None else 1)
        for i, job_id in enumerate(held_by)
    )
    return NodeView(
        node_id="local", generation=1, state="ready", devices=devices, hostname="here", cpus=2, memory_mb=8000
    )


def configuration_of(params: dict[str, ParamValue]) -> str:
    return configuration_id(canonical(params, TASK))


def _draw(rng: random.Random) -> dict[str, ParamValue]:
    return {
        "lr": 10 ** rng.uniform(-4, -1),
        "hidden": round(8 * 16 ** rng.random()),
        "alpha": 10 ** rng.uniform(-6, 0),
        "activation": rng.choice(["relu", "tanh", "logistic"]),
    }


def _quality(params: dict[str, ParamValue]) -> float:
    lr, alpha, hidden = (float(params[name] or 0) for name in ("lr", "alpha", "hidden"))
    penalty = 0.02 * (math.log10(lr) + 2.0) ** 2 + 0.01 * max(0.0, math.log10(alpha) + 2) ** 2
    return 0.958 + 0.02 * (1 - math.exp(-hidden / 50)) - penalty - 0.01 * (params["activation"] == "logistic")


def _run(tape: _Tape, params: dict[str, ParamValue], *, seed: int, purpose: Purpose, fails: bool = False) -> None:
    number = len(tape.trials) + 1
    device = min(range(N_DEVICES), key=lambda d: (tape.free_at[d], d))
    start, job_id = tape.free_at[device], f"j{len(tape.jobs) + 1}"
    end = start + RUN_S * tape.random.uniform(0.9, 1.1) * (0.6 if fails else 1.0)
    value = _quality(params) + tape.random.gauss(0, 0.004)
    tape.free_at[device] = end + 0.15
    tape.points[job_id] = _curve(job_id, value, start + 4.0, end - 0.4, fails=fails)
    attempt = AttemptView(
        attempt=1,
        placements=(PlacementView(node_id="local", devices=(device,), first_rank=0),),
        ordered_at=start,
        started_at=start + 0.05,
        ended_at=end,
        outcome="failed" if fails else "succeeded",
        exit_reason="code_error" if fails else "completed",
        exit_code=1 if fails else 0,
    )
    tape.jobs.append(_job(job_id, "exploratory", "failed" if fails else "succeeded", (attempt,)))
    trial = TrialView(
        trial_id=f"s1-t{number}",
        session_id="s1",
        number=number,
        configuration=configuration_of(params),
        params=params,
        seed=seed,
        purpose=purpose,
        suggested_by="default" if number == 1 else "optuna" if purpose is Purpose.SEARCH else "replicator",
        why="the default configuration comes first" if number == 1 else "suggested by the sampler",
        state=TrialState.INVALID if fails else TrialState.MEASURED,
        job_id=job_id,
        value=None if fails else value,
        note="ValueError: Solver produced non-finite parameter weights." if fails else None,
        exit_reason="code_error" if fails else None,
        device_seconds=end - start,
        proposed_at=start - 1.0,
        launched_at=start,
        ended_at=end,
    )
    tape.trials.append(trial)


def _curve(job_id: str, value: float, start: float, end: float, *, fails: bool) -> tuple[MetricPoint, ...]:
    steps = EPOCHS // 3 if fails else EPOCHS
    return tuple(
        MetricPoint(
            key="val_accuracy",
            value=value - 0.85 * math.exp(-step / 7.0),
            step=step,
            at=start + (end - start) * step / steps,
            attempt=1,
        )
        for step in range(1, steps + 1)
    )


def _job(job_id: str, priority_class: str, state: str, attempts: tuple[AttemptView, ...]) -> JobView:
    return JobView(
        job_id=job_id,
        state=state,
        spec=JobSpec(experiment_name="digits", command="python train.py", priority_class=priority_class),
        priority=1000 if priority_class == "critical" else 100,
        preemptible=priority_class != "critical",
        submitted_at=attempts[0].ordered_at if attempts else START,
        started_at=attempts[0].started_at if attempts else None,
        ended_at=attempts[-1].ended_at if attempts else None,
        checkpoint_step=attempts[-1].checkpoint_step if attempts else None,
        attempts=attempts,
        run_id=hashlib.sha256(job_id.encode()).hexdigest()[:32],
    )


def _preempt_last(tape: _Tape) -> None:
    """The last job is asked to leave late in its run, a critical one takes its slot, and it comes back."""
    victim, (first,) = tape.jobs[-1], tape.jobs[-1].attempts
    asked = (first.ended_at or 0.0) - 1.2
    left, device = asked + 0.2, first.placements[0].devices[0]
    critical_id = f"j{len(tape.jobs) + 1}"
    critical_end = left + 6.0
    back = AttemptView(
        attempt=2,
        placements=first.placements,
        ordered_at=critical_end + 0.1,
        started_at=critical_end + 0.15,
        ended_at=critical_end + 5.5,
        outcome="succeeded",
        exit_reason="completed",
        exit_code=0,
        checkpoint_step=EPOCHS,
    )
    gone = first.model_copy(
        update={
            "ended_at": left,
            "outcome": "preempted",
            "exit_reason": "preempted",
            "exit_code": 75,
            "stop_ordered_at": asked,
            "stop_cause": "preempt",
            "beneficiary": critical_id,
            "checkpoint_step": 41,
        }
    )
    tape.jobs[-1] = victim.model_copy(
        update={"attempts": (gone, back), "ended_at": back.ended_at, "n_preemptions": 1, "checkpoint_step": EPOCHS}
    )
    urgent = first.model_copy(update={"ordered_at": left + 0.05, "started_at": left + 0.1, "ended_at": critical_end})
    tape.jobs.append(_job(critical_id, "critical", "succeeded", (urgent,)))
    tape.trials[-1] = replace(tape.trials[-1], ended_at=back.ended_at)
    tape.free_at[device] = (back.ended_at or 0.0) + 0.15


def _plan(tape: _Tape) -> Plan:
    """As the planner makes it, revised after every trial."""
    nothing = Spend(device_seconds=0.0, wall_seconds=0.0)
    plan = first_plan(TASK)
    for n in range(1, len(tape.trials) + 1):
        plan = revised(plan, TASK, History.of(tape.trials[:n]), nothing)
    return plan


def _session(tape: _Tape, plan: Plan, end: float) -> SessionView:
    result = conclude(plan, TASK, History.of(tape.trials))
    return SessionView(
        session_id="s1",
        task_name="digits",
        task_json=TASK.model_dump_json(),
        state=SessionState.FINISHED,
        message="",
        created_at=START - 2.0,
        ended_at=end,
        fence=1,
        pid=None,
        run_id="0123456789abcdef0123456789abcdef",
        plan_revision=plan.revision,
        n_trials=18,
        device_seconds=sum(t.device_seconds for t in tape.trials),
        wall_seconds=end - START + 2.0,
        report_path=None,
        result=result,
    )


def _activity(tape: _Tape) -> tuple[ActivityView, ...]:
    lines = [ActivityView(at=START - 1.5, step="orient", text="Two slots; 18 search trials, default first.")]
    for trial in tape.trials:
        text = f"Trial {trial.number} started on a free slot: {trial.why}."
        lines.append(
            ActivityView(
                at=trial.launched_at or START, step="launch", text=text, trial_id=trial.trial_id, job_id=trial.job_id
            )
        )
    return tuple(lines)


def _main(arguments: list[str]) -> int:
    from .build import write_report

    print(write_report(sample_report_input(), Path(arguments[0] if arguments else "report.html")))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))

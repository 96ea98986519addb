"""One session for a person, or as data: its trials, its best, what it does and why, its result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from agent.llm.turns import RungStep, rung_steps, turns
from agent.planner.budget import Cap, Spend, caps
from agent.steering.word import Kind
from agent.store.calls import model_calls_of
from agent.store.gates import GateStore
from agent.store.lessons import read_lessons
from agent.store.steering import SteeringStore
from agent.store.store import AgentStore
from agent.store.tellings import TellingStore
from agent.store.views import ParamValue, Purpose, SessionView, TrialState, TrialView
from agent.task import Task

from .hypotheses_page import plan_data, print_plan
from .model_page import by_purpose, model_lines
from .moments import moment
from .output import ago, duration, plural, print_table

N_LINES = 8


def session_data(store: AgentStore, session_id: str) -> dict[str, object]:
    session = store.session(session_id)
    return {
        "session": asdict(session),
        "budgets": [asdict(cap) for cap in caps_of(session)],
        **plan_data(store, session_id),
        "model": asdict(turns(model_calls_of(store, session_id))),
        "rung_steps": [asdict(one) for one in steps_of(store, session)],
        "lessons": [asdict(one) for one in read_lessons(store, session_id)],
        "trials": [asdict(trial) for trial in store.trials(session_id)],
        "model_calls": [asdict(row) for row in by_purpose(model_calls_of(store, session_id))],
        "steerings": [{**asdict(one), "words": one.words} for one in SteeringStore(store).steerings(session_id)],
        "gates": [asdict(gate) for gate in GateStore(store).gates(session_id)],
        "activity": [asdict(line) for line in store.activity(session_id)],
    }


def steps_of(store: AgentStore, session: SessionView) -> tuple[RungStep, ...]:
    """When the way of asking the session's model changed; none where it has no model."""
    model = Task.model_validate_json(session.task_json).model
    return () if model is None else rung_steps(model_calls_of(store, session.session_id), model.rung)


def caps_of(session: SessionView) -> tuple[Cap, ...]:
    """The five limits and what ended trials and models have used of them."""
    spend = Spend.of(session)
    return caps(Task.model_validate_json(session.task_json).budgets, spend)


def print_session(store: AgentStore, session_id: str) -> None:
    session = store.session(session_id)
    trials = store.trials(session_id)
    is_told_below = session.result is not None and session.result.sentence == session.message
    said = f": {session.message}" if session.message and not is_told_below else ""
    print(f"{session.session_id} {session.task_name} {session.state}{said}")
    print(
        f"  {plural(session.n_trials, 'trial')}, {duration(session.wall_seconds)} running, "
        f"{duration(session.device_seconds)} of device time, started {ago(session.created_at)}"
    )
    if session.finish_by is not None and session.ended_at is None:
        print(f"  nothing of it runs after {moment(session.finish_by)}")
    if session.night_id is not None:
        print(f"  of {session.night_id}: nightlab sweep show {session.night_id}")
    limited = [cap for cap in caps_of(session) if cap.limit is not None]
    print("  budgets: " + ", ".join(cap.words.removeprefix("budgets.").removesuffix(" are used") for cap in limited))
    for said in _steering_lines(store, session_id):
        print(f"  {said}")
    calls = model_calls_of(store, session_id)
    if calls:
        print(f"  model: {turns(calls).words}")
    for step in steps_of(store, session):
        print(f"  model: asked by {step.after} instead of {step.before} since {moment(step.at)}")
    for sentence in model_lines(calls):
        print(f"  {sentence}")
    for lesson in read_lessons(store, session_id):
        print(f"  lesson {lesson.number}: {lesson.text} ({', '.join(lesson.evidence)})")
    if session.result is not None:
        print(f"  {session.result.sentence}")
    for event, note in TellingStore(store).lost(session_id):
        print(f"  ! {event}: {note}")
    for gate in GateStore(store).waiting(session_id):
        print(f"  ? gate {gate.gate_id} waits for an answer: {gate.text}")
        without = f"without one by {moment(gate.answer_by)}: {gate.unanswered}"
        print(f"    nightlab gate approve {gate.gate_id}  (or deny); {without}")
    if session.report_path is not None:
        print(f"  report {session.report_path}")
    if trials:
        print()
        print_table(
            ("#trial", "purpose", "state", "#value", "parameters", "job", "note"),
            [_row(trial) for trial in _newest_and_best(session, trials)],
            state_column=2,
        )
    print_plan(store, session_id)
    lines = store.activity(session_id, N_LINES)
    if lines:
        print()
    for line in lines:
        print(f"  {ago(line.at):>12}  {line.step}: {line.text}")


def _steering_lines(store: AgentStore, session_id: str) -> Iterator[str]:
    """What people have said, as far as it counts now."""
    people = SteeringStore(store)
    course, said = people.course(session_id), people.steerings(session_id)
    for is_on, kind, option in (
        (course.is_paused, Kind.PAUSE, "--go-on"),
        (course.is_taken_over, Kind.TAKE_OVER, "--hand-back"),
    ):
        if is_on:
            last = next(one for one in reversed(said) if one.word.kind is kind)
            yield f"{moment(last.at)}: {last.words}; end it with: nightlab research steer {session_id} {option}"
    for condition in course.task.forbid:
        yield f"forbidden: {condition}"


def _newest_and_best(session: SessionView, trials: list[TrialView], n: int = 30) -> list[TrialView]:
    """All of them while they fit; otherwise the best and the newest."""
    if len(trials) <= n:
        return trials
    best = best_of(session, trials)
    newest = trials[-n:]
    return newest if best is None or best in newest else [best, *newest[1:]]


def best_of(session: SessionView, trials: list[TrialView]) -> TrialView | None:
    """The best measured trial by the objective's direction."""
    measured = [trial for trial in trials if trial.state is TrialState.MEASURED and trial.value is not None]
    if not measured:
        return None
    is_maximized = json.loads(session.task_json)["objective"]["direction"] == "maximize"
    return (max if is_maximized else min)(measured, key=lambda trial: trial.value or 0.0)


def _row(trial: TrialView) -> tuple[str, ...]:
    return (
        str(trial.number),
        _purpose(trial),
        trial.state.value,
        "" if trial.value is None else f"{trial.value:.6g}",
        setting(trial),
        trial.job_id or "",
        trial.note or _reason(trial) or ("" if trial.facts.edited is None else trial.facts.edited.summary),
    )


def _reason(trial: TrialView) -> str:
    if trial.state is TrialState.PROPOSED and trial.has_begun:
        begun = trial.facts.continues
        return f"goes on from {begun[-1]}" if begun else "had to leave without a checkpoint; begins anew"
    return trial.exit_reason or "" if trial.exit_reason != "completed" else ""


def _purpose(trial: TrialView) -> str:
    """Work for a slot that had nothing else to do is told as such."""
    if not trial.is_idle_work:
        return trial.purpose.value
    return "idle time: replicate" if trial.purpose is Purpose.REPLICATE else "idle time: explore"


def setting(trial: TrialView) -> str:
    """Parameters, and of edited code its lines against the base and what it comes from: `x=1 code +12 -3 (s1-t4)`."""
    edited = trial.facts.edited
    code = [] if edited is None else [f"code +{edited.added} -{edited.removed} ({edited.parent or 'base'})"]
    return " ".join([*(f"{name}={shown(value)}" for name, value in trial.params.items()), *code])


def shown(value: ParamValue) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

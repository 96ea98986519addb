"""Reading sessions: which there are, how one stands, its trials, its plan, its budgets."""

from __future__ import annotations

from pydantic import Field

from agent.chat.tool import Desk, Result, Slash
from agent.planner.budget import caps
from agent.planner.calibration import calibration
from agent.reading.session import Known
from agent.store.gates import GateStore
from agent.store.steering import SteeringStore
from agent.thinking import tables

from .finding import known_of
from .made import Reads
from .showing import duration, from_text_table, line, number, plural, result, table
from .words import Arguments, Nothing, OfSession, SessionId, Words, nothing, of_session, session_and_number

N_ROWS = 15
MOST_ROWS = 100
_N_REVISIONS = 12


class Rows(Arguments):
    session: SessionId = None
    n: int = Field(default=N_ROWS, ge=1, le=MOST_ROWS, description="Rows at most.")


def _sessions(desk: Desk, arguments: Nothing) -> Result:
    found = desk.store.sessions()
    rows = [
        (one.session_id, one.task_name, one.state.value, one.n_trials, one.result.sentence if one.result else "")
        for one in found[:MOST_ROWS]
    ]
    if not rows:
        return result("There is no session yet; start one with: nightlab research start TASK.yaml")
    n_live = sum(1 for one in found if one.state.value in ("running", "stopping"))
    said = f"{plural(len(found), 'session')}, {n_live} of them under way; newest first"
    return result(said, table=table(("session", "task", "state", "trials", "answer"), rows))


def _session(desk: Desk, arguments: OfSession) -> Result:
    known = known_of(desk, arguments.session)
    found = tables.best(known.task, known.history, N_ROWS)
    return result("\n".join(_overview(desk, known)), table=table(found.columns, found.rows))


def _overview(desk: Desk, known: Known) -> list[str]:
    view, task, history = known.view, known.task, known.history
    course = SteeringStore(desk.store).course(view.session_id)
    flags = [name for name, is_so in (("paused", course.is_paused), ("taken over", course.is_taken_over)) if is_so]
    said = [
        f"{view.session_id} {view.task_name}: {', '.join([view.state.value, *flags])}, phase {known.plan.phase.value}",
        f"objective: {task.objective.metric}, {task.objective.direction.value}",
        f"trials: {view.n_trials} proposed, {len(history.in_flight)} in flight; "
        f"{duration(view.device_seconds)} of device time",
    ]
    if view.message and (view.result is None or view.message != view.result.sentence):
        said.append(f"it says: {view.message}")
    if view.result is not None:
        said.append(f"answer: {view.result.sentence}")
    if task.forbid:
        said.append(f"forbidden: {'; '.join(task.forbid)}")
    waiting = GateStore(desk.store).waiting(view.session_id)
    if waiting:
        said.append(f"{plural(len(waiting), 'question')} for a person: /gates")
    return said


def _best(desk: Desk, arguments: Rows) -> Result:
    known = known_of(desk, arguments.session)
    found = tables.best(known.task, known.history, arguments.n)
    return from_text_table(found, f"{known.view.session_id} has measured nothing yet")


def _trials(desk: Desk, arguments: Rows) -> Result:
    known = known_of(desk, arguments.session)
    trials = known.history.trials
    newest = list(reversed(trials))[: arguments.n]
    rows = [
        (
            one.trial_id,
            one.state.value,
            number(one.value),
            one.purpose.value,
            one.seed,
            tables.what_text(one, known.task),
            one.suggested_by,
            one.job_id,
        )
        for one in newest
    ]
    if not rows:
        return result(f"{known.view.session_id} has no trial yet")
    columns = ("trial", "state", known.task.objective.metric, "purpose", "seed", "parameters", "by", "job")
    return result(f"{len(newest)} of {len(trials)} trials, newest first", table=table(columns, rows))


def _plan(desk: Desk, arguments: OfSession) -> Result:
    known = known_of(desk, arguments.session)
    plan = known.plan
    said = [f"{known.view.session_id}, plan revision {plan.revision}: phase {plan.phase.value}"]
    if plan.search_closed is not None:
        said.append(f"the search is over: {plan.search_closed}")
    if plan.next_trials:
        said.append(f"in flight or next: {', '.join(plan.next_trials[:N_ROWS])}")
    revisions = list(reversed(desk.store.plans(known.view.session_id)))[:_N_REVISIONS]
    rows = [(one.revision, one.phase, one.reason) for one in revisions]
    return result("\n".join(said), table=table(("revision", "phase", "what changed"), rows))


def _hypotheses(desk: Desk, arguments: OfSession) -> Result:
    known = known_of(desk, arguments.session)
    claims = known.plan.hypotheses
    rows = [
        (
            one.hypothesis_id,
            one.statement,
            one.status.value,
            number(one.prediction.probability),
            one.n_pairs,
            f"{one.e_value:.3g} of {1 / one.alpha:.4g}",
            " ".join(one.evidence[:N_ROWS]),
            one.note,
        )
        for one in claims
    ]
    columns = ("claim", "statement", "status", "predicted chance", "pairs", "evidence", "trials", "note")
    said = f"{known.view.session_id}: {plural(len(claims), 'claim')}; {calibration(claims).words}"
    return result(said, table=table(columns, rows))


def _budget(desk: Desk, arguments: OfSession) -> Result:
    known = known_of(desk, arguments.session)
    rows = [(cap.name, number(cap.used), cap.limit) for cap in caps(known.task.budgets, known.spend)]
    said = f"{known.view.session_id}: budgets, and what is used of them"
    if known.plan.spent is not None:
        said += f"\nused up: {line(known.plan.spent)}"
    return result(said, table=table(("budget", "used", "limit"), rows))


def _budget_words(words: Words) -> dict[str, object]:
    if any("=" in word for word in words):
        raise ValueError("a limit is set as NAME=VALUE")
    return of_session(words)


TOOLS = (
    Reads(
        name="list_sessions",
        description="The research sessions: state, number of trials, what they found.",
        arguments=Nothing,
        slash=Slash(name="sessions", usage="/sessions", summary="the sessions, newest first", parse=nothing),
        look=_sessions,
    ),
    Reads(
        name="read_session",
        description="How a session stands: phase, objective, best trials, answer, what waits for a person.",
        arguments=OfSession,
        slash=Slash(name="session", usage="/session [SESSION]", summary="how a session stands", parse=of_session),
        look=_session,
    ),
    Reads(
        name="best_trials",
        description="The best configurations of a session so far, with intervals where they ran on several seeds.",
        arguments=Rows,
        slash=Slash(name="best", usage="/best [SESSION] [N]", summary="the best so far", parse=session_and_number("n")),
        look=_best,
    ),
    Reads(
        name="list_trials",
        description="The newest trials of a session: state, value, seed, parameters, job.",
        arguments=Rows,
        slash=Slash(
            name="trials", usage="/trials [SESSION] [N]", summary="the newest trials", parse=session_and_number("n")
        ),
        look=_trials,
    ),
    Reads(
        name="read_plan",
        description="The plan of a session: its phase, what is next, and what changed it, who said so included.",
        arguments=OfSession,
        slash=Slash(name="plan", usage="/plan [SESSION]", summary="the plan and what changed it", parse=of_session),
        look=_plan,
    ),
    Reads(
        name="read_hypotheses",
        description="What a session claims, what was predicted, the verdicts and the trials that they rest on.",
        arguments=OfSession,
        slash=Slash(
            name="hypotheses", usage="/hypotheses [SESSION]", summary="claims and their verdicts", parse=of_session
        ),
        look=_hypotheses,
    ),
    Reads(
        name="read_budget",
        description="The limits of a session and what is used of them.",
        arguments=OfSession,
        slash=Slash(name="budget", usage="/budget [SESSION]", summary="limits and their use", parse=_budget_words),
        look=_budget,
    ),
)

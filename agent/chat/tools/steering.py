"""Acting on sessions: to stop, go on, pause, and all that people say to one under way. Each is asked about first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from pydantic import Field

from agent.chat.entry import Victim
from agent.chat.tool import Desk, Foreseen, Result, Slash
from agent.planner.budget import HOUR_S, mean_device_seconds
from agent.reading.session import Known
from agent.steering.word import BUDGETS, CanNotSay, Kind, Word, steered
from agent.store.nights import NightStore
from agent.store.steering import SteeringStore
from agent.store.store import SessionNotRunnable
from agent.store.views import SessionState
from agent.tools.errors import FixAndRetry, ToolFailed
from runtime_client.errors import RuntimeClientError

from .finding import at_runtime, known_of
from .made import Acts
from .showing import line, result
from .words import Arguments, OfSession, SessionId, Words, of_session, session_and_text, session_first

_OVER = (SessionState.FINISHED, SessionState.FAILED, SessionState.STOPPED)
BudgetName = Literal["trials", "wall_minutes", "device_seconds", "tokens", "cost_usd"]
assert get_args(BudgetName) == BUDGETS


class Condition(Arguments):
    session: SessionId = None
    condition: str = Field(description="On parameters, such as: lr > 0.1 and optimizer = sgd.", max_length=2_000)


class Limit(Arguments):
    session: SessionId = None
    budget: BudgetName = Field(description="Which limit, as in the task file.")
    value: float | None = Field(description="The new limit; null: no limit any more.", allow_inf_nan=False)


class Idea(Arguments):
    session: SessionId = None
    text: str = Field(description="What is expected, and why, a sentence.", min_length=1, max_length=2_000)
    params: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="What to try for it, of the session's space; the rest is as in the best."
    )


def _stop_ahead(desk: Desk, arguments: OfSession) -> Foreseen:
    known = known_of(desk, arguments.session)
    session_id = known.view.session_id
    if known.view.state is not SessionState.RUNNING:
        raise ToolFailed(f"{session_id} is {known.view.state.value}: there is nothing to stop", code="not_running")
    queued = [t for t in known.history.in_flight if t.carried_by is not None]
    victims = tuple(Victim(job_id=job_id, what=f"of {session_id}, is asked back") for job_id in _queued(desk, known))
    what = f"stop session {session_id} ({known.view.task_name}): {len(queued)} trials are in flight"
    return Foreseen(
        what=f"{what}; queued jobs are asked back, running ones finish",
        asks=True,
        why="it ends work that is under way",
        victims=victims,
    )


def _queued(desk: Desk, known: Known) -> list[str]:
    """Jobs of the session that wait; none where the runtime is away, since a session is stopped without it."""
    try:
        with at_runtime(desk) as runtime:
            return [one.job_id for one in runtime.jobs(states=("queued",), session_id=known.view.session_id)]
    except (ToolFailed, RuntimeClientError):
        return []


def _stop(desk: Desk, arguments: OfSession, by: str) -> Result:
    done = desk.store.request_stop(known_of(desk, arguments.session).view.session_id, by=by)
    return result(f"{done.session_id} is {done.state.value}")


def _resume_ahead(desk: Desk, arguments: OfSession) -> Foreseen:
    known = known_of(desk, arguments.session)
    session_id, state = known.view.session_id, known.view.state
    if state is SessionState.FINISHED:
        raise ToolFailed(f"{session_id} is finished; a new one starts with: nightlab research start", code="finished")
    if state is SessionState.RUNNING:
        raise ToolFailed(f"{session_id} runs already", code="running")
    why_not = NightStore(desk.store).why_not_resumed(known.view)
    if why_not is not None:
        raise ToolFailed(why_not, code="session_of_running_night")
    what = f"go on with session {session_id} ({known.view.task_name}), which is {state.value}"
    return _spending(known, what, "a session that goes on spends", known.ahead_s)


def _resume(desk: Desk, arguments: OfSession, by: str) -> Result:
    known = known_of(desk, arguments.session)
    why_not = NightStore(desk.store).why_not_resumed(known.view)
    if why_not is not None:
        raise ToolFailed(why_not, code="session_of_running_night")
    try:
        done = desk.store.request_resume(known.view.session_id, by=by)
    except SessionNotRunnable as error:
        raise ToolFailed(str(error), code="finished") from error
    return result(f"{done.session_id} is {done.state.value}")


Said = Callable[[Any], Word]
"""From the arguments of a tool to what is said to the session."""
Cost = Callable[[Known, Word], float | None]
"""Device-seconds that may be used for it, at most; None: nothing tells."""


def _ahead(said: Said, why: str, cost_s: Cost) -> Callable[[Desk, Any], Foreseen]:
    def foreseen(desk: Desk, arguments: Any) -> Foreseen:
        known = known_of(desk, arguments.session)
        word = said(arguments)
        _check(desk, known, word)
        what = f"session {known.view.session_id} ({known.view.task_name}), in your name: {line(word.words)}"
        return _spending(known, what, why, cost_s(known, word))

    return foreseen


def _do(said: Said) -> Callable[[Desk, Any, str], Result]:
    def done(desk: Desk, arguments: Any, by: str) -> Result:
        session_id = known_of(desk, arguments.session).view.session_id
        try:
            told = SteeringStore(desk.store).say(session_id, [said(arguments)], by=by)
        except CanNotSay as error:
            raise FixAndRetry(str(error), code="can_not_steer") from error
        when = "at once" if desk.store.session(session_id).state is SessionState.RUNNING else "when it is resumed"
        return result(f"{told[0].words}; {session_id} goes by it {when}, and its plan tells of it")

    return done


def _check(desk: Desk, known: Known, word: Word) -> None:
    """
    Raises:
        FixAndRetry: it can not be said of this session.
    """
    session_id = known.view.session_id
    if known.view.state is SessionState.FINISHED:
        raise FixAndRetry(f"{session_id} is finished; start another: nightlab research start", code="finished")
    course = SteeringStore(desk.store).course(session_id)
    if (word.kind is Kind.PAUSE and course.is_paused) or (word.kind is Kind.TAKE_OVER and course.is_taken_over):
        raise FixAndRetry(f"{session_id} is so already", code="so_already")
    if (word.kind is Kind.GO_ON and not course.is_paused) or (word.kind is Kind.HAND_BACK and not course.is_taken_over):
        raise FixAndRetry(f"{session_id} is not {_OPPOSITE[word.kind]}", code="not_so")
    try:
        steered(course, word, by="", search_closed=known.plan.search_closed)
    except CanNotSay as error:
        raise FixAndRetry(str(error), code="can_not_steer") from error


_OPPOSITE = {Kind.GO_ON: "paused", Kind.HAND_BACK: "taken over"}


def _spending(known: Known, what: str, why: str, seconds: float | None) -> Foreseen:
    rate = known.task.budgets.usd_per_device_hour
    usd = None if seconds is None or rate is None else seconds / HOUR_S * rate
    return Foreseen(what=what, asks=True, why=why, device_seconds=seconds, cost_usd=usd)


def _free(known: Known, word: Word) -> float | None:
    return 0.0


def _what_is_left(known: Known, word: Word) -> float | None:
    return known.ahead_s


def _one_trial(known: Known, word: Word) -> float | None:
    return mean_device_seconds(known.history) if word.params else 0.0


def _more(known: Known, word: Word) -> float | None:
    """What a limit lets the session use beyond what it was allowed before, where it is of trials or of device time."""
    before = getattr(known.task.budgets, word.budget or "")
    if word.value is not None and before is not None and word.value <= before:
        return 0.0
    if word.value is None or before is None:
        return None
    if word.budget == "device_seconds":
        return word.value - float(before)
    mean_s = mean_device_seconds(known.history)
    return None if word.budget != "trials" or mean_s is None else mean_s * (word.value - float(before))


def _just(kind: Kind) -> Said:
    return lambda arguments: Word(kind=kind)


def _condition(kind: Kind) -> Said:
    return lambda arguments: Word(kind=kind, text=arguments.condition)


def _limit(arguments: Limit) -> Word:
    return Word(kind=Kind.BUDGET, budget=arguments.budget, value=arguments.value)


def _idea(arguments: Idea) -> Word:
    return Word(kind=Kind.HYPOTHESIS, text=arguments.text, params=dict(arguments.params))


def _limit_words(words: Words) -> dict[str, Any]:
    session, rest = session_first(words)
    if len(rest) != 1 or "=" not in rest[0]:
        raise ValueError("NAME=VALUE is missing" if not rest else f"{' '.join(rest)!r} is not NAME=VALUE")
    name, _, value = rest[0].partition("=")
    return {**session, "budget": name, "value": None if value in ("none", "null", "") else value}


def _idea_words(words: Words) -> dict[str, Any]:
    session, rest = session_first(words)
    given = [word for word in rest if "=" in word and word.partition("=")[0].isidentifier()]
    text = " ".join(word for word in rest if word not in given)
    if not text:
        raise ValueError("SENTENCE is missing: what is expected, and why")
    return {**session, "text": text, "params": dict(word.partition("=")[::2] for word in given)}


def _steers(
    name: str, slash: Slash, description: str, arguments: type[Arguments], said: Said, why: str, cost: Cost
) -> Acts:
    return Acts(
        name=name,
        description=description,
        arguments=arguments,
        slash=slash,
        ahead=_ahead(said, why, cost),
        do=_do(said),
    )


_CHANGES = "it changes the session's plan"
_SPENDS = "it lets the session spend"
TOOLS = (
    Acts(
        name="stop_session",
        description="Stop a session in order: queued jobs are asked back, running ones finish. It can be resumed.",
        arguments=OfSession,
        slash=Slash(name="stop", usage="/stop [SESSION]", summary="stop a session in order", parse=of_session),
        ahead=_stop_ahead,
        do=_stop,
    ),
    Acts(
        name="resume_session",
        description="Go on with a session that is stopped or failed.",
        arguments=OfSession,
        slash=Slash(name="resume", usage="/resume [SESSION]", summary="go on with a stopped session", parse=of_session),
        ahead=_resume_ahead,
        do=_resume,
    ),
    _steers(
        "pause_session",
        Slash(name="pause", usage="/pause [SESSION]", summary="start nothing new; what runs goes on", parse=of_session),
        "Have a session start nothing new; what runs goes on.",
        OfSession,
        _just(Kind.PAUSE),
        _CHANGES,
        _free,
    ),
    _steers(
        "go_on",
        Slash(name="go-on", usage="/go-on [SESSION]", summary="end a pause", parse=of_session),
        "End the pause of a session.",
        OfSession,
        _just(Kind.GO_ON),
        _SPENDS,
        _what_is_left,
    ),
    _steers(
        "forbid_direction",
        Slash(
            name="forbid",
            usage="/forbid [SESSION] CONDITION",
            summary="try nothing that a condition covers",
            parse=session_and_text("condition"),
        ),
        "Forbid a direction: nothing that a condition on parameters covers is tried any more, by nobody.",
        Condition,
        _condition(Kind.FORBID),
        _CHANGES,
        _free,
    ),
    _steers(
        "allow_direction",
        Slash(
            name="allow",
            usage="/allow [SESSION] CONDITION",
            summary="lift what was forbidden",
            parse=session_and_text("condition"),
        ),
        "Lift a condition that was forbidden.",
        Condition,
        _condition(Kind.ALLOW),
        _CHANGES,
        _free,
    ),
    _steers(
        "set_budget",
        Slash(
            name="budget", usage="/budget [SESSION] NAME=VALUE", summary="set a limit, as trials=50", parse=_limit_words
        ),
        "Set a limit of a session, as in its task file.",
        Limit,
        _limit,
        "it changes a budget",
        _more,
    ),
    _steers(
        "add_hypothesis",
        Slash(
            name="hypothesis",
            usage="/hypothesis [SESSION] SENTENCE [NAME=VALUE...]",
            summary="an idea to try, tried where it names parameters",
            parse=_idea_words,
        ),
        "Give a session an idea: a sentence, and parameters to try for it. It goes first.",
        Idea,
        _idea,
        _CHANGES,
        _one_trial,
    ),
    _steers(
        "take_over",
        Slash(
            name="take-over", usage="/take-over [SESSION]", summary="only people suggest from now on", parse=of_session
        ),
        "Take over a session: it suggests nothing itself any more, only people and outside agents do.",
        OfSession,
        _just(Kind.TAKE_OVER),
        _CHANGES,
        _free,
    ),
    _steers(
        "hand_back",
        Slash(name="hand-back", usage="/hand-back [SESSION]", summary="the session suggests again", parse=of_session),
        "Give a session that was taken over back to itself.",
        OfSession,
        _just(Kind.HAND_BACK),
        _SPENDS,
        _what_is_left,
    ),
)

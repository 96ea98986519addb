"""`nightlab research steer`: what a person says to a session under way, and what was said so far."""

from __future__ import annotations

import getpass
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import ago, note, print_json, print_table

from .agent_store import SessionId, known_session
from .options import HomeOption, JsonOption, home_folder
from .research_suggest import pairs

if TYPE_CHECKING:
    from agent.steering.word import Kind, Word
    from agent.store.steering import Steering
    from agent.store.views import ParamValue
    from agent.task import Task

STEER_EPILOG = """\b
Examples:
  nightlab research steer s1 --forbid "lr > 0.1 and optimizer = sgd"
  nightlab research steer s1 --allow "lr > 0.1 and optimizer = sgd"
  nightlab research steer s1 --budget trials=60 --why "it still climbs"
  nightlab research steer s1 --hypothesis "wider is better at this rate" --try width=256
  nightlab research steer s1 --pause --why "the cluster is needed"
  nightlab research steer s1 --go-on
  nightlab research steer s1                  what was said so far"""

_NO_LIMIT = "none"


def steer(
    session_id: SessionId,
    forbid: Annotated[
        list[str] | None,
        typer.Option("--forbid", help="What is not to be tried any more; may be given again.", metavar="CONDITION"),
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", help="Lift a condition, as it was written.", metavar="CONDITION")
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", help="A new limit: trials=60, wall_minutes=none.", metavar="NAME=VALUE"),
    ] = None,
    hypothesis: Annotated[
        str | None, typer.Option("--hypothesis", help="What you expect; the model is told.", metavar="TEXT")
    ] = None,
    to_try: Annotated[
        list[str] | None,
        typer.Option("--try", help="With --hypothesis: what to try, before all else.", metavar="NAME=VALUE"),
    ] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Nothing new starts; what runs goes on.")] = False,
    go_on: Annotated[bool, typer.Option("--go-on", help="End the pause.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="It suggests nothing itself; people and outside agents do.")
    ] = False,
    hand_back: Annotated[bool, typer.Option("--hand-back", help="It suggests again.")] = False,
    why: Annotated[str, typer.Option("--why", help="Why; it stands in the history.", metavar="TEXT")] = "",
    by: Annotated[str | None, typer.Option("--by", help="Who says it; else your user name.", metavar="NAME")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Steer a session under way: forbid a direction, add an idea, change a budget, pause, take over.

    All that is said at once counts, or nothing of it. The session goes by it within a second or two; one that is
    stopped, when it is resumed. What runs is not ended by it. Without an option: what was said so far.
    """
    from agent.steering.word import CanNotSay, Kind
    from agent.store.steering import SteeringStore
    from agent.task import Task

    flags = {Kind.PAUSE: pause, Kind.GO_ON: go_on, Kind.TAKE_OVER: take_over, Kind.HAND_BACK: hand_back}
    _refuse_opposites(pause, go_on, take_over, hand_back)
    if to_try and hypothesis is None:
        raise wrong_use("--try belongs to --hypothesis: say what you expect of it", code="no_hypothesis")
    with known_session(home_folder(home), session_id) as store:
        people = SteeringStore(store)
        task = Task.model_validate_json(store.session(session_id).task_json)
        words = [*_words(task, forbid, allow, budget, hypothesis, to_try, why), *_flag_words(flags, why)]
        if not words:
            _print_history(people.steerings(session_id), session_id, as_json)
            return
        try:
            said = people.say(session_id, words, by=(by or getpass.getuser()).strip()[:100] or "person")
        except CanNotSay as error:
            raise wrong_use(str(error), code="can_not_steer") from error
        state = store.session(session_id).state.value
    if as_json:
        print_json([_data(one) for one in said])
        return
    for one in said:
        print(f"{session_id}: {one.words}")
    if state != "running":
        note(f"{session_id} is {state}; it counts from: nightlab research resume {session_id}")


def _refuse_opposites(pause: bool, go_on: bool, take_over: bool, hand_back: bool) -> None:
    if (pause and go_on) or (take_over and hand_back):
        raise wrong_use("give --pause or --go-on, --take-over or --hand-back, not both", code="opposites")


def _words(
    task: Task,
    forbid: list[str] | None,
    allow: list[str] | None,
    budget: list[str] | None,
    hypothesis: str | None,
    to_try: list[str] | None,
    why: str,
) -> Iterator[Word]:
    """What is allowed again goes first, so that a condition can be replaced at once."""
    from agent.steering.word import Kind, Word

    for text in allow or ():
        yield Word(kind=Kind.ALLOW, text=text)
    for text in forbid or ():
        yield Word(kind=Kind.FORBID, text=text)
    for name, value in pairs(budget or [], "--budget").items():
        yield Word(kind=Kind.BUDGET, budget=name, value=_limit(name, value), text=why)
    if hypothesis is not None:
        yield Word(kind=Kind.HYPOTHESIS, text=hypothesis, params=_params(task, to_try or []))


def _flag_words(flags: dict[Kind, bool], why: str) -> list[Word]:
    from agent.steering.word import Word

    return [Word(kind=kind, text=why) for kind, is_given in flags.items() if is_given]


def _params(task: Task, settings: list[str]) -> dict[str, ParamValue]:
    from agent.planner.suggested import read_suggestion

    if not settings:
        return {}
    read = read_suggestion(pairs(settings, "--try"), task)
    if read.problems:
        raise wrong_use("; ".join(read.problems), code="bad_suggestion", path="try")
    return read.params


def _limit(name: str, text: str) -> float | None:
    if text.lower() == _NO_LIMIT:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise wrong_use(f"--budget {name}={text}: give a number, or {_NO_LIMIT} for no limit", code="bad_budget")
    return number


def _print_history(said: list[Steering], session_id: str, as_json: bool) -> None:
    if as_json:
        print_json([_data(one) for one in said])
        return
    if not said:
        print(f"nobody has said anything to {session_id} yet; see: nightlab research steer --help")
        return
    rows = [
        (one.steering_id, one.by, ago(one.at), one.word.words, "yes" if one.taken_at is not None else "not yet")
        for one in said
    ]
    print_table(("#", "by", "said", "what", "goes by it"), rows)


def _data(one: Steering) -> dict[str, object]:
    return {**asdict(one), "words": one.words}

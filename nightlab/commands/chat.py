"""`nightlab chat`: the chat in a terminal, over the agent service's API."""

from __future__ import annotations

import getpass
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, wrong_use
from nightlab.output import ago, console, note, print_json, print_table

from .options import HomeOption, home_folder

if TYPE_CHECKING:
    from agent.web.chat_wire import ChatView
    from nightlab.chat.conversation import Conversation, Outcome
    from nightlab.chat.door import Door
    from nightlab.chat.lines import Lines
    from nightlab.chat.screen import Screen

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})

HOW = "Alt-Enter begins another line, Tab completes, Ctrl-C stops a turn, Ctrl-D leaves; /help lists the commands"
PATIENCE_S = 120.0
"""For so long a script waits for a service that is away."""
EPILOG = """\b
Examples:
  nightlab chat --session s1                 # about one session; goes on with its newest chat
  nightlab chat --session s1 --say '/best'   # one turn, for scripts; needs no model
  nightlab chat --list --search diverged     # chats in which that was said
  nightlab chat --chat c3 --approve 12       # answer what entry 12 of a chat asks
\b
Exit codes: 0 ok, 1 the turn ended in trouble, 3 the service is not up, 5 a person has to answer first."""


@app.command(epilog=EPILOG)
def chat(
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="The session that it is about.")] = None,
    chat_id: Annotated[str | None, typer.Option("--chat", metavar="CHAT", help="Go on with this one.")] = None,
    is_new: Annotated[bool, typer.Option("--new", help="Begin another one, also where the session has one.")] = False,
    goes_on: Annotated[bool, typer.Option("--continue", help="Go on with the one spoken in last.")] = False,
    lists: Annotated[bool, typer.Option("--list", help="List chats, and do nothing else.")] = False,
    search: Annotated[str | None, typer.Option(metavar="WORDS", help="List those in which all of this stands.")] = None,
    say: Annotated[str | None, typer.Option(metavar="TEXT", help="Say this, show the turn, and end.")] = None,
    approve: Annotated[int | None, typer.Option(metavar="N", help="Agree to what entry N asks.", min=1)] = None,
    deny: Annotated[int | None, typer.Option(metavar="N", help="Refuse what entry N asks.", min=1)] = None,
    why: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why, with --approve or --deny.")] = None,
    is_plain: Annotated[bool, typer.Option("--plain", help="No line editor and no colors.")] = False,
    home: HomeOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print entries, a JSON envelope a line.")] = False,
) -> None:
    """Talk about sessions, trials and jobs, and have them changed; what costs or ends work asks first.

    With no chat named, it goes on with the newest one of --session, and else begins a new one. Without a language
    model the commands work all the same: /help lists them.
    """
    _check_options(session, chat_id, is_new, goes_on, say, approve, deny, why)
    from nightlab.chat.conversation import Conversation, Outcome
    from nightlab.chat.door import Door
    from nightlab.chat.screen import Screen

    folder = home_folder(home)
    with closing(Door(folder, by=getpass.getuser())) as door:
        if lists or search is not None:
            _list(door.chats(session, search=search), as_json=as_json)
            return
        found = _named(door, session, chat_id, is_new, goes_on)
        screen = Screen(console(has_colors=not is_plain), as_json=as_json)
        is_one_turn = not (say is None and approve is None and deny is None)
        lines = None if is_one_turn else _lines(folder, door, screen, found, session, is_plain or as_json)
        has_person = lines is not None and lines.has_person
        conversation = Conversation(
            door,
            screen,
            lines,
            lambda: found or door.make(session),
            patience_s=None if has_person else PATIENCE_S,
        )
        with closing(conversation):
            if say is not None:
                outcome = conversation.say(say)
            elif approve is not None or deny is not None:
                outcome = conversation.answer(approve or deny or 0, is_yes=approve is not None, note=why)
            else:
                outcome = _talk(conversation, screen, found, has_person)
            if outcome is Outcome.ASKS:
                _tell_how_to_answer(conversation, screen, as_json)
    code = {Outcome.DONE: ExitCode.OK, Outcome.FAILED: ExitCode.WORK_FAILED, Outcome.ASKS: ExitCode.NEEDS_ANSWER}
    if not has_person and outcome is not Outcome.DONE:
        raise typer.Exit(code[outcome])


def _check_options(
    session: str | None,
    chat_id: str | None,
    is_new: bool,
    goes_on: bool,
    say: str | None,
    approve: int | None,
    deny: int | None,
    why: str | None,
) -> None:
    """
    Raises:
        Failure: options that contradict each other.
    """
    ways = {"--chat": chat_id is not None, "--new": is_new, "--continue": goes_on}
    given = [name for name, is_given in ways.items() if is_given]
    if len(given) > 1:
        raise wrong_use(f"{' and '.join(given)} contradict each other; give one of them", code="wrong_use")
    if chat_id is not None and session is not None:
        raise wrong_use("--chat names a chat, which knows its session; leave --session away", code="wrong_use")
    done = {"--say": say is not None, "--approve": approve is not None, "--deny": deny is not None}
    if sum(done.values()) > 1:
        both = " and ".join(name for name, is_given in done.items() if is_given)
        raise wrong_use(f"{both} contradict each other; give one of them", code="wrong_use")
    if (approve is not None or deny is not None) and chat_id is None:
        raise wrong_use("--approve and --deny need --chat: whose question it is", code="wrong_use", path="chat")
    if why is not None and approve is None and deny is None:
        raise wrong_use("--note goes with --approve or --deny", code="wrong_use", path="note")
    if say is not None and not say.strip():
        raise wrong_use("--say is empty; give it a text, or leave it away to talk", code="wrong_use", path="say")


def _named(door: Door, session: str | None, chat_id: str | None, is_new: bool, goes_on: bool) -> ChatView | None:
    """The chat to go on with; None: a new one, made when something is said.

    Raises:
        RuntimeClientError: there is no such chat.
        Failure: there is none to go on with.
    """
    if chat_id is not None:
        return door.chat(chat_id)
    if is_new or (session is None and not goes_on):
        return None
    newest = next(iter(door.chats(session, limit=1)), None)
    if newest is None and goes_on:
        raise wrong_use("there is no chat to go on with; leave --continue away to begin one", code="no_chat")
    return newest


def _lines(
    folder: Path, door: Door, screen: Screen, found: ChatView | None, session: str | None, is_plain: bool
) -> Lines:
    from nightlab.chat.lines import PlainLines

    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if is_plain or not is_terminal or os.environ.get("TERM") == "dumb":
        return PlainLines()
    from nightlab.chat.editor import Editor

    door.learn(screen.ids, session if found is None else found.session_id)
    return Editor(folder, door.slashes(), screen.ids)


def _talk(conversation: Conversation, screen: Screen, found: ChatView | None, has_person: bool) -> Outcome:
    from nightlab.chat.conversation import Outcome

    if has_person:
        screen.note(HOW)
    if found is not None and (has_person or found.state != "idle"):
        came = conversation.go_on()
        if came is Outcome.ASKS:
            return came
    return conversation.converse()


def _tell_how_to_answer(conversation: Conversation, screen: Screen, as_json: bool) -> None:
    from nightlab.chat.questions import how_to_answer

    if screen.question is not None and not as_json:
        note(how_to_answer(conversation.chat.chat_id, screen.question.number))


def _list(found: tuple[ChatView, ...], *, as_json: bool) -> None:
    from nightlab.inert import clean

    if as_json:
        print_json(found)
        return
    if not found:
        print("there is no such chat; begin one with:  nightlab chat")
        return
    rows = [
        (one.chat_id, one.session_id, clean(one.title), one.state.value, one.n_entries, ago(one.updated_at))
        for one in found
    ]
    print_table(("chat", "session", "said first", "state", "#entries", "last"), rows)
    note("go on with:  nightlab chat --chat CHAT")

"""A conversation over a real service: turns, questions answered here and elsewhere, stops, restarts."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from chat_service import Told, chat_service, told_home
from cli_process import eventually
from rich.console import Console

from agent.chat.entry import ChatState
from agent.store.store import AgentStore
from agent.web.chat_wire import ChatView
from nightlab.chat.conversation import Conversation, Outcome
from nightlab.chat.door import Door
from nightlab.chat.following import Inbox
from nightlab.chat.lines import OnNews, PlainLines, Typed
from nightlab.chat.screen import Screen
from nightlab.failure import ExitCode, Failure
from runtime_client.errors import Conflict, NotFound, Unreachable

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agent_worlds import a_task

pytestmark = pytest.mark.web


@dataclass(slots=True)
class Script:
    """What a person types; a step may do something first."""

    steps: list[str | Callable[[], str]]
    has_person: bool = True
    asked: list[str] = field(default_factory=list)

    def ask(self, prompt: str, *, draft: str, inbox: Inbox, on_news: OnNews, is_answer: bool) -> Typed:
        self.asked.append(prompt)
        if not self.steps:
            raise EOFError
        step = self.steps.pop(0)
        return Typed(step if isinstance(step, str) else step())


class AnsweredElsewhere(Script):
    """Waits at the question until the screen says that it is over."""

    def ask(self, prompt: str, *, draft: str, inbox: Inbox, on_news: OnNews, is_answer: bool) -> Typed:
        if not is_answer:
            return super().ask(prompt, draft=draft, inbox=inbox, on_news=on_news, is_answer=is_answer)
        step = self.steps.pop(0)
        assert not isinstance(step, str)
        step()
        rang = threading.Event()
        with inbox.ringing(rang.set):
            while not on_news():
                assert rang.wait(20)
                rang.clear()
        return Typed("y", is_done=False)


@dataclass(slots=True)
class World:
    home: Path
    session_id: str
    talk: Told
    store: AgentStore
    door: Door
    out: io.StringIO = field(default_factory=io.StringIO)
    talks: list[Conversation] = field(default_factory=list)

    def conversation(self, script: Script | PlainLines | None = None, chat: ChatView | None = None) -> Conversation:
        screen = Screen(Console(file=self.out, width=120, color_system=None))
        made = Conversation(self.door, screen, script, lambda: chat or self.door.make(self.session_id), patience_s=20)
        self.talks.append(made)
        return made

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()

    @property
    def chat(self) -> ChatView:
        return self.door.chat(self.talks[0].chat.chat_id)

    def deny_as_bob(self) -> None:
        Door(self.home, by="bob").answer(self.chat.chat_id, 3, is_yes=False, note=None)

    @property
    def session(self) -> str:
        return self.store.session(self.session_id).state.value


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Told, AgentStore]]:
    home = tmp_path_factory.mktemp("home")
    with closing(AgentStore.open(home)) as store, told_home(home), chat_service(home) as talk:
        yield home, talk, store


@pytest.fixture
def world(service: tuple[Path, Told, AgentStore]) -> Iterator[World]:
    home, talk, store = service
    talk.may_go_on.clear()
    session_id = store.create_session(a_task()).session_id
    made = World(home=home, session_id=session_id, talk=talk, store=store, door=Door(home, by="ann"))
    yield made
    for one in made.talks:
        one.close()
    made.door.close()


def test_a_command_is_said_and_its_table_is_shown(world: World) -> None:
    assert world.conversation().say("/sessions") is Outcome.DONE
    assert world.lines[0].startswith("→ ")
    assert any(line.split()[:3] == [world.session_id, "toy", "running"] for line in world.lines)
    assert not any("/sessions" in line for line in world.lines)  # it was typed, so it is there already


def test_a_reply_is_shown_while_it_is_written(world: World) -> None:
    talk = world.conversation()
    turn = threading.Thread(target=lambda: talk.say("which is best?"), daemon=True)
    turn.start()
    eventually(lambda: "the best of" in world.out.getvalue())
    assert world.chat.state is ChatState.WORKING
    world.talk.may_go_on.set()
    turn.join(20)
    assert world.out.getvalue().split() == world.talk.reply.split()


def test_approved_in_place_it_is_done(world: World) -> None:
    script = Script(["/stop", "perhaps", "y go on"])
    world.conversation(script).converse()
    assert world.session in ("stopping", "stopped")
    assert "question 3 was approved by ann: go on" in world.lines
    assert len(script.asked) == 4  # what is neither yes nor no is asked again


def test_denied_in_place_nothing_is_done(world: World) -> None:
    world.conversation(Script(["/stop", "n too early"])).converse()
    assert world.session == "running"
    answered, done = world.lines[-2:]
    assert answered == "question 3 was denied by ann: too early"
    assert done.endswith("nothing was done")


def test_answered_elsewhere_is_told_at_the_question(world: World) -> None:
    def bob() -> str:
        world.deny_as_bob()
        return ""

    assert world.conversation(AnsweredElsewhere(["/stop", bob])).converse() is Outcome.DONE
    assert "question 3 was denied by bob" in world.lines


def test_an_answer_that_came_second_is_told_and_the_first_counts(world: World) -> None:
    def late() -> str:
        world.deny_as_bob()
        return "y"

    world.conversation(Script(["/stop", late])).converse()
    assert any("was answered before: denied (bob)" in line for line in world.lines)
    assert world.session == "running"


def test_an_answer_after_the_deadline_is_told_and_nothing_is_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late() -> str:
        now = world.talk._store.clock()
        monkeypatch.setattr(world.talk._store, "clock", lambda: now + 3600)
        return "y"

    world.conversation(Script(["/stop", late])).converse()
    assert any("nobody answered in time" in line for line in world.lines)
    assert world.session == "running"


def test_a_service_that_stays_away_ends_a_script(tmp_path: Path) -> None:
    out = io.StringIO()
    with told_home(tmp_path):
        with chat_service(tmp_path):
            door = Door(tmp_path, by="ann")
            talk = Conversation(
                door, Screen(Console(file=out, width=120)), None, lambda: door.make(None), patience_s=0.1
            )
            came: list[object] = []

            def say() -> None:
                try:
                    came.append(talk.say("which is best?"))
                except Unreachable as error:
                    came.append(error.code)

            turn = threading.Thread(target=say, daemon=True)
            turn.start()
            eventually(lambda: "the best of" in out.getvalue())
        turn.join(20)
    assert came == ["unreachable"]


def test_without_a_person_the_question_stays_open_and_can_be_answered_later(world: World) -> None:
    assert world.conversation().say("/stop") is Outcome.ASKS
    chat = world.chat
    assert (chat.state, world.session) == (ChatState.ASKING, "running")
    with pytest.raises(Conflict, match="answer its question"):
        world.conversation(chat=chat).say("/sessions")
    assert world.conversation(chat=chat).answer(3, is_yes=True, note=None) is Outcome.DONE
    assert world.session in ("stopping", "stopped")
    with pytest.raises(Conflict, match="answered before"):
        world.conversation(chat=chat).answer(3, is_yes=False, note=None)
    assert world.conversation(chat=chat).answer(3, is_yes=True, note=None) is Outcome.DONE  # said again, no harm


def test_a_person_who_leaves_leaves_the_question_open(world: World) -> None:
    assert world.conversation(Script(["/stop"])).converse() is Outcome.ASKS
    assert world.chat.state is ChatState.ASKING


def test_who_goes_on_with_a_chat_sees_its_end_and_is_asked(world: World) -> None:
    world.conversation().say("/stop")
    world.out.truncate(world.out.seek(0))
    assert world.conversation(Script(["n"]), world.chat).go_on() is Outcome.DONE
    said, asked, answered = [line for line in world.lines if line.startswith(("ann>", "question"))]
    assert (said, answered) == ("ann> /stop", "question 3 was denied by ann")
    assert asked.startswith(f"question 3: stop session {world.session_id} ")


def test_an_empty_chat_is_gone_on_with(world: World) -> None:
    assert world.conversation(chat=world.door.make(None)).go_on() is Outcome.DONE


@pytest.mark.parametrize("text", ["/nonsense", "/stop s999", "/explain"])
def test_what_fails_is_told_as_failed(world: World, text: str) -> None:
    assert world.conversation().say(text) is Outcome.FAILED


def test_ctrl_c_stops_the_turn_and_not_the_program(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = world.conversation(Script(["which is best?", "/sessions"]))
    take, presses = talk._inbox.take, [KeyboardInterrupt()]

    def pressed() -> object:
        if presses and "the best" in world.out.getvalue():
            raise presses.pop()
        return take()

    monkeypatch.setattr(talk._inbox, "take", pressed)
    assert talk.converse() is Outcome.DONE
    assert "ann stopped it" in world.lines
    assert any(line.split()[:2] == [world.session_id, "toy"] for line in world.lines)


def test_ctrl_c_at_a_question_stops_the_turn(world: World) -> None:
    def ctrl_c() -> str:
        raise KeyboardInterrupt

    script = Script(["/stop", ctrl_c, "/sessions"])
    assert world.conversation(script).converse() is Outcome.DONE
    assert "ann stopped it" in world.lines
    assert world.session == "running"
    assert any(line.split()[:2] == [world.session_id, "toy"] for line in world.lines)


def test_what_cannot_be_said_yet_is_told_and_stays_on_the_line(world: World) -> None:
    drafts: list[str] = []

    class Drafts(Script):
        def ask(self, prompt: str, *, draft: str, inbox: Inbox, on_news: OnNews, is_answer: bool) -> Typed:
            drafts.append(draft)
            return super().ask(prompt, draft=draft, inbox=inbox, on_news=on_news, is_answer=is_answer)

    world.conversation(Drafts(["", "x" * 20_001, "/sessions"])).converse()
    assert [len(draft) for draft in drafts] == [0, 0, 20_001, 0]
    assert any("text" in line and "20000" in line for line in world.lines)


def test_a_turn_that_a_restart_ended_is_told_and_the_chat_goes_on(tmp_path: Path) -> None:
    out = io.StringIO()
    with told_home(tmp_path):
        with chat_service(tmp_path):
            door = Door(tmp_path, by="ann")
            screen = Screen(Console(file=out, width=120, color_system=None))
            talk = Conversation(door, screen, None, lambda: door.make(None), patience_s=20)
            came: list[Outcome] = []
            turn = threading.Thread(target=lambda: came.append(talk.say("which is best?")), daemon=True)
            turn.start()
            eventually(lambda: "the best of" in out.getvalue())
        eventually(lambda: "the agent service is away; waiting for it" in out.getvalue())
        with chat_service(tmp_path):
            turn.join(20)
            assert came == [Outcome.FAILED]
            assert "the agent service is back" in out.getvalue()
            assert "the service went down in the middle of this turn; say it again" in out.getvalue()
            assert talk.say("/sessions") is Outcome.DONE
            talk.close()


def test_lines_of_standard_input_are_said_one_by_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("/sessions\n\n/help \\\nstop\n/nonsense\n"))
    assert world.conversation(PlainLines()).converse() is Outcome.FAILED
    said = [one.text for one in world.door.entries(world.chat.chat_id, after=0, limit=100) if one.kind.value == "said"]
    assert said == ["/sessions", "/help \nstop", "/nonsense"]


def test_lines_of_a_script_end_at_a_question(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("/stop\ny\n"))
    assert world.conversation(PlainLines()).converse() is Outcome.ASKS
    assert world.session == "running"


def test_a_chat_that_is_not_there_is_told(world: World) -> None:
    for name in ("c999", "../sessions", "c1/../c1", ""):
        with pytest.raises(NotFound):
            world.door.chat(name)


def test_ids_of_the_session_are_known(world: World) -> None:
    screen = Screen(Console(file=world.out))
    world.door.learn(screen.ids, None)
    assert world.session_id in screen.ids.by_kind["session"]


def test_without_a_service_the_way_up_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="nightlab up") as refused:
        Door(tmp_path, by="ann")
    assert refused.value.exit_code is ExitCode.UNREACHABLE

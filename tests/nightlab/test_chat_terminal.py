"""`nightlab chat` as a person uses it: keys on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from chat_service import Told, chat_service, told_home
from cli_process import Ended, nightlab
from terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, TAB, Terminal, on_terminal

from agent.store.chats import ChatStore
from agent.store.store import AgentStore
from nightlab.chat.editor import HISTORY_FILE

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agent_worlds import a_task

pytestmark = pytest.mark.cli


@dataclass(slots=True)
class Service:
    home: Path
    talk: Told
    store: AgentStore

    def said(self, chat_id: str) -> list[str]:
        return [one.text for one in ChatStore(self.store).entries(chat_id) if one.kind.value == "said"]

    def run(self, *arguments: str) -> Ended:
        return nightlab("chat", *arguments, home=self.home)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with closing(AgentStore.open(tmp_path)) as store:
        store.create_session(a_task())
        with told_home(tmp_path), chat_service(tmp_path) as talk:
            yield Service(tmp_path, talk, store)


@pytest.fixture
def terminal(service: Service) -> Iterator[Terminal]:
    with on_terminal(["chat", "--session", "s1"], service.home) as made:
        made.until("new chat>")
        yield made


def test_a_person_asks_approves_and_leaves(service: Service, terminal: Terminal) -> None:
    service.talk.may_go_on.set()
    terminal.press("which is best?", ENTER)
    terminal.until(service.talk.reply)
    terminal.until("c1>")
    terminal.press("/stop", ENTER)
    terminal.until("expected cost")
    terminal.until("[y]es")
    assert service.store.session("s1").state.value == "running"
    terminal.press("n not yet", ENTER)
    terminal.until("was denied by")
    terminal.until("c1>")
    terminal.press("/stop", ENTER)
    terminal.until("[y]es")
    terminal.press("y", ENTER)
    terminal.until("was approved by")
    terminal.until("c1>")
    terminal.press(CTRL_D)
    assert terminal.end() == 0
    assert service.store.session("s1").state.value in ("stopping", "stopped")
    assert (service.home / HISTORY_FILE).stat().st_mode & 0o777 == 0o600


def test_keys_complete_begin_lines_and_remember(service: Service, terminal: Terminal) -> None:
    service.talk.may_go_on.set()
    terminal.press("/pla", TAB)
    terminal.until("/plan")
    terminal.press(ENTER)
    terminal.until("c1>")
    terminal.press("first", ALT_ENTER, "second\\", ENTER, "third", ENTER)
    terminal.until(service.talk.reply)
    terminal.until("c1>")
    terminal.press("half", CTRL_C)  # the line is emptied, and the program goes on
    terminal.until("c1>")
    terminal.press("\x1b[A\x1b[A", ENTER)  # up, over the lines of the entry before
    terminal.until(service.talk.reply)
    assert service.said("c1")[:2] == ["/plan", "first\nsecond\nthird"]
    assert len(service.said("c1")) == 3


def test_ctrl_c_stops_the_turn_and_not_the_program(service: Service, terminal: Terminal) -> None:
    terminal.press("which is best?", ENTER)
    terminal.until("the best of")
    terminal.press(CTRL_C)
    terminal.until("stopping the turn")
    terminal.until("stopped it")
    terminal.until("c1>")
    terminal.press("/sessions", ENTER)
    terminal.until("toy")


def test_what_is_answered_elsewhere_takes_the_prompt_away(service: Service, terminal: Terminal) -> None:
    terminal.press("/stop", ENTER)
    terminal.until("[y]es")
    assert service.run("--chat", "c1", "--deny", "3", "--note", "not now").exit_code == 0
    terminal.until("was denied by")
    terminal.until("c1>")
    terminal.press("/sessions", ENTER)
    terminal.until("toy")
    assert service.store.session("s1").state.value == "running"


def test_what_others_say_is_shown_above_the_line_that_is_typed(service: Service, terminal: Terminal) -> None:
    terminal.press("/sessions", ENTER)
    terminal.until("toy")
    terminal.until("c1>")
    terminal.press("/hel")
    terminal.until("/hel")
    assert service.run("--chat", "c1", "--say", "/budget").exit_code == 0
    terminal.until("/budget")
    terminal.until("/hel")
    terminal.press("p", ENTER)
    terminal.until("/explain JOB")
    assert service.said("c1") == ["/sessions", "/budget", "/help"]


def test_what_a_model_writes_does_not_steer_the_terminal(
    service: Service, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Told, "reply", "good \x1b]0;owned\x07\x1b[2J\u202edab end")
    service.talk.may_go_on.set()
    terminal.press("which is best?", ENTER)
    terminal.until("dab end")
    assert b"\x1b]0;owned" not in terminal.raw
    assert b"\x1b[2J" not in terminal.raw
    assert "\u202e" not in terminal.plain

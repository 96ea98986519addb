"""A conversation in a terminal: what is typed goes to the service, what happens comes to the screen.

One thread reads the chat's stream; all else, printing too, happens on the thread that calls.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from agent.chat.entry import ChatState, Entry
from agent.web.chat_wire import ChatView
from nightlab.chat import questions
from nightlab.chat.door import Door
from nightlab.chat.following import Follower, Inbox
from nightlab.chat.lines import Lines, Typed
from nightlab.chat.screen import Screen
from runtime_client.errors import Conflict, RuntimeClientError

N_SHOWN = 20
"""Entries of an earlier conversation that are shown when it is gone on with."""


class Outcome(StrEnum):
    """How a turn was left."""

    DONE = "done"
    FAILED = "failed"
    """It ended in trouble, or was stopped."""
    ASKS = "asks"
    """A person has to answer, and nobody is there."""


class Conversation:
    """
    Args:
        lines: who is asked when the chat asks; None: nobody is there.
        open_chat: makes or finds the chat when it is needed first.
        patience_s: for so long the service may be away; None: for ever.
    """

    def __init__(
        self,
        door: Door,
        screen: Screen,
        lines: Lines | None,
        open_chat: Callable[[], ChatView],
        *,
        patience_s: float | None = None,
    ) -> None:
        self._door, self._screen, self._lines = door, screen, lines
        self._open_chat, self._patience_s = open_chat, patience_s
        self._inbox = Inbox()
        self._chat: ChatView | None = None
        self._follower: Follower | None = None

    @property
    def chat(self) -> ChatView:
        if self._chat is None:
            self._chat = self._open_chat()
        return self._chat

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()

    def go_on(self, *, n_shown: int = N_SHOWN) -> Outcome:
        """Show the end of what was said before, and the turn under way to its end."""
        after = max(0, self.chat.n_entries - n_shown)
        self._follow(after)
        for entry in self._door.entries(self.chat.chat_id, after=after, limit=n_shown):
            self._screen.show(entry)
        now = self._door.chat(self.chat.chat_id)
        self._screen.show(now)
        return Outcome.DONE if now.state is ChatState.IDLE else self._until_over(after)

    def say(self, text: str) -> Outcome:
        """Say it, and show what comes of it.

        Raises:
            RuntimeClientError: it could not be said.
        """
        self._follow(self.chat.n_entries)
        said = self._door.say(self.chat.chat_id, text)
        self._screen.own(said)
        return self._until_over(said.number)

    def answer(self, number: int, *, is_yes: bool, note: str | None) -> Outcome:
        """Answer what entry `number` asks, and show what comes of it.

        Raises:
            RuntimeClientError: it could not be answered, or was before.
        """
        said = self._door.answer(self.chat.chat_id, number, is_yes=is_yes, note=note)
        self._follow(number)
        return self._until_over(said.number)

    def converse(self) -> Outcome:
        """Read and say lines until there are no more; of several turns, the worst outcome counts."""
        assert self._lines is not None
        draft, outcome = "", Outcome.DONE
        while True:
            try:
                typed = self._typed(draft)
            except EOFError:
                return outcome
            except KeyboardInterrupt:
                if not self._lines.has_person:
                    raise
                draft = ""
                continue
            draft = "" if typed.is_done else typed.text
            if typed.is_done and not typed.text.strip():
                continue
            came, draft = self._turn(typed.text if typed.is_done else None, draft)
            if came is Outcome.ASKS:
                return came
            outcome = outcome if came is Outcome.DONE or self._lines.has_person else came

    def _turn(self, text: str | None, draft: str) -> tuple[Outcome, str]:
        """What was typed, or a turn that somebody else began and that asks; with what is to be typed on."""
        try:
            return (self._until_over(self._screen.number - 1) if text is None else self.say(text)), draft
        except RuntimeClientError as error:
            if self._lines is None or not self._lines.has_person:
                raise
            self._screen.note(error.message)
            return Outcome.FAILED, text or draft

    def _typed(self, draft: str) -> Typed:
        assert self._lines is not None
        self._show_news()
        if self._screen.question is not None:
            return Typed(draft, is_done=False)
        name = "new chat" if self._chat is None else self._chat.chat_id
        return self._ask(f"{name}> ", draft, lambda: self._screen.question is not None, is_answer=False)

    def _ask(self, prompt: str, draft: str, is_left: Callable[[], bool], *, is_answer: bool) -> Typed:
        assert self._lines is not None

        def on_news() -> bool:
            self._show_news()
            return is_left()

        self._screen.is_typing = True
        try:
            return self._lines.ask(prompt, draft=draft, inbox=self._inbox, on_news=on_news, is_answer=is_answer)
        finally:
            self._screen.is_typing = False

    def _follow(self, after: int) -> None:
        if self._follower is None:
            self._screen.number = after
            self._follower = Follower(
                self._door, self.chat.chat_id, after=after, inbox=self._inbox, patience_s=self._patience_s
            )

    def _show_news(self) -> None:
        for happening in self._inbox.taken():
            self._screen.show(happening)

    def _until_over(self, after: int) -> Outcome:
        """Show what happens until the turn is over; Ctrl-C stops the turn, once more and the program ends."""
        is_stopping = False
        while not self._screen.is_over(after):
            question = self._screen.question
            if question is not None:
                if not self._settled(question):
                    return Outcome.ASKS
                continue
            try:
                self._screen.show(self._inbox.take())
            except KeyboardInterrupt:
                if is_stopping:
                    raise
                is_stopping = True
                self._stop()
        return Outcome.FAILED if self._screen.has_failed else Outcome.DONE

    def _settled(self, question: Entry) -> bool:
        """False: nobody is there to be asked, or who was has left."""
        if self._lines is None or not self._lines.has_person:
            return False
        try:
            typed = self._ask(f"{questions.HOW} ", "", lambda: self._screen.question is not question, is_answer=True)
        except KeyboardInterrupt:
            self._screen.settled()
            self._stop()
            return True
        except EOFError:
            return False
        if not typed.is_done:
            return True
        decision = questions.decision(typed.text)
        if decision is None:
            return True
        try:
            chat_id = self.chat.chat_id
            self._door.answer(chat_id, question.number, is_yes=decision.is_yes, note=decision.note)
            self._screen.settled()
        except Conflict as error:
            self._screen.settled()
            self._screen.note(error.message)
        except RuntimeClientError as error:
            self._screen.note(error.message)
        return True

    def _stop(self) -> None:
        self._screen.note("stopping the turn; Ctrl-C again leaves")
        try:
            self._door.stop(self.chat.chat_id)
        except RuntimeClientError as error:
            self._screen.note(error.message)

"""One question in the form of each rung: what is sent, and what is read from the reply. Pure but for prompt files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

import prompts
from agent.llm.chat import Finish, Message, Reply, ReplySchema, Request, Role, Tool
from agent.llm.menu import MAX_ITEMS, MenuItem, chosen, empty, is_many, menu_text, value_of
from agent.llm.reading import Found, Unreadable, candidates, without_thoughts
from agent.llm.rung import Rung
from agent.llm.shape import T, example_of, fit, schema_of
from agent.llm.untrusted import clean, fenced
from prompts import Rendered

TOOL_NAME = "answer"
MENU_TOKENS = 256
"""Of an answer that is a few numbers."""
_CUT_EARLY = "it ends before it says anything"
_QUOTED_CHARACTERS = 4_000
"""Of an unusable answer that is shown again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """What was read from a reply."""

    value: T | None
    problems: tuple[str, ...] = ()
    """Sentences for the model. Without them and without a value: it wants none of the choices."""
    raw: str = ""
    """As it wrote it, cut."""
    was_cut: bool = False
    """It was too long to be whole."""
    can_repair: bool = True
    as_asked: bool = True
    """It came in the form that was asked for, not in another one that could be read as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A field of the answer that is text of many lines. Where nothing holds a model to a form, the text stands beside
    the JSON: small models escape it badly."""

    field: str
    form: str
    """Name of the prompt that asks for both; its variable is `example`, the JSON without the field."""
    apart: Callable[[str], tuple[str, str]]
    """What of an answer may hold the JSON, and the text; the text is empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    prompt: Rendered
    reply: type[T]
    menu: tuple[MenuItem, ...] = ()
    """Empty: it can not be asked as a menu."""
    picks: int = 1
    """Choices of the menu at most, where several may be taken."""
    max_tokens: int = 1024
    temperature: float | None = None
    beside: Beside | None = None
    _schema: dict[str, object] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_schema", schema_of(self.reply))
        object.__setattr__(self, "menu", self.menu[:MAX_ITEMS])

    def request(self, rung: Rung, *, fault: Answer[T] | None = None, must_call: bool = True) -> Request:
        """What is sent.

        Args:
            fault: The answer before, which is asked for again.
            must_call: By tools: the endpoint holds the model to a call.
        """
        messages = [Message(role=Role.USER, text=f"{self.prompt.user}\n\n{self._form(rung)}".strip())]
        if self.prompt.system:
            messages.insert(0, Message(role=Role.SYSTEM, text=self.prompt.system))
        if fault is not None:
            messages += _repair(fault)
        is_menu = rung is Rung.MENU
        return Request(
            messages=tuple(messages),
            purpose=self.prompt.name,
            prompt_version=self.prompt.version,
            tools=(self._tool(),) if rung is Rung.TOOLS else (),
            must_call=rung is Rung.TOOLS and must_call,
            schema=ReplySchema(name=TOOL_NAME, schema=self._schema) if rung is Rung.SCHEMA else None,
            max_tokens=min(self.max_tokens, MENU_TOKENS) if is_menu else self.max_tokens,
            temperature=self.temperature,
            rung=rung,
        )

    def read(self, reply: Reply, rung: Rung) -> Answer[T]:
        """What it says, by the class of the answer or by the menu; nothing else of it is looked at."""
        raw = clean(_said(reply))[:_QUOTED_CHARACTERS]
        if reply.finish is Finish.FILTERED:
            return Answer(value=None, problems=("a filter of the endpoint kept the answer back",), can_repair=False)
        if rung is Rung.MENU:
            return self._from_menu(reply, raw)
        texts = [call.arguments for call in reply.tool_calls if call.name == TOOL_NAME]
        is_call = bool(texts)
        problems: tuple[str, ...] = ()
        was_cut = reply.finish is Finish.LENGTH
        for text in [*texts, reply.text]:
            answer = self._from_text(text, raw, was_cut=was_cut)
            if text is reply.text and self.beside is not None:
                answer = self._with_text_beside(answer, text, self.beside, was_cut=was_cut)
            if answer.value is not None:
                in_form = is_call if rung is Rung.TOOLS else True
                return Answer(value=answer.value, raw=raw, as_asked=in_form and text in (texts or [reply.text]))
            problems = problems or answer.problems
        return Answer(value=None, problems=problems, raw=raw, was_cut=was_cut)

    def _with_text_beside(self, answer: Answer[T], text: str, beside: Beside, *, was_cut: bool) -> Answer[T]:
        """The answer with the text that stands outside of its JSON, unless the JSON has one."""
        if answer.value is not None and getattr(answer.value, beside.field):
            return answer
        rest, outside = beside.apart(without_thoughts(text))
        return self._from_text(rest, answer.raw, was_cut=was_cut, more={beside.field: outside}) if outside else answer

    def _from_text(self, text: str, raw: str, *, was_cut: bool, more: Mapping[str, object] | None = None) -> Answer[T]:
        try:
            found: Sequence[Found] = candidates(text)
        except Unreadable as error:
            return Answer(value=None, problems=(str(error),), raw=raw, was_cut=was_cut)
        problems: tuple[str, ...] = ()
        for one in found:
            fitted = fit({**one.value, **more} if more and isinstance(one.value, dict) else one.value, self.reply)
            if one.was_cut and fitted.value is not None and fitted.value == empty(self.reply):
                problems = problems or (_CUT_EARLY,)
            elif fitted.value is not None:
                return Answer(value=fitted.value, raw=raw)
            problems = problems or fitted.problems
        return Answer(value=None, problems=problems, raw=raw, was_cut=was_cut)

    def _from_menu(self, reply: Reply, raw: str) -> Answer[T]:
        try:
            numbers = chosen(reply.text, self.menu, at_most=self._n_picks())
        except Unreadable as error:
            return Answer(value=None, problems=(str(error),), raw=raw, was_cut=reply.finish is Finish.LENGTH)
        return Answer(value=value_of(numbers, self.menu, self.reply) if numbers else empty(self.reply), raw=raw)

    def _n_picks(self) -> int:
        return min(self.picks, len(self.menu)) if is_many(self.menu) else 1

    def _form(self, rung: Rung) -> str:
        """What is said about the form of the answer; prompts themselves say nothing of it."""
        match rung:
            case Rung.TOOLS:
                return prompts.load("answer_tools").render(tool=TOOL_NAME).user
            case Rung.SCHEMA:
                return prompts.load("answer_schema").render(schema=json.dumps(self._schema)).user
            case Rung.FENCED:
                example = example_of(self.reply)
                if self.beside is not None:
                    return prompts.load(self.beside.form).render(example=_without(self.beside.field, example)).user
                schema = json.dumps(self._schema)
                return prompts.load("answer_fenced").render(schema=schema, example=json.dumps(example)).user
            case Rung.MENU:
                form = prompts.load("answer_menu").render(choices=menu_text(self.menu), at_most=self._n_picks())
                return f"{form.user}\n\n{form.system}"
            case Rung.NONE:
                return ""

    def _tool(self) -> Tool:
        description = (self.reply.__doc__ or "The answer.").strip().splitlines()[0]
        return Tool(name=TOOL_NAME, description=description, parameters=self._schema)


def _without(field: str, example: object) -> str:
    assert isinstance(example, dict)
    return json.dumps({name: one for name, one in example.items() if name != field})


def _said(reply: Reply) -> str:
    return "\n".join([*(call.arguments for call in reply.tool_calls), reply.text]).strip()


def _repair(fault: Answer[T]) -> list[Message]:
    """The unusable answer as its own words, and what was wrong with it."""
    problems = fenced("\n".join(fault.problems), label="what was wrong", limit=_QUOTED_CHARACTERS)
    asked = prompts.load("repair").render(problems=problems, was_cut=fault.was_cut)
    return [
        Message(role=Role.ASSISTANT, text=fault.raw or "(nothing)"),
        Message(role=Role.USER, text=f"{asked.user}\n\n{asked.system}".strip()),
    ]

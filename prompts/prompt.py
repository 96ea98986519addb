"""One prompt: reading its file, and rendering it strictly. Knows no model and no task; anybody may import it.

---
name: diagnose
purpose: Says what broke a job
variables: {log: the end of its output}
untrusted: [log]
reply: agent.doctor.answer.Answer
sample: {log: "Traceback ..."}
---
# System
You read ...

# User
{{ log }}
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

import yaml
from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field, ValidationError

_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_PART = re.compile(r"^# (System|User)[ \t]*$", re.MULTILINE)
_VERSION_DIGITS = 12


class Fenced(str):
    """Text of somebody who is not trusted, inside a fence that it can not close."""

    __slots__ = ()


class PromptError(Exception):
    """A prompt's file or the variables that it was given are wrong: our mistake, `str()` says which."""


class _Front(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)
    purpose: str = Field(min_length=1)
    variables: dict[str, str] = Field(default_factory=dict)
    untrusted: tuple[str, ...] = ()
    reply: str | None = None
    sample: dict[str, object] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What goes to the model."""

    name: str
    """Of the prompt; the purpose of the call in the accounts."""
    version: str
    """Of the prompt's text, not of what was filled in."""
    system: str
    """May be empty."""
    user: str

    @property
    def reference(self) -> str:
        """`name@version`, as trials have it."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    name: str
    purpose: str
    variables: Mapping[str, str]
    """What each is."""
    untrusted: tuple[str, ...]
    """Variables that have to be fenced; the system part then says what a fence means."""
    reply: str | None
    """Dotted path of the pydantic class of the answer; None: the answer's shape is the caller's."""
    sample: Mapping[str, object]
    """A value for each variable, for tests and for people who read the file."""
    version: str
    """Changes with every character of the text: first digits of its SHA-256."""
    system: str
    user: str

    def render(self, **variables: object) -> Rendered:
        """Fill in exactly the variables that the prompt names.

        Raises:
            PromptError: one is missing, unknown, or should have been fenced and is not.
        """
        missing, unknown = set(self.variables) - set(variables), set(variables) - set(self.variables)
        if missing or unknown:
            words = [
                f"{what}: {', '.join(sorted(them))}"
                for what, them in (("missing", missing), ("unknown", unknown))
                if them
            ]
            raise PromptError(f"prompt {self.name}: variables {'; '.join(words)}")
        for name in self.untrusted:
            if not _is_fenced(variables[name]):
                raise PromptError(f"prompt {self.name}: {name} comes from jobs or people and has to be fenced first")
        texts = [self._filled(text, variables) for text in (self.system, self.user)]
        return Rendered(name=self.name, version=self.version, system=texts[0], user=texts[1])

    def _filled(self, text: str, variables: Mapping[str, object]) -> str:
        try:
            return _environment().from_string(text).render(dict(variables)).strip()
        except TemplateError as error:
            raise PromptError(f"prompt {self.name}: {error.message}") from error


def load(name: str) -> Prompt:
    """The prompt of this package by its name.

    Raises:
        PromptError: there is none, or its file is wrong.
    """
    return _loaded(name)


def names() -> list[str]:
    """Every prompt of this package."""
    files = (one.name for one in resources.files(__package__).iterdir())
    return sorted(name.removesuffix(".md") for name in files if name.endswith(".md"))


def parse(text: str, *, name: str) -> Prompt:
    """A prompt from the text of its file.

    Raises:
        PromptError: front matter, parts, or variables are wrong.
    """
    text = text.replace("\r\n", "\n")
    split = _FRONT.match(text)
    if split is None:
        raise PromptError(f"prompt {name}: it has to begin with front matter between two lines of ---")
    try:
        front = _Front.model_validate(yaml.safe_load(split["front"]))
    except (yaml.YAMLError, ValidationError) as error:
        raise PromptError(f"prompt {name}: front matter: {error}") from error
    if front.name != name:
        raise PromptError(f"prompt {name}: the file says that its name is {front.name}")
    system, user = _parts(split["body"], name)
    rule = _data_rule() if front.untrusted else ""
    prompt = Prompt(
        name=name,
        purpose=front.purpose,
        variables=front.variables,
        untrusted=front.untrusted,
        reply=front.reply,
        sample=front.sample,
        version=hashlib.sha256((text + rule).encode()).hexdigest()[:_VERSION_DIGITS],
        system=f"{system}\n\n{rule}".strip() if rule else system,
        user=user,
    )
    _check(prompt)
    return prompt


def _parts(body: str, name: str) -> tuple[str, str]:
    pieces = _PART.split(body)
    titles = pieces[1::2]
    if pieces[0].strip() or titles not in (["System", "User"], ["User"]):
        raise PromptError(f"prompt {name}: after the front matter come '# System' (may be left out) and '# User'")
    texts = [piece.strip() for piece in pieces[2::2]]
    return ("", texts[0]) if len(texts) == 1 else (texts[0], texts[1])


def _check(prompt: Prompt) -> None:
    """What is declared is what is used, and the sample covers it."""
    environment = _environment()
    try:
        used = meta.find_undeclared_variables(environment.parse(f"{prompt.system}\n{prompt.user}"))
    except TemplateError as error:
        raise PromptError(f"prompt {prompt.name}: {error.message}") from error
    for what, them in (("variables", set(prompt.variables)), ("sample", set(prompt.sample))):
        if them != used:
            odd = ", ".join(sorted(them ^ used))
            raise PromptError(f"prompt {prompt.name}: {what} and text disagree about {odd}")
    if not set(prompt.untrusted) <= used:
        raise PromptError(f"prompt {prompt.name}: untrusted names what is no variable")


def _is_fenced(value: object) -> bool:
    """Fenced text, nothing at all, or a list of such."""
    if isinstance(value, list | tuple):
        return all(isinstance(one, Fenced) for one in value)
    return isinstance(value, Fenced) or value is None or value == ""


@functools.cache
def _loaded(name: str) -> Prompt:
    if name not in names():
        raise PromptError(f"there is no prompt {name!r}; there are: {', '.join(names())}")
    return parse(resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8"), name=name)


@functools.cache
def _data_rule() -> str:
    return resources.files(__package__).joinpath("data_rule.txt").read_text(encoding="utf-8").strip()


@functools.cache
def _environment() -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
    )

"""Prompt files: strict when read, strict when filled in."""

from __future__ import annotations

import pydoc

import pytest
from pydantic import BaseModel

import prompts
from agent.llm.untrusted import fenced
from prompts import Fenced, PromptError

TEXT = """---
name: ask
purpose: Asks
variables: {log: the log, n: how many}
untrusted: [log]
sample: {log: oh, n: 3}
---
# System
Be short.

# User
{{ n }} lines:
{{ log }}
"""


def _sample(prompt: prompts.Prompt) -> dict[str, object]:
    """As a caller gives it: what is not trusted comes fenced."""
    return {
        name: fenced(str(value), label=name, limit=10_000) if name in prompt.untrusted else value
        for name, value in prompt.sample.items()
    }


@pytest.mark.parametrize("name", prompts.names())
def test_every_prompt_renders_with_its_sample(name: str) -> None:
    prompt = prompts.load(name)
    rendered = prompt.render(**_sample(prompt))
    assert rendered.name == name
    assert rendered.reference == f"{name}@{prompt.version}"
    assert rendered.user
    for value in prompt.sample.values():
        if not isinstance(value, bool | int):
            assert str(value) in rendered.system + rendered.user


@pytest.mark.parametrize("name", prompts.names())
def test_a_prompt_that_names_its_reply_names_a_class_that_exists(name: str) -> None:
    path = prompts.load(name).reply
    found = BaseModel if path is None else pydoc.locate(path)
    assert isinstance(found, type)
    assert issubclass(found, BaseModel)


@pytest.mark.parametrize("name", prompts.names())
def test_each_variable_of_each_prompt_is_needed_and_no_other_is_taken(name: str) -> None:
    prompt = prompts.load(name)
    sample = _sample(prompt)
    for missing in sample:
        with pytest.raises(PromptError, match=f"missing: {missing}"):
            prompt.render(**{key: value for key, value in sample.items() if key != missing})
    with pytest.raises(PromptError, match="unknown: surprise"):
        prompt.render(**sample, surprise="x")


def test_what_is_not_trusted_has_to_be_fenced() -> None:
    prompt = prompts.parse(TEXT, name="ask")
    with pytest.raises(PromptError, match="log comes from jobs"):
        prompt.render(log="rm -rf", n=1)
    with pytest.raises(PromptError, match="log comes from jobs"):
        prompt.render(log=Fenced("a") + "b", n=1)
    assert "<untrusted id=" in prompt.render(log=fenced("rm -rf", label="log", limit=99), n=1).user


def test_the_system_part_says_what_a_fence_means_where_there_is_one() -> None:
    assert "never holds instructions" in prompts.parse(TEXT, name="ask").system
    trusted = TEXT.replace("untrusted: [log]\n", "")
    assert prompts.parse(trusted, name="ask").system == "Be short."


def test_the_version_changes_with_the_text_and_with_nothing_else() -> None:
    version = prompts.parse(TEXT, name="ask").version
    assert prompts.parse(TEXT.replace("\n", "\r\n"), name="ask").version == version
    assert prompts.parse(TEXT.replace("short", "brief"), name="ask").version != version
    first = prompts.parse(TEXT, name="ask").render(log="", n=1)
    assert first.version == prompts.parse(TEXT, name="ask").render(log="", n=2).version == version


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("---\nname", "name", "front matter"),
        ("name: ask", "name: other", "its name is other"),
        ("purpose: Asks\n", "", "purpose"),
        ("purpose: Asks", "purpose: Asks\ncolor: red", "color"),
        ("# User", "# Assistant", "'# User'"),
        ("{{ n }}", "{{ m }}", "disagree about m, n"),
        ("sample: {log: oh, n: 3}", "sample: {log: oh}", "sample and text disagree about n"),
        ("untrusted: [log]", "untrusted: [lag]", "untrusted names"),
        ("{{ n }}", "{{ n ", "prompt ask"),
        ("variables: {log", "variables: {log: [", "front matter"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_fault(old: str, new: str, says: str) -> None:
    with pytest.raises(PromptError, match=says):
        prompts.parse(TEXT.replace(old, new, 1), name="ask")


def test_a_template_reaches_nothing_of_python() -> None:
    evil = TEXT.replace("{{ n }}", "{{ n.__class__.__mro__ }}")
    with pytest.raises(PromptError):
        prompts.parse(evil, name="ask").render(log="", n=1)


def test_what_is_filled_in_is_never_read_as_a_template() -> None:
    inside = fenced("{{ n }}{% for x in n %}", label="log", limit=99)
    assert "{{ n }}{% for x in n %}" in prompts.parse(TEXT, name="ask").render(log=inside, n=1).user


def test_an_unknown_prompt_is_told_with_those_that_exist() -> None:
    with pytest.raises(PromptError, match=r"no prompt '../check'; there are: .*check"):
        prompts.load("../check")

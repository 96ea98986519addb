"""What a task says of language models that contradicts itself, or that nothing would come of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.code_trials import CODER
from agent.llm.rung import Rung
from agent.llm.untrusted import clean
from agent.task import CategoricalParameter, Task
from agent.thinking.room import CONTEXT_TOKENS, LEAST_PROMPT_TOKENS, beside_prompt

LEAST_ANSWER_TOKENS = 256
"""Shorter answers hold no more than one idea."""


def model_checks(task: Task) -> Iterator[tuple[str, str]]:
    """Path and message of each problem."""
    is_used = "model" in task.search.use
    model = task.model
    if model is None:
        if is_used:
            what = "is required: search.use names model; add model: {name: ..., base_url: ...}, or take it out of use"
            yield "model", what
        return
    if not is_used and CODER not in task.search.use and not diagnoses(task):
        use = ", ".join([*task.search.use, "model"])
        yield (
            "model",
            "nothing would use it: search.use does not name it, and why a trial failed is no choice of a menu "
            f"(model.rung: menu). Let it suggest, as use: [{use}]; or give a better model.rung; or leave it out",
        )
    if model.key_file is not None and not Path(model.key_file).is_file():
        yield "model.key_file", f"{model.key_file} is not a file; write the key into it, or use model.key_env"
    yield from _name_checks(task)
    yield from _room_checks(task)


def diagnoses(task: Task) -> bool:
    """Whether the task's model is asked why trials fail where the rules can not tell."""
    return task.model is not None and Rung(task.model.rung) is not Rung.MENU


def _name_checks(task: Task) -> Iterator[tuple[str, str]]:
    """Names that a model has to use stand outside any fence: they may hold no marks of one that speaks."""
    named = [("objective.metric", task.objective.metric), *(("space", name) for name in task.space)]
    for name, parameter in task.space.items():
        if isinstance(parameter, CategoricalParameter):
            named += [(f"space.{name}.choices", one) for one in parameter.choices if isinstance(one, str)]
    for path, text in named:
        if " ".join(clean(text).split()) != text:
            what = "has line breaks, spaces too many, invisible characters or marks of a chat"
            yield path, f"{text[:40]!r} can not be shown to a model: it {what}; write it in plain characters"


def _room_checks(task: Task) -> Iterator[tuple[str, str]]:
    """The question, its answer, and the answer once more have to fit together, else the model is never asked."""
    model = task.model
    if model is None:
        return
    context = model.context_tokens or CONTEXT_TOKENS
    beside = beside_prompt(task)
    needed = LEAST_PROMPT_TOKENS + beside + 2 * model.max_tokens
    if context >= needed:
        return
    most = (context - LEAST_PROMPT_TOKENS - beside) // 2
    lower = f"lower model.max_tokens to {most:,}, or " if most >= LEAST_ANSWER_TOKENS else ""
    let = "let the server keep a longer context and say so in model.context_tokens"
    yield (
        "model.context_tokens",
        f"{context:,} has no room for a question of {LEAST_PROMPT_TOKENS:,} tokens, {beside:,} for the form of the "
        f"answer, and two answers of model.max_tokens ({model.max_tokens:,}): {needed:,} are needed; {lower}{let}",
    )

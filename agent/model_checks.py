"""What a task says of language models that contradicts itself, or that nothing would come of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.task import Task

LEAST_PROMPT_TOKENS = 1_500
"""A question with less room than this would leave out what it is about."""


def model_checks(task: Task) -> Iterator[tuple[str, str]]:
    """Path and message of each problem."""
    is_used = "model" in task.search.use
    model = task.model
    if model is None:
        if is_used:
            what = "is required: search.use names model; add model: {name: ..., base_url: ...}, or take it out of use"
            yield "model", what
        return
    if not is_used:
        use = ", ".join([*task.search.use, "model"])
        yield "model", f"nobody asks it: name it in search.use, as use: [{use}], or leave it out"
    if model.key_file is not None and not Path(model.key_file).is_file():
        yield "model.key_file", f"{model.key_file} is not a file; write the key into it, or use model.key_env"
    yield from _room_checks(task)


def _room_checks(task: Task) -> Iterator[tuple[str, str]]:
    """The question, its answer, and the answer once more have to fit together."""
    model = task.model
    if model is None or model.context_tokens is None:
        return
    needed = LEAST_PROMPT_TOKENS + 2 * model.max_tokens
    if model.context_tokens < needed:
        yield (
            "model.context_tokens",
            f"{model.context_tokens:,} has no room for a question of {LEAST_PROMPT_TOKENS:,} tokens and two answers of "
            f"model.max_tokens ({model.max_tokens:,}): {needed:,} are needed; lower model.max_tokens, or let the "
            "server keep a longer context",
        )

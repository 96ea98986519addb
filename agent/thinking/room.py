"""How much of a question fits into a model beside schema, frame and answers. Pure.

All in tokens, estimated as in `agent.llm.counting`.
"""

from __future__ import annotations

import json

from agent.llm.counting import tokens_of
from agent.llm.shape import schema_of
from agent.task import Model, Task
from agent.thinking.ideas import Ideas, ideas_of

PROMPT_TOKENS = 5_000
"""The most that a prompt has."""
LEAST_PROMPT_TOKENS = 1_500
"""A prompt with less room than this would leave out what it is about."""
CONTEXT_TOKENS = 8_192
"""Of a model of which the task does not say how much fits into it."""
MARGIN_TOKENS = 500
"""For the frame around a question: roles, the form of the answer, what is said when an answer has to be given again."""


def beside_prompt(task: Task | None) -> int:
    """The schema of the answer as it is sent, and the frame; without a task, the schema names no parameters."""
    shape = Ideas if task is None else ideas_of(task)
    return tokens_of(json.dumps(schema_of(shape))) + MARGIN_TOKENS


def prompt_limit(task: Task | None, model: Model) -> int:
    """Of a prompt at most: what is left beside schema, frame, answer, and the same answer once more."""
    context = model.context_tokens or CONTEXT_TOKENS
    return min(PROMPT_TOKENS, context - 2 * model.max_tokens - beside_prompt(task))

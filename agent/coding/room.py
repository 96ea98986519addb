"""How much of a model's context a question for an edit has, and its answer. Pure.

All in tokens, estimated as in `agent.llm.counting`.
"""

from __future__ import annotations

import json

from agent.coding.answer import edit_of
from agent.llm.counting import tokens_of
from agent.llm.shape import schema_of
from agent.task import Model, Task
from agent.thinking.room import CONTEXT_TOKENS, MARGIN_TOKENS

PROMPT_TOKENS = 24_000
"""The most that a prompt has: code is longer than tables."""
LEAST_FRAME_TOKENS = 900
"""Of what stands around the files at least: rules, objective, a few rows."""
_LEAST_ANSWER = 512
_PART = 8
"""Of a small context an answer has at most one part in so many: the code has to be seen too."""


def answer_tokens(model: Model) -> int:
    """Of one answer at most; it may have to be given once more, so it counts twice."""
    return min(model.max_tokens, max(_LEAST_ANSWER, (model.context_tokens or CONTEXT_TOKENS) // _PART))


def edit_prompt_limit(task: Task, model: Model) -> int:
    """Of a prompt at most: what is left beside schema, frame, answer, and the same answer once more."""
    context = model.context_tokens or CONTEXT_TOKENS
    beside = tokens_of(json.dumps(schema_of(edit_of(task)))) + MARGIN_TOKENS
    return min(PROMPT_TOKENS, context - 2 * answer_tokens(model) - beside)

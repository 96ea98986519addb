"""A request in the words of the chat completions API, and the dialects of it that endpoints speak. Pure.

Endpoints differ in what they refuse. What one refuses is learned from its first refusal and left out from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agent.llm.chat import Message, Request, Role, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What an endpoint takes, as far as is known."""

    has_stream_options: bool = True
    """It takes `stream_options`, and tells the usage of a streamed answer then."""
    length_name: str = "max_tokens"
    """The newer models of OpenAI have it under another name."""
    has_temperature: bool = True
    """Models that reason take none but their own."""
    has_required: bool = True
    """It takes `tool_choice: required`."""
    has_strict: bool = True
    """It takes `strict` beside a schema."""


def payload(request: Request, model: str, dialect: Dialect, *, is_streamed: bool) -> dict[str, object]:
    """The body of the call."""
    body: dict[str, object] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        dialect.length_name: request.max_tokens,
    }
    if request.temperature is not None and dialect.has_temperature:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = "required" if request.must_call and dialect.has_required else "auto"
    if request.schema is not None:
        schema: dict[str, object] = {"name": request.schema.name, "schema": request.schema.schema}
        if dialect.has_strict:
            schema["strict"] = is_strict(request.schema.schema)
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if is_streamed:
        body["stream"] = True
        if dialect.has_stream_options:
            body["stream_options"] = {"include_usage": True}
    return body


def is_strict(schema: object) -> bool:
    """Whether OpenAI holds an answer to it to the letter: all properties required, no others allowed, everywhere.

    Source: OpenAI's guide to structured outputs, "supported schemas".
    """
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            properties = schema.get("properties")
            names = set(properties) if isinstance(properties, Mapping) else set()
            required = schema.get("required")
            required_names = set(required) if isinstance(required, list | tuple) else set()
            if schema.get("additionalProperties") is not False or names != required_names:
                return False
        return all(is_strict(part) for part in schema.values())
    if isinstance(schema, list | tuple):
        return all(is_strict(part) for part in schema)
    return True


def learned(dialect: Dialect, request: Request, refusal: str, *, is_streamed: bool) -> Dialect | None:
    """The dialect without what an endpoint has refused with these words; None: it refused something else."""
    lessons: tuple[tuple[bool, str, Callable[[], Dialect]], ...] = (
        (
            is_streamed and dialect.has_stream_options,
            "stream_options",
            lambda: replace(dialect, has_stream_options=False),
        ),
        (
            dialect.length_name == "max_tokens",
            "max_completion_tokens",
            lambda: replace(dialect, length_name="max_completion_tokens"),
        ),
        (
            request.temperature is not None and dialect.has_temperature,
            "temperature",
            lambda: replace(dialect, has_temperature=False),
        ),
        (
            bool(request.tools) and request.must_call and dialect.has_required,
            "tool_choice",
            lambda: replace(dialect, has_required=False),
        ),
        (request.schema is not None and dialect.has_strict, "strict", lambda: replace(dialect, has_strict=False)),
    )
    words = refusal.lower()
    return next((lesson() for applies, word, lesson in lessons if applies and word in words), None)


def _message(message: Message) -> dict[str, object]:
    body: dict[str, object] = {"role": message.role.value, "content": message.text}
    if message.role is Role.TOOL and message.call_id is not None:
        body["tool_call_id"] = message.call_id
    if message.role is Role.ASSISTANT and message.tool_calls:
        body["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return body


def _tool(tool: Tool) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}

"""What endpoints say and what it means: troubles, dialects, pieces of answers; and what is never shown."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agent.llm.answers import MAX_CALLS, Answer, Unreadable, read_piece
from agent.llm.chat import Finish, Message, ModelError, ReplySchema, Request, Role, Tool, ToolCall, Trouble
from agent.llm.dialect import Dialect, is_strict, learned, payload
from agent.llm.guard import VARIABLE, Calls, calls_allowed, check_call, host_of
from agent.llm.redaction import HIDDEN, redacted, secrets_in
from agent.llm.troubles import refusal, retry_after_s, sense

TOOL = Tool(name="suggest", description="Suggest trials.", parameters={"type": "object", "properties": {}})
ANSWER = ReplySchema(name="answer", schema={"type": "object"})


def meant(status: int | None, body: object) -> Trouble:
    return sense(refusal(status, body if isinstance(body, str) else json.dumps(body))).trouble


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages have 9000.", None),
        (400, "Please shorten it.", "context_length_exceeded"),
        (400, "the request exceeds the available context size, try increasing it", "exceed_context_size_error"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"),
        (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", None),
        (400, "Please reduce the length of the messages or completion.", None),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.", "validation"),
        (400, "The input token count (40000) exceeds the maximum number of tokens allowed (32768).", None),
        (400, "the model is loaded with context length of only 4096 tokens", None),
        (500, "input length exceeds the context length", None),
        (413, "Payload", None),
        (None, "Requested tokens exceed context window of 512", "400"),
    ],
)
def test_a_prompt_that_does_not_fit_is_too_long_in_the_words_of_any_vendor(
    status: int | None, message: str, code: str | None
) -> None:
    assert meant(status, {"error": {"message": message, "code": code}}) is Trouble.TOO_LONG


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            404,
            {
                "error": {
                    "message": "The model `gpt-9` does not exist or you have no access.",
                    "code": "model_not_found",
                }
            },
        ),
        (404, {"error": {"message": "model 'qwen2.5:0.5b' not found, try pulling it first"}}),
        (404, {"object": "error", "message": "The model `tiny` does not exist.", "code": 404}),
        (400, {"error": {"message": "tiny/none is not a valid model ID", "code": 400}}),
        (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource is missing"}}),
    ],
)
def test_a_model_that_the_endpoint_does_not_have_is_unknown(status: int, body: object) -> None:
    assert meant(status, body) is Trouble.UNKNOWN_MODEL


@pytest.mark.parametrize(
    ("status", "body", "trouble"),
    [
        (404, {"error": {"message": "No endpoints found that support tool use."}}, Trouble.REFUSED),
        (400, {"error": {"message": "registry.ollama.ai/library/tiny does not support tools"}}, Trouble.REFUSED),
        (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, Trouble.UNAUTHORIZED),
        (402, {"error": {"message": "Insufficient Balance"}}, Trouble.UNAUTHORIZED),
        (429, {"error": {"message": "Rate limit; see your plan and billing details"}}, Trouble.RATE_LIMITED),
        (504, "gateway", Trouble.TIMED_OUT),
        (501, "not implemented", Trouble.REFUSED),
        (502, "<html>bad gateway</html>", Trouble.FAILED),
        (None, "", Trouble.FAILED),
    ],
)
def test_other_refusals_have_their_own_trouble(status: int | None, body: object, trouble: Trouble) -> None:
    assert meant(status, body) is trouble


def test_only_what_may_pass_is_worth_another_try() -> None:
    worth = {status for status in range(300, 600) if sense(refusal(status, "")).is_worth_another_try}
    assert {408, 409, 425, 429, 500, 502, 503, 504, 529} <= worth
    assert not worth & {301, 400, 401, 402, 403, 404, 413, 422, 501, 505}


@pytest.mark.parametrize("text", ['{"error": null}', "[]", '"no"', "", "[" * 10_000, '{"error": {"message": 3}}'])
def test_any_body_of_an_error_can_be_read(text: str) -> None:
    assert sense(refusal(500, text)).trouble is Trouble.FAILED


def test_long_words_of_an_endpoint_are_shortened_to_one_line() -> None:
    words = refusal(500, "a\nb " * 1000).words
    assert len(words) == 300
    assert words.startswith("a b a b")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_what_an_endpoint_asks_to_wait_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=10.0) == seconds


def asking(**changes: Any) -> Request:
    return Request(messages=(Message(role=Role.USER, text="hello"),), purpose="check", **changes)


@pytest.mark.parametrize(
    ("request_", "words", "dropped"),
    [
        (asking(), "Unknown field: stream_options", "stream_options"),
        (asking(), "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        (asking(temperature=0.2), "'temperature' does not support 0.2 with this model.", "temperature"),
    ],
)
def test_what_is_refused_is_left_out_from_then_on(request_: Request, words: str, dropped: str) -> None:
    better = learned(Dialect(), request_, words, is_streamed=True)
    assert better is not None
    assert dropped in payload(request_, "tiny", Dialect(), is_streamed=True)
    assert dropped not in payload(request_, "tiny", better, is_streamed=True)
    assert learned(better, request_, words, is_streamed=True) is None


def test_the_length_goes_under_the_name_that_the_endpoint_knows() -> None:
    body = payload(asking(max_tokens=5), "tiny", Dialect(length_name="max_completion_tokens"), is_streamed=False)
    assert (body["max_completion_tokens"], "stream" in body) == (5, False)


def test_a_required_tool_is_asked_for_as_well_as_the_endpoint_can() -> None:
    request = asking(tools=(TOOL,), must_call=True)
    better = learned(Dialect(), request, "tool_choice: only auto", is_streamed=False)
    assert better is not None
    assert payload(request, "tiny", better, is_streamed=False)["tool_choice"] == "auto"


def test_nothing_is_learned_from_a_refusal_of_what_was_not_asked_for() -> None:
    assert learned(Dialect(), asking(), "temperature, strict, tool_choice, stream_options", is_streamed=False) is None


def test_a_talk_with_tools_goes_on_with_the_calls_and_their_answers() -> None:
    call = ToolCall(call_id="c1", name="suggest", arguments="{}")
    messages = (
        Message(role=Role.ASSISTANT, text="", tool_calls=(call,)),
        Message(role=Role.TOOL, text="done", call_id="c1"),
    )
    sent = payload(Request(messages=messages, purpose="check"), "tiny", Dialect(), is_streamed=False)["messages"]
    function = {"name": "suggest", "arguments": "{}"}
    assert sent == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "content": "done", "tool_call_id": "c1"},
    ]


def test_a_schema_is_strict_only_where_every_object_is_closed_and_whole() -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert is_strict(closed)
    assert not is_strict({**closed, "required": []})
    assert not is_strict({**closed, "properties": {"a": {"type": "object"}}})
    assert not is_strict({"type": "array", "items": {"type": "object", "properties": {}}})


def test_calls_without_an_index_are_whole_or_go_on_with_the_last() -> None:
    answer = Answer()
    for call in (
        {"id": "a", "function": {"name": "suggest", "arguments": '{"x"'}},
        {"function": {"arguments": ": 1}"}},
        {"function": {"name": "stop", "arguments": {"y": 2}}},
    ):
        answer.add(read_piece({"choices": [{"delta": {"tool_calls": [call]}}]}))
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [("suggest", '{"x": 1}'), ("stop", '{"y": 2}')]


def test_more_tool_calls_than_anybody_needs_are_cut() -> None:
    answer = Answer()
    calls = [{"index": at, "function": {"name": "suggest"}} for at in range(1000)]
    answer.add(read_piece({"choices": [{"message": {"tool_calls": calls}}]}))
    assert (len(answer.tool_calls), answer.finish) == (MAX_CALLS, Finish.LENGTH)


def test_a_refusal_of_the_model_is_its_text_and_counts_as_filtered() -> None:
    answer = Answer()
    answer.add(read_piece({"choices": [{"message": {"refusal": "I will not."}, "finish_reason": "stop"}]}))
    assert (answer.text, answer.finish) == ("I will not.", Finish.FILTERED)


def test_text_in_parts_is_joined() -> None:
    answer = Answer()
    answer.add(read_piece({"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}))
    assert answer.text == "ab"


@pytest.mark.parametrize("data", [None, [], "x", {"choices": {}}, {"usage": {"prompt_tokens": -1}}])
def test_another_shape_is_unreadable(data: object) -> None:
    with pytest.raises(Unreadable):
        read_piece(data)


@pytest.mark.parametrize(
    ("said", "calls"),
    [(None, Calls.ALLOW), ("loopback", Calls.LOOPBACK), (" Forbid", Calls.FORBID), ("maybe", Calls.FORBID)],
)
def test_the_guard_reads_the_environment_and_forbids_what_it_does_not_know(said: str | None, calls: Calls) -> None:
    assert calls_allowed({} if said is None else {VARIABLE: said}) is calls


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:8081/v1", "http://localhost/v1", "http://[::1]:1/", "http://127.9.9.9"]
)
def test_this_machine_may_be_called_where_loopback_may(base_url: str) -> None:
    check_call(host_of(base_url), Calls.LOOPBACK)


@pytest.mark.parametrize("base_url", ["https://models.example/v1", "http://localhost.example", "http://10.0.0.1", "no"])
def test_no_other_machine_may_be_called_where_only_loopback_may(base_url: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_call(host_of(base_url), Calls.LOOPBACK)
    assert caught.value.trouble is Trouble.FORBIDDEN


def test_the_tests_themselves_may_only_call_this_machine() -> None:
    assert calls_allowed(os.environ) is not Calls.ALLOW


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnopqrstuv",
        "hf_abcdefghijklmnopqrstuvwxyz",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def_123",
    ],
)
def test_what_looks_like_a_key_is_hidden(secret: str) -> None:
    assert redacted(f"lr=0.1 {secret} done") == f"lr=0.1 {HIDDEN} done"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {HIDDEN}"),
        ('{"api_key": "0123456789", "lr": 0.1}', f'{{"api_key": "{HIDDEN}", "lr": 0.1}}'),
        ("password=hunter22 lr=1", f"password={HIDDEN} lr=1"),
        ("postgresql://me:secret@db/lab", f"postgresql://{HIDDEN}@db/lab"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- x", f"{HIDDEN} x"),
    ],
)
def test_what_is_named_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize("text", ["max_tokens: 1024", "the key lr has 0.001", "token budget 5000", "key-value-store"])
def test_plain_words_about_keys_and_tokens_stay(text: str) -> None:
    assert redacted(text) == text


def test_values_of_secret_variables_are_hidden_wherever_they_stand() -> None:
    secrets = secrets_in(
        {"LAB_TOKEN": "correct-horse", "PATH": "/usr/bin:/bin", "MY_KEY": "short", "KEY_FILE": "/etc/key-file"}
    )
    assert secrets == {"correct-horse"}
    assert redacted("x=correct-horse!", secrets) == f"x={HIDDEN}!"

"""The scripted model: it says, fails and takes time as its script says; and the estimate of tokens."""

from __future__ import annotations

import pytest

from agent.llm.chat import ChatModel, Finish, Message, ModelError, ReplySchema, Request, Role, Tool, Trouble
from agent.llm.counting import prompt_tokens, tokens_of
from agent.llm.scripted import Said, ScriptedModel, called


def asking(text: str) -> Request:
    return Request(messages=(Message(role=Role.USER, text=text),), purpose="check")


def test_a_list_is_said_in_order_and_nothing_after_it() -> None:
    model: ChatModel = ScriptedModel(["one", Said(text="two", took_s=3.0)])
    assert model.complete(asking("a"), deadline_s=10).text == "one"
    second = model.complete(asking("b"), deadline_s=10)
    assert (second.text, second.took_s, second.finish) == ("two", 3.0, Finish.STOP)
    with pytest.raises(ModelError, match="its script has 2 answers and this is question 3") as caught:
        model.complete(asking("c"), deadline_s=10)
    assert caught.value.trouble is Trouble.FAILED


def test_a_function_answers_what_it_was_asked_and_requests_are_kept() -> None:
    model = ScriptedModel(lambda request: request.messages[-1].text.upper(), name="echo")
    assert model.complete(asking("hello"), deadline_s=1).text == "HELLO"
    assert [request.messages[0].text for request in model.requests] == ["hello"]
    assert (model.n_calls, model.name) == (1, "echo")


def test_it_fails_where_the_script_says_so() -> None:
    model = ScriptedModel([ModelError(Trouble.RATE_LIMITED, "wait", status=429), "fine"])
    with pytest.raises(ModelError) as caught:
        model.complete(asking("a"), deadline_s=1)
    assert (caught.value.trouble, caught.value.status) == (Trouble.RATE_LIMITED, 429)
    assert model.complete(asking("a"), deadline_s=1).text == "fine"


def test_an_answer_slower_than_the_deadline_is_none_and_costs_the_deadline() -> None:
    waited: list[float] = []
    model = ScriptedModel([Said(text="late", took_s=600), Said(text="in time", took_s=5)], pause=waited.append)
    with pytest.raises(ModelError) as caught:
        model.complete(asking("a"), deadline_s=120)
    assert caught.value.trouble is Trouble.TIMED_OUT
    assert model.complete(asking("a"), deadline_s=120).text == "in time"
    assert waited == [120, 5]


def test_text_comes_in_pieces_that_join_to_the_whole() -> None:
    pieces: list[str] = []
    reply = ScriptedModel(["  two words\n"]).complete(asking("a"), deadline_s=1, on_text=pieces.append)
    assert pieces == ["  ", "two ", "words\n"]
    assert reply.text == "".join(pieces)


def test_a_tool_call_ends_in_tools_and_its_usage_is_estimated() -> None:
    reply = ScriptedModel([called("suggest", '{"lr": 0.1}')]).complete(asking("a"), deadline_s=1)
    assert reply.finish is Finish.TOOLS
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("suggest", '{"lr": 0.1}')]
    assert reply.usage.is_estimated
    assert reply.usage.completion_tokens >= tokens_of('{"lr": 0.1}')


def test_the_estimate_counts_digits_one_by_one_and_three_letters_together() -> None:
    assert tokens_of("") == 0
    assert tokens_of("abcdef") == 2
    assert tokens_of("0.0125") == 6
    assert tokens_of("äöü") == 3


def test_tools_and_schema_are_part_of_the_prompt() -> None:
    plain = asking("a")
    tool = Tool(name="suggest", description="Suggest trials.", parameters={"type": "object"})
    schema = ReplySchema(name="ideas", schema={"type": "object"})
    with_tool = Request(messages=plain.messages, purpose="check", tools=(tool,))
    with_schema = Request(messages=plain.messages, purpose="check", schema=schema)
    assert prompt_tokens(plain) < prompt_tokens(with_schema) < prompt_tokens(with_tool)

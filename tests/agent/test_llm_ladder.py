"""Questions by the best rung that gives an answer: steps down, repairs, last resorts, silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from ladder_questions import GOOD, GOOD_VALUE, MENU, PROMPT, Accounts, Clock, Pick, Picks

from agent.llm.chat import Finish, ModelError, Outcome, Reply, Request, Role, Trouble
from agent.llm.ladder import Asker, Asking, asking
from agent.llm.pace import patience_s
from agent.llm.rung import Rung
from agent.llm.scripted import Said, Scripted, ScriptedModel, called
from agent.llm.standing import Steps, Tried
from agent.task import Model

STEPS = Steps(n_unusable=4, n_good=3, up_s=100.0, first_wait_s=10.0, longest_wait_s=60.0)
RIGHT: dict[Rung, Scripted] = {
    Rung.TOOLS: called("answer", GOOD),
    Rung.SCHEMA: GOOD,
    Rung.FENCED: f"Here you are:\n```json\n{GOOD}\n```",
    Rung.MENU: "2, 4",
}


def _settings(best: Rung = Rung.TOOLS, *, call_s: float | None = None) -> Asking:
    return Asking(call_s=call_s, steps=replace(STEPS, best=best))


def _refused(request: Request) -> ModelError:
    return ModelError(Trouble.REFUSED, f"the endpoint takes no {request.rung}")


def _only(*rungs: Rung) -> Callable[[Request], Scripted]:
    """Right on these rungs, refused on others."""
    return lambda request: RIGHT[request.rung] if request.rung in rungs else _refused(request)


@pytest.mark.parametrize("rung", RIGHT)
def test_each_rung_gives_the_answer_as_its_class(rung: Rung) -> None:
    model = ScriptedModel(_only(rung))
    asked = Asker(model, _settings(rung)).ask(PROMPT, Picks, MENU)
    value = Picks(trials=[Pick(lr=0.02), Pick(lr=0.04)]) if rung is Rung.MENU else GOOD_VALUE
    assert (asked.value, asked.rung, asked.why, asked.n_calls) == (value, rung, "", 1)
    assert (asked.prompt, asked.prompt_version, asked.model) == ("suggest@abc", "abc", "scripted")


def test_what_is_sent_is_the_form_of_the_rung_and_of_no_other() -> None:
    model = ScriptedModel(_only(Rung.MENU))
    Asker(model, _settings()).ask(PROMPT, Picks, MENU, max_tokens=500)
    by_tools, by_auto, by_schema, fenced, menu = model.requests
    assert [t.name for t in by_tools.tools] == ["answer"]
    assert (by_tools.must_call, by_auto.must_call, by_schema.must_call) == (True, False, False)
    assert by_tools.tools[0].description == "What to try next."
    assert by_schema.schema is not None
    assert by_schema.schema.schema == by_tools.tools[0].parameters
    assert not by_schema.tools
    assert [(r.tools, r.schema) for r in (fenced, menu)] == [((), None)] * 2
    assert "```json" in fenced.messages[-1].text
    assert "1. lr = 0.01" in menu.messages[-1].text
    assert "{" not in menu.messages[-1].text
    assert [r.max_tokens for r in model.requests] == [500, 500, 500, 500, 256]
    assert {r.purpose for r in model.requests} == {"suggest"}
    assert {r.messages[0].text for r in model.requests} == {"You suggest."}


def test_a_refused_form_costs_no_turn_and_is_not_sent_again() -> None:
    model = ScriptedModel(_only(Rung.FENCED))
    asker = Asker(model, _settings(), now=Clock())
    first, second = asker.ask(PROMPT, Picks), asker.ask(PROMPT, Picks)
    assert (first.value, first.n_calls) == (GOOD_VALUE, 4)
    assert (second.value, second.n_calls) == (GOOD_VALUE, 1)
    (news,) = asker.take_news()
    assert news.startswith("model scripted: asked by a block of JSON from now on, no longer by tool calls")
    assert asker.take_news() == []


def test_where_only_forcing_a_call_is_refused_tools_stay() -> None:
    model = ScriptedModel(lambda r: _refused(r) if r.must_call else called("answer", GOOD))
    asker = Asker(model, _settings())
    assert [asker.ask(PROMPT, Picks).rung for _ in range(3)] == [Rung.TOOLS] * 3
    assert model.n_calls == 4
    assert asker.take_news() == []


def test_an_unusable_answer_is_asked_for_once_more_with_what_was_wrong() -> None:
    model = ScriptedModel(['{"trials": [{"lr": 7}], "color": "red"}', GOOD])
    asked = Asker(model, _settings(Rung.SCHEMA)).ask(PROMPT, Picks)
    assert (asked.value, asked.n_calls, asked.rung) == (GOOD_VALUE, 2, Rung.SCHEMA)
    system, user, before, repair = model.requests[1].messages
    assert (system.role, user.role, before.role, repair.role) == (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER)
    assert before.text == '{"trials": [{"lr": 7}], "color": "red"}'
    assert "trials.0.lr: Input should be less than 1; seen: 7" in repair.text
    assert "color: Extra inputs are not permitted" in repair.text
    assert "too long" not in repair.text


def test_an_answer_that_was_cut_off_is_asked_for_shorter() -> None:
    model = ScriptedModel([Said(text='{"why": "well', finish=Finish.LENGTH), '{"lr": 0.1}'])
    asked = Asker(model, _settings(Rung.SCHEMA)).ask(PROMPT, Pick)
    assert (asked.value, asked.n_calls) == (Pick(lr=0.1), 2)
    assert "cut off because it was too long" in model.requests[1].messages[-1].text


def test_what_is_complete_of_an_answer_that_was_cut_off_is_used() -> None:
    cut = Said(text='{"trials": [{"lr": 0.1, "why": "bold"}, {"lr": 0.0', finish=Finish.LENGTH)
    asked = Asker(ScriptedModel([cut]), _settings(Rung.SCHEMA)).ask(PROMPT, Picks)
    assert (asked.value, asked.n_calls) == (GOOD_VALUE, 1)


@pytest.mark.parametrize("text", ['{"trials', '{"trials": [{"lr', "{"])
def test_an_answer_that_was_cut_off_before_it_says_anything_is_none(text: str) -> None:
    cut = Said(text=text, finish=Finish.LENGTH)
    asked = Asker(ScriptedModel([cut, GOOD]), _settings(Rung.SCHEMA)).ask(PROMPT, Picks)
    assert (asked.value, asked.n_calls) == (GOOD_VALUE, 2)


def test_an_answer_that_says_nothing_and_was_not_cut_off_is_one() -> None:
    asked = Asker(ScriptedModel(['{"trials": []}']), _settings(Rung.SCHEMA)).ask(PROMPT, Picks)
    assert (asked.value, asked.n_calls) == (Picks(), 1)


def test_a_model_that_only_babbles_picks_from_the_menu_in_the_same_turn() -> None:
    model = ScriptedModel(lambda r: "3" if r.rung is Rung.MENU else "As an AI model I would say so.")
    asked = Asker(model, _settings()).ask(PROMPT, Picks, MENU)
    assert (asked.value, asked.rung, asked.n_calls) == (Picks(trials=[Pick(lr=0.03)]), Rung.MENU, 3)


def test_without_a_menu_the_last_resort_is_the_next_rung() -> None:
    model = ScriptedModel(lambda r: GOOD if r.rung is Rung.SCHEMA else "so so")
    asked = Asker(model, _settings()).ask(PROMPT, Picks)
    assert (asked.value, asked.rung, asked.n_calls) == (GOOD_VALUE, Rung.SCHEMA, 3)


def test_it_steps_down_to_none_says_each_step_and_comes_back() -> None:
    clock, answer = Clock(), ["oh"]
    model = ScriptedModel(lambda r: RIGHT[r.rung] if answer == ["good"] else answer[0])
    asker = Asker(model, _settings(), now=clock)
    rungs = [asker.ask(PROMPT, Picks, MENU).rung for _ in range(20)]
    assert asker.standing.rung is Rung.NONE
    assert rungs[-1] is Rung.NONE
    n = model.n_calls
    asked = asker.ask(PROMPT, Picks, MENU)
    assert (asked.value, asked.n_calls, model.n_calls) == (None, 0, n)
    assert "not asked for now" in asked.why
    assert [line.split(": ")[1].split(",")[0] for line in asker.take_news()] == [
        "asked by a JSON schema from now on",
        "asked by a block of JSON from now on",
        "asked by numbered choices from now on",
        "not asked for now",
    ]
    answer[:] = ["good"]
    for _ in range(40):
        clock.at += 30.0
        asker.ask(PROMPT, Picks, MENU)
    assert asker.standing.rung is Rung.TOOLS
    assert asker.take_news()[-1] == "model scripted: asked by tool calls again"


@pytest.mark.parametrize(
    "trouble",
    [Trouble.UNREACHABLE, Trouble.TIMED_OUT, Trouble.RATE_LIMITED, Trouble.OVER_BUDGET, Trouble.UNAUTHORIZED],
)
def test_silence_costs_no_rung_and_no_calls_until_the_wait_is_over(trouble: Trouble) -> None:
    clock, is_silent = Clock(), [True]
    model = ScriptedModel(lambda r: ModelError(trouble, "nobody is there") if is_silent else RIGHT[r.rung])
    asker = Asker(model, _settings(), now=clock)
    first = asker.ask(PROMPT, Picks, MENU)
    assert (first.value, first.n_calls, first.trouble, first.why) == (None, 1, trouble, "nobody is there")
    clock.at += 9.9
    waiting = asker.ask(PROMPT, Picks, MENU)
    assert (waiting.n_calls, waiting.trouble) == (0, trouble)
    assert asker.asks_again_at() == 1010.0
    clock.at += 0.1
    assert asker.asks_again_at() is None
    is_silent.clear()
    assert asker.ask(PROMPT, Picks, MENU).rung is Rung.TOOLS
    assert model.n_calls == 2
    silent, again = asker.take_news()
    assert "no answer (nobody is there); asked again after 10 s" in silent
    assert again == "model scripted: answers again"


def test_a_server_that_fails_on_the_grammar_of_tools_is_asked_in_another_form_at_once() -> None:
    failed = ModelError(Trouble.FAILED, "500: does not match the expected format")
    model = ScriptedModel(lambda r: failed if r.rung is Rung.TOOLS else RIGHT[r.rung])
    asker = Asker(model, _settings(), now=Clock())
    asked = asker.ask(PROMPT, Picks)
    assert (asked.value, asked.rung, asked.n_calls) == (GOOD_VALUE, Rung.SCHEMA, 2)
    for _ in range(3):
        asker.ask(PROMPT, Picks)
    assert asker.standing.rung is Rung.SCHEMA


def test_all_calls_of_a_question_share_one_deadline() -> None:
    clock = Clock()

    def slow(request: Request) -> Scripted:
        clock.at += 40.0
        return "nothing of use"

    model = ScriptedModel(slow)
    asked = Asker(model, _settings(call_s=60.0), now=clock).ask(PROMPT, Picks, MENU)
    assert (asked.value, asked.n_calls, asked.took_s) == (None, 2, 80.0)


def _taking(clock: Clock, seconds: float, script: Callable[[Request], Scripted]) -> ScriptedModel:
    """Each answer takes so long by the clock."""

    def slow(request: Request) -> Scripted:
        clock.at += seconds
        return script(request)

    return ScriptedModel(slow)


@pytest.mark.parametrize(("seconds", "rungs"), [(79.0, "tools tools schema"), (81.0, "tools schema")])
def test_with_little_time_left_the_last_resort_goes_before_a_repair(seconds: float, rungs: str) -> None:
    clock = Clock()
    model = _taking(clock, seconds, lambda r: GOOD if r.rung is Rung.SCHEMA else "so so")
    asked = Asker(model, _settings(), now=clock).ask(PROMPT, Picks)
    assert (asked.value, " ".join(str(r.rung) for r in model.requests)) == (GOOD_VALUE, rungs)


def test_where_there_is_no_last_resort_a_repair_is_tried_with_little_time_left() -> None:
    clock = Clock()
    model = _taking(clock, 70.0, lambda r: GOOD if len(r.messages) > 2 else "so so")
    assert Asker(model, _settings(Rung.FENCED), now=clock).ask(PROMPT, Picks).value == GOOD_VALUE


@pytest.mark.parametrize(
    ("said_s", "took_s", "patience"),
    [
        (None, [], 240.0),
        (None, [10.0], 240.0),
        (None, [100.0, 5.0], 300.0),
        (None, [100.0, *[5.0] * 5], 240.0),
        (None, [500.0], 900.0),
        (30.0, [100.0], 30.0),
        (900.0, [], 900.0),
    ],
)
def test_a_slow_endpoint_gets_more_time_unless_the_task_says_how_much(
    said_s: float | None, took_s: list[float], patience: float
) -> None:
    assert patience_s(said_s, took_s) == patience


def test_after_a_call_that_got_no_answer_in_time_the_next_one_gets_more() -> None:
    clock, given = Clock(), []

    class Slow(ScriptedModel):
        def complete(self, request: Request, *, deadline_s: float, on_text: object = None) -> Reply:
            given.append(deadline_s)
            clock.at += deadline_s
            raise ModelError(Trouble.TIMED_OUT, "too slow")

    asker = Asker(Slow([]), Asking(), now=clock, took_s=[90.0])
    for _ in range(3):
        asker.ask(PROMPT, Picks)
        clock.at += 3600.0
    assert given == [270.0, 810.0, 900.0]


def test_the_standing_survives_as_rows_of_calls() -> None:
    clock = Clock()
    past = [Tried(rung=Rung.TOOLS, outcome=Trouble.REFUSED, at=1.0)]
    past += [Tried(rung=Rung.SCHEMA, outcome=Outcome.UNUSABLE, at=clock.at - 5)] * 4
    model = ScriptedModel(_only(Rung.FENCED))
    asked = Asker(model, _settings(), past=past, now=clock).ask(PROMPT, Picks)
    assert (asked.rung, asked.n_calls) == (Rung.FENCED, 1)


class _Numbered:
    """A `ChatModel` with accounts: its replies have numbers."""

    name = "numbered"

    def __init__(self, inner: ScriptedModel) -> None:
        self._inner = inner

    def complete(self, request: Request, *, deadline_s: float, on_text: Callable[[str], None] | None = None) -> Reply:
        reply = self._inner.complete(request, deadline_s=deadline_s, on_text=on_text)
        return replace(reply, call_id=self._inner.n_calls)


def test_the_accounts_are_told_which_replies_were_of_no_use() -> None:
    accounts = Accounts()
    asker = Asker(_Numbered(ScriptedModel(["{}", '{"lr": 0.1}'])), _settings(Rung.SCHEMA), judged=accounts)
    assert asker.ask(PROMPT, Pick).value == Pick(lr=0.1)
    assert accounts.judged == [(1, Outcome.UNUSABLE, "lr: Field required")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[{"lr": 0.1, "why": "bold"}]', GOOD_VALUE),
        (json.dumps({"name": "answer", "arguments": json.loads(GOOD)}), GOOD_VALUE),
        (json.dumps({"answer": json.loads(GOOD)}), GOOD_VALUE),
        ('{"trials": [{"lr": "0.1", "why": "bold"}]}', GOOD_VALUE),
        (json.dumps([json.loads(GOOD)]), GOOD_VALUE),
    ],
)
def test_wrappings_that_models_add_are_taken_off(text: str, value: Picks) -> None:
    assert Asker(ScriptedModel([text]), _settings(Rung.SCHEMA)).ask(PROMPT, Picks).value == value


def test_a_call_of_a_tool_that_does_not_exist_is_no_answer() -> None:
    model = ScriptedModel(lambda r: called("run_shell", GOOD) if r.rung is Rung.TOOLS else "1")
    asked = Asker(model, _settings()).ask(PROMPT, Picks, MENU)
    assert (asked.rung, asked.value) == (Rung.MENU, Picks(trials=[Pick(lr=0.01)]))


def test_an_answer_in_text_where_a_call_was_asked_for_is_used_and_said_to_be_so() -> None:
    asked = Asker(ScriptedModel([GOOD]), _settings()).ask(PROMPT, Picks)
    assert (asked.value, asked.as_asked) == (GOOD_VALUE, False)


def test_an_answer_that_a_filter_kept_back_is_not_asked_for_again_in_the_same_form() -> None:
    model = ScriptedModel(lambda r: Said(finish=Finish.FILTERED) if r.rung is Rung.TOOLS else RIGHT[r.rung])
    asked = Asker(model, _settings()).ask(PROMPT, Picks)
    assert (asked.rung, asked.n_calls) == (Rung.SCHEMA, 2)


def test_a_model_that_wants_none_of_the_choices_is_taken_at_its_word() -> None:
    asked = Asker(ScriptedModel(["0"]), _settings(Rung.MENU)).ask(PROMPT, Picks, MENU)
    assert (asked.value, asked.why) == (Picks(), "")
    one = Asker(ScriptedModel(["0"]), _settings(Rung.MENU)).ask(PROMPT, Pick, MENU)
    assert (one.value, one.n_calls, one.why) == (None, 1, "it wants none of the choices")


def test_the_task_says_how_a_model_is_asked() -> None:
    model = Model(name="m", rung="fenced", call_seconds=7, max_tokens=99, temperature=0.5)
    assert asking(model) == Asking(call_s=7, max_tokens=99, temperature=0.5, steps=Steps(best=Rung.FENCED))

"""`nightlab model check` against endpoints of every kind: rungs, findings, exit codes, JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from model_endpoint import Answering, Play, completion, model_endpoint, refuses

from nightlab.__main__ import main

RIGHT = '{"name": "r3", "accuracy": 0.941}'
WRONG = '{"name": "r1", "accuracy": 0.712}'


def answers(form: str, *, text: str = RIGHT, otherwise: Play | None = None) -> Play:
    """Gives the text when it is asked in this form, or in any; in another form something else."""

    def play(answering: Answering) -> None:
        asked = answering.asked
        is_menu = "Choose from this list" in asked["messages"][-1]["content"]
        came = "tools" if "tools" in asked else "schema" if "response_format" in asked else "fenced"
        came = "menu" if is_menu else came
        if form not in ("any", came):
            (otherwise or says_whole("I can not tell."))(answering)
        elif came == "tools":
            call = {"id": "c1", "type": "function", "function": {"name": "answer", "arguments": text}}
            answering.whole(completion({"content": None, "tool_calls": [call]}, finish="tool_calls"))
        elif came == "menu":
            answering.whole(completion({"content": "3" if text == RIGHT else "1"}))
        else:
            answering.whole(completion({"content": f"```json\n{text}\n```" if came == "fenced" else text}))

    return play


def says_whole(text: str) -> Play:
    return lambda answering: answering.whole(completion({"content": text}))


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        main(["model", "check", *arguments, "--json"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return int(ended.value.code or 0), told


def of(play: Play, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], list[str]]:
    """Exit code, data, and codes of what was found."""
    with model_endpoint(play) as endpoint:
        code, told = check(capsys, "--base-url", endpoint.base_url, "--model", "tiny")
    return code, told["data"], [one["code"] for one in told["data"]["findings"]]


@pytest.fixture(autouse=True)
def _loopback_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTLAB_MODEL_CALLS", "loopback")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_an_endpoint_that_answers_right_reaches_the_best_rung(capsys: pytest.CaptureFixture[str]) -> None:
    code, data, found = of(answers("any"), capsys)
    assert (code, data["rung"]) == (0, "tools")
    assert [(one["rung"], one["came"], one["n_tries"]) for one in data["rungs"]] == [
        (rung, "right", 1) for rung in ("tools", "schema", "fenced", "menu")
    ]
    assert found[0] == "rung"
    assert "wrong_answer" not in found


@pytest.mark.parametrize(("form", "first"), [("schema", "rung"), ("fenced", "rung"), ("menu", "menu")])
def test_the_rung_that_is_reached_is_the_one_that_is_answered(
    form: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, data, found = of(answers(form), capsys)
    assert (code, data["rung"], found[0]) == (0, form, first)


def test_a_form_that_the_endpoint_refuses_is_not_tried_twice(capsys: pytest.CaptureFixture[str]) -> None:
    refused = refuses(400, {"error": {"message": "tools are not supported", "type": "invalid_request_error"}})
    code, data, _ = of(answers("fenced", otherwise=refused), capsys)
    assert (code, data["rung"]) == (0, "fenced")
    assert [(one["came"], one["n_tries"]) for one in data["rungs"][:2]] == [("refused", 1), ("refused", 1)]


def test_a_wrong_answer_in_the_right_form_counts_as_reached_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    code, data, found = of(answers("any", text=WRONG), capsys)
    assert (code, data["rung"], data["rungs"][0]["came"]) == (0, "tools", "wrong")
    assert "wrong_answer" in found
    assert "go on without" not in json.dumps(data)


def test_a_worse_rung_that_is_right_is_recommended(capsys: pytest.CaptureFixture[str]) -> None:
    _, data, _ = of(answers("tools", text=WRONG, otherwise=answers("schema")), capsys)
    (warning,) = [one for one in data["findings"] if one["code"] == "wrong_answer"]
    assert warning["what_to_do"] == "set model.rung: schema, by which it was right"


def test_a_model_without_a_usable_answer_on_any_rung_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    code, data, found = of(says_whole("Well, who knows."), capsys)
    assert (code, data["rung"], found[0]) == (1, "none", "no_rung")
    assert "a session would go on without this model" in data["findings"][0]["text"]


def test_nobody_there_is_told_with_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    with model_endpoint(says_whole("")) as endpoint:
        gone = endpoint.base_url
    code, told = check(capsys, "--base-url", gone, "--model", "tiny")
    assert (code, told["error"]["code"]) == (3, "unreachable")


def test_a_wrong_key_is_told_with_exit_code_2_after_one_rung(capsys: pytest.CaptureFixture[str]) -> None:
    code, data, found = of(refuses(401, {"error": {"message": "Incorrect API key"}}), capsys)
    assert (code, found, len(data["rungs"])) == (2, ["unauthorized"], 1)


def test_a_call_that_is_forbidden_here_is_not_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLAB_MODEL_CALLS", "forbid")
    with model_endpoint(answers("any")) as endpoint:
        code, told = check(capsys, "--base-url", endpoint.base_url, "--model", "tiny")
        assert endpoint.n_requests == 0
    assert (code, told["error"]["code"]) == (2, "forbidden")


@pytest.mark.parametrize(
    ("context", "n", "first"), [(4096, 1024, "context_too_small"), (4096, 512, None), (300_000, 1024, None)]
)
def test_a_task_is_checked_with_the_schema_of_its_space(
    context: int, n: int, first: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A context without room is refused with the task itself, before a call."""
    with model_endpoint(answers("any")) as endpoint:
        task = tmp_path / "task.yaml"
        task.write_text(
            f"""task: t
objective: {{metric: loss, direction: minimize}}
job: {{command: "true --lr {{{{lr}}}} --seed {{{{seed}}}}", environment: {{python: {sys.executable}}}}}
space: {{lr: {{type: float, low: 0.1, high: 1.0, default: 0.5}}}}
search: {{use: [sampler, model]}}
budgets: {{trials: 9}}
model: {{name: tiny, base_url: "{endpoint.base_url}", rung: schema, context_tokens: {context}, max_tokens: {n}}}
"""
        )
        code, told = check(capsys, "--task", str(task))
    if first is not None:
        assert code == 2
        assert "model.context_tokens" in told["error"]["message"]
        return
    assert (code, told["data"]["rung"]) == (0, "schema")
    (room,) = [one for one in told["data"]["findings"] if one["code"] == "context_unknown"]
    worst = 4_096 if context == 4_096 else 5_000 + 2 * n
    assert room["level"] == "fact"
    assert int(room["text"].split("the worst case is ")[1].split(" ")[0].replace(",", "")) >= worst
    assert "for the form of its answer" in room["text"]


def test_text_names_each_rung_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with model_endpoint(answers("any", text=WRONG)) as endpoint, pytest.raises(SystemExit) as ended:
        main(["model", "check", "--base-url", endpoint.base_url, "--model", "tiny"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "tools    wrong answer in a form that can be read" in out
    assert "warning: its answer by tool calls was wrong" in out


@pytest.mark.parametrize("arguments", [(), ("--task", "t.yaml", "--model", "m")])
def test_it_says_which_model_is_needed(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, told = check(capsys, *arguments)
    assert (code, told["error"]["path"]) == (2, "model" if not arguments else "task")

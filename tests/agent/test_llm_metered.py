"""A model with accounts: what is allowed, booked, kept, and never kept; prices, addresses and keys."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task

from agent.llm.archive import Archive
from agent.llm.chat import Message, ModelError, Outcome, Request, Role, Trouble, Usage
from agent.llm.counting import prompt_tokens
from agent.llm.metered import LEAST_ANSWER_TOKENS, MeteredModel
from agent.llm.opening import OPENAI, base_url_of, key_of
from agent.llm.prices import known_price
from agent.llm.redaction import HIDDEN
from agent.llm.rung import Rung
from agent.llm.scripted import Said, Scripted, ScriptedModel
from agent.spending import Spending
from agent.store.calls import CallBook, model_calls_of
from agent.store.fenced import FencedWriter
from agent.store.store import AgentStore
from agent.store.views import ModelCallView
from agent.task import Model, Prices

PRICE = Prices(prompt=1.0, completion=2.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> AgentStore:
    return AgentStore.open(tmp_path_factory.mktemp("home"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """A model of a new session, and what its calls leave."""

    model: MeteredModel
    inner: ScriptedModel
    store: AgentStore
    session_id: str
    archive: Path

    @property
    def calls(self) -> list[ModelCallView]:
        return model_calls_of(self.store, self.session_id)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.archive.read_text().splitlines()]


Opening = Callable[..., Metered]
Script = Callable[[Request], Scripted] | list[Scripted]


@pytest.fixture
def metered(store: AgentStore, tmp_path: Path) -> Opening:
    def opened(
        script: Callable[[Request], Scripted] | list[Scripted],
        *,
        secrets: frozenset[str] = frozenset(),
        **budgets: float,
    ) -> Metered:
        task = a_task(budgets={"trials": 6, **budgets})
        session_id = store.create_session(task).session_id
        writer = FencedWriter(store, session_id, store.claim(session_id, os.getpid()))
        inner, path = ScriptedModel(script), tmp_path / f"{session_id}.models.jsonl"
        model = MeteredModel(
            inner, Spending(task, CallBook(writer)), price=PRICE, archive=Archive(path, secrets), secrets=secrets
        )
        return Metered(model=model, inner=inner, store=store, session_id=session_id, archive=path)

    return opened


def asking(text: str = "hello", **changes: Any) -> Request:
    messages = (Message(role=Role.USER, text=text),)
    return Request(messages=messages, purpose="ideas", **{"prompt_version": "v1", "rung": Rung.SCHEMA, **changes})


def test_a_call_leaves_a_row_a_line_and_its_price(metered: Opening) -> None:
    told = Usage(prompt_tokens=20, completion_tokens=5)
    world = metered([Said(text="good day", usage=told, took_s=3.0)], tokens=5000)
    reply = world.model.complete(asking(), deadline_s=10)
    (call,) = world.calls
    assert reply.call_id == call.call_id
    assert (call.purpose, call.prompt_version, call.rung, call.outcome) == ("ideas", "v1", "schema", "used")
    assert (call.prompt_tokens, call.completion_tokens, call.took_s) == (20, 5, 3.0)
    assert call.cost_usd == pytest.approx(30e-6)
    assert world.store.session(world.session_id).tokens == 25
    (line,) = world.lines
    assert (line["call_id"], line["request"]["messages"][0]["text"]) == (call.call_id, "hello")
    assert line["reply"]["text"] == "good day"
    assert stat.S_IMODE(world.archive.stat().st_mode) == 0o600


def test_a_call_that_the_budget_has_no_room_for_is_not_made(metered: Opening) -> None:
    world = metered(["never"], tokens=LEAST_ANSWER_TOKENS)
    with pytest.raises(ModelError) as caught:
        world.model.complete(asking(), deadline_s=10)
    assert caught.value.trouble is Trouble.OVER_BUDGET
    assert "budgets.tokens: 0 of 256 are used, and this call may need" in str(caught.value)
    assert (world.inner.n_calls, [call.outcome for call in world.calls]) == (0, ["over_budget"])


def test_an_answer_may_be_as_long_as_the_budget_has_room_for(metered: Opening) -> None:
    estimate = prompt_tokens(asking())
    world = metered(["short"], tokens=estimate + 300)
    world.model.complete(asking(max_tokens=4000), deadline_s=10)
    assert world.inner.requests[0].max_tokens == 300


def test_what_the_endpoint_counts_more_than_was_estimated_is_expected_from_then_on(metered: Opening) -> None:
    estimate = prompt_tokens(asking())
    told = Usage(prompt_tokens=estimate * 3, completion_tokens=1)
    world = metered([Said(text="a", usage=told), Said(text="b", usage=told)], tokens=estimate * 6 + 300)
    world.model.complete(asking(), deadline_s=10)
    world.model.complete(asking(max_tokens=4000), deadline_s=10)
    assert world.inner.requests[1].max_tokens == 299


@pytest.mark.parametrize(("trouble", "is_paid"), [(t, t in ("timed_out", "garbled")) for t in Trouble])
def test_what_may_have_worked_is_paid_and_what_was_refused_is_not(
    metered: Opening, trouble: Trouble, is_paid: bool
) -> None:
    world = metered([ModelError(trouble, "no answer")], tokens=5000)
    with pytest.raises(ModelError):
        world.model.complete(asking(max_tokens=500), deadline_s=10)
    (call,) = world.calls
    assert (call.outcome, call.note) == (trouble.value, "no answer")
    assert world.store.session(world.session_id).tokens == (prompt_tokens(asking()) + 500 if is_paid else 0)
    assert world.lines[0]["reply"]["trouble"] == trouble.value


def test_a_reply_that_could_not_be_used_is_told_by_its_row(metered: Opening) -> None:
    world = metered(["what?"])
    reply = world.model.complete(asking(), deadline_s=10)
    assert reply.call_id is not None
    world.model.judge(reply.call_id, Outcome.UNUSABLE, "it is no JSON")
    assert [(call.outcome, call.note) for call in world.calls] == [("unusable", "it is no JSON")]


def test_secrets_are_neither_sent_nor_kept(metered: Opening) -> None:
    secret, shaped = "correct-horse-battery", "hf_abcdefghijklmnopqrstuvwxyz"
    world = metered([f"{secret} {shaped}"], secrets=frozenset({secret}))
    world.model.complete(asking(f"log: {secret} {shaped}"), deadline_s=10)
    assert world.inner.requests[0].messages[0].text == f"log: {HIDDEN} {HIDDEN}"
    kept = world.archive.read_text()
    assert secret not in kept
    assert shaped not in kept


def test_the_archive_is_bounded_and_a_text_without_end_is_cut(
    metered: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.log_files.LOG_LIMIT_BYTES", 150_000)
    world = metered(lambda request: "x" * 2**18)
    for _ in range(5):
        world.model.complete(asking(), deadline_s=10)
    sizes = [path.stat().st_size for path in world.archive.parent.glob("*.models.jsonl*")]
    assert len(sizes) == 2
    assert sum(sizes) < 450_000
    assert "characters ...]" in world.lines[0]["reply"]["text"]


def test_an_archive_that_can_not_be_written_is_told_by_the_row_and_stops_nothing(metered: Opening) -> None:
    world = metered(["good day"])
    world.archive.mkdir()
    assert world.model.complete(asking(), deadline_s=10).text == "good day"
    assert world.calls[0].note == "not archived: Is a directory"


def test_a_model_of_a_session_that_another_process_works_on_is_not_asked(metered: Opening) -> None:
    world = metered(["never"])
    world.store.claim(world.session_id, os.getpid())
    with pytest.raises(ModelError) as caught:
        world.model.complete(asking(), deadline_s=10)
    assert (caught.value.trouble, world.inner.n_calls) == (Trouble.FORBIDDEN, 0)


@pytest.mark.parametrize(
    ("model", "base_url", "price"),
    [
        ("gpt-4.1", OPENAI, (2.0, 8.0)),
        ("gpt-4.1-mini", OPENAI, (0.4, 1.6)),
        ("gpt-4.1-mini-2025-04-14", OPENAI, (0.4, 1.6)),
        ("gpt-4.1-maxi", OPENAI, None),
        ("gpt-4.1", "http://127.0.0.1:8080/v1", None),
        ("models/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/openai", (0.3, 2.5)),
        ("claude-haiku-4-5-20251001", "https://api.anthropic.com/v1/", (1.0, 5.0)),
        ("", OPENAI, None),
    ],
)
def test_a_price_is_that_of_the_longest_known_name_at_its_vendor(
    model: str, base_url: str, price: tuple[float, float] | None
) -> None:
    found = known_price(model, base_url)
    assert (None if found is None else (found.prompt, found.completion)) == price


def test_the_file_goes_before_the_variable_and_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    environ = {"LAB_KEY": "from-variable"}
    model = Model(name="tiny", key_env="LAB_KEY", key_file=str(file))
    assert key_of(model, "http://h/v1", environ) == "from-file"
    assert key_of(model.model_copy(update={"key_file": None}), "http://h/v1", environ) == "from-variable"
    assert key_of(Model(name="tiny"), "http://h/v1", environ) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "can not be read"), (b"two words", "holds no key"), (b"\xff", "it is no text"), (b"", "no key")],
)
def test_a_key_file_that_is_none_is_told(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ModelError, match=said) as caught:
        key_of(Model(name="tiny", key_file=str(file)), OPENAI, {})
    assert caught.value.trouble is Trouble.UNAUTHORIZED


def test_openai_without_a_key_is_told_before_any_call() -> None:
    with pytest.raises(ModelError, match="set OPENAI_API_KEY, or name a file with"):
        key_of(Model(name="tiny"), OPENAI, {})


def test_the_address_is_that_of_the_task_then_of_the_environment_then_openai() -> None:
    environ = {"OPENAI_BASE_URL": "http://there/v1"}
    assert base_url_of(Model(name="tiny", base_url="http://here/v1"), environ) == "http://here/v1"
    assert base_url_of(Model(name="tiny"), environ) == "http://there/v1"
    assert base_url_of(Model(name="tiny"), {}) == OPENAI
    with pytest.raises(ModelError, match="is no address"):
        base_url_of(Model(name="tiny", base_url="localhost:8080"), {})

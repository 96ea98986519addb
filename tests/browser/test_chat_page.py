"""The chat in a browser: beside a session and alone, the whole approval path, a stream that breaks, hostile text."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_pages import AgentPage, Opens, Shoots, Watch
from chat_stores import RUN, long, told
from model_endpoint import Answering, Play, chunk, model_endpoint
from playwright.sync_api import Locator, Page, expect

from agent.chat.entry import EntryKind, Verdict
from agent.store.chats import ChatStore
from agent.store.views import SessionState

PHONE = {"width": 390, "height": 800}
DOWN = "Failed to load resource"
"""What the browser's own console says of a service that is away."""


def say(page: Page, text: str) -> None:
    box = page.locator("[data-chat-input]")
    box.fill(text)
    box.press("Enter")


def entries(page: Page) -> Locator:
    return page.get_by_role("log")


def kinds(agent_page: AgentPage, chat_id: str) -> list[str]:
    return [entry.kind.value for entry in ChatStore(agent_page.store).entries(chat_id)]


def test_a_command_beside_a_session_asks_and_does_it_once_approved(
    open_page: Opens, agent_page: AgentPage, shot: Shoots
) -> None:
    page = open_page("/sessions/s1")
    page.get_by_role("button", name="Chat").click()
    say(page, "/stop")
    asked = page.get_by_role("region", name="Question")
    expect(asked).to_contain_text("stop")
    expect(asked.get_by_role("timer")).to_contain_text("left")
    expect(page).to_have_url(f"{agent_page.url}/sessions/s1?chat=c1")
    assert agent_page.store.session("s1").state is SessionState.RUNNING
    asked.get_by_label("Note").fill("it has plateaued")
    shot(page, "chat-beside")
    asked.get_by_role("button", name="Approve").click()
    expect(asked).to_contain_text("Approved by")
    expect(asked).to_contain_text("it has plateaued")
    expect(page.locator(".chat-head .chip")).to_have_count(0)
    assert agent_page.store.session("s1").state is not SessionState.RUNNING


def test_what_is_denied_is_not_done(open_page: Opens, agent_page: AgentPage) -> None:
    page = open_page("/sessions/s1?chat=new")
    say(page, "/stop")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("region", name="Question")).to_contain_text("Denied by")
    expect(page.locator(".chat-head .chip")).to_have_count(0)
    assert agent_page.store.session("s1").state is SessionState.RUNNING


def test_a_question_tells_its_cost_and_that_somebody_else_answered(
    open_page: Opens, agent_page: AgentPage, watch: Watch, shot: Shoots
) -> None:
    chat_id = told(agent_page.store, strange="")
    page = open_page(f"/chats/{chat_id}", viewport={"width": 1200, "height": 1300})
    page.get_by_text("compare_trials").click()
    expect(page.locator(".uplot")).to_be_visible()
    asked = page.get_by_role("region", name="Question")
    for words in ("2.5 h", "$12.5", "j7", "night sweep of bob", "14 min", "preempts others"):
        expect(asked).to_contain_text(words)
    asked.scroll_into_view_if_needed()
    shot(page, "web-chat")
    number = ChatStore(agent_page.store).chat(chat_id).n_entries
    ChatStore(agent_page.store).answer(chat_id, number, Verdict.DENY, by="bob", note="not tonight")
    watch.allowed.append("409")
    asked.get_by_role("button", name="Approve").click()
    expect(asked.get_by_text("answered before")).to_be_visible()
    expect(asked).not_to_contain_text("Approved")


def test_a_question_whose_time_is_over_can_not_be_answered(open_page: Opens, agent_page: AgentPage) -> None:
    chat_id = told(agent_page.store, asks_for_s=2.0)
    page = open_page(f"/chats/{chat_id}")
    asked = page.get_by_role("region", name="Question")
    expect(asked).to_contain_text("Nobody answered in time")
    expect(asked.get_by_role("button", name="Approve")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_text_is_text_and_ids_lead_on(
    open_page: Opens, agent_page: AgentPage, shot: Shoots, scheme: str
) -> None:
    chat_id = told(agent_page.store)
    page = open_page(f"/chats/{chat_id}", color_scheme=scheme)
    page.get_by_text("compare_trials").click()
    expect(page.locator(".uplot")).to_be_visible()
    shot(page, f"chat-{scheme}")
    assert page.title() == "nightlab"
    assert page.locator("main img, main script").count() == 0
    shown = entries(page).inner_text()
    assert "<script>document.title=2</script> red" in shown
    assert not {"\x1b", "\u202e"} & set(shown)
    expect(entries(page).get_by_text("s9-t9 not found")).to_be_visible()
    expect(page.locator(".markdown td")).to_have_text(["s1-t1", "0.412", "s1-t2", "0.398"])
    expect(page.get_by_role("link", name="01234567")).to_have_attribute("href", f"/runs/{RUN}")
    page.locator(".markdown").get_by_role("link", name="s1-t2").first.click()
    expect(page).to_have_url(f"{agent_page.url}/trials/s1-t2")


def test_a_phone_shows_it_without_scrolling_sideways(open_page: Opens, agent_page: AgentPage, shot: Shoots) -> None:
    chat_id = told(agent_page.store)
    for path in (f"/chats/{chat_id}", f"/sessions/s1?chat={chat_id}", "/"):
        page = open_page(path, viewport=PHONE)
        expect(page.get_by_text("is s1-t2 really better").locator("visible=true").first).to_be_visible()
        shot(page, f"chat-phone-{path.strip('/').partition('/')[0] or 'home'}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_page_catches_up_after_a_restart_and_shows_nothing_twice(
    open_page: Opens, agent_page: AgentPage, watch: Watch
) -> None:
    watch.allowed += [DOWN, "ERR_"]
    chat_id = long(agent_page.store, 2)
    page = open_page(f"/chats/{chat_id}")
    expect(entries(page).locator("article")).to_have_count(4)
    agent_page.stop()
    expect(page.get_by_text("what is missed")).to_be_visible()
    ChatStore(agent_page.store).say(chat_id, "said meanwhile", by="bob")
    agent_page.start()
    expect(entries(page).get_by_text("said meanwhile")).to_have_count(1)
    expect(entries(page).get_by_text("went down in the middle of this turn")).to_be_visible()
    expect(page.get_by_text("what is missed")).to_have_count(0)
    expect(entries(page).locator("article")).to_have_count(5)
    say(page, "/sessions")
    expect(entries(page).locator("details table")).to_contain_text("s1")


def test_a_page_that_nobody_sees_keeps_no_connection_and_catches_up(open_page: Opens, agent_page: AgentPage) -> None:
    chat_id = long(agent_page.store, 1)
    page = open_page(None)
    page.clock.install()
    with page.expect_response(lambda response: f"/chats/{chat_id}/stream" in response.url):
        page.goto(agent_page.link(f"/chats/{chat_id}"))
    expect(entries(page).locator("article")).to_have_count(2)
    expect(page.get_by_role("status")).to_have_text("live")
    sight(page, is_hidden=True)
    page.clock.fast_forward("00:11")
    expect(page.get_by_role("status")).to_have_text("reconnecting…")
    ChatStore(agent_page.store).say(chat_id, "said meanwhile", by="bob")
    page.clock.fast_forward("00:30")
    expect(entries(page).get_by_text("said meanwhile")).to_have_count(0)
    sight(page, is_hidden=False)
    page.clock.fast_forward("00:01")
    expect(entries(page).get_by_text("said meanwhile")).to_have_count(1)
    expect(page.get_by_role("status")).to_have_text("live")


def sight(page: Page, *, is_hidden: bool) -> None:
    page.evaluate(
        """(isHidden) => {
            Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )


def test_a_long_chat_begins_at_its_end_and_loads_what_is_older(open_page: Opens, agent_page: AgentPage) -> None:
    page = open_page(f"/chats/{long(agent_page.store, 250)}")
    expect(entries(page).get_by_text("answer 250")).to_be_in_viewport()
    assert entries(page).locator("article").count() == 60
    page.get_by_role("button", name="Older entries").click()
    expect(entries(page).locator("article")).to_have_count(120)
    expect(entries(page).get_by_text("answer 221")).to_be_in_viewport()


def test_commands_are_completed_by_the_keyboard(open_page: Opens) -> None:
    page = open_page("/")
    expect(page.get_by_role("heading", name="Chats")).to_be_visible()
    page.keyboard.press("/")
    box = page.locator("[data-chat-input]")
    expect(box).to_be_focused()
    page.keyboard.type("/s")
    offered = page.get_by_role("option")
    expect(offered.first).to_have_attribute("aria-selected", "true")
    names = offered.all_inner_texts()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert box.input_value().strip() == names[1].split()[0]
    box.fill("/sess")
    page.keyboard.press("Escape")
    expect(offered).to_have_count(0)
    box.fill("/sessions")
    page.keyboard.press("Enter")
    expect(entries(page).locator("details table")).to_contain_text("s1")


def test_help_lists_the_commands_one_a_line(open_page: Opens, shot: Shoots) -> None:
    page = open_page("/chats/new")
    say(page, "/help")
    expect(entries(page).locator(".outcome")).to_contain_text("/best")
    shot(page, "chat-help")
    lines = [line for line in entries(page).inner_text().splitlines() if line.startswith("/")]
    assert {line.split()[0].rstrip(":") for line in lines} > {"/best", "/jobs", "/stop"}


def test_chats_are_found_by_their_words(open_page: Opens, agent_page: AgentPage) -> None:
    told(agent_page.store, asks_for_s=None)
    long(agent_page.store, 1)
    page = open_page("/")
    threads = page.get_by_role("navigation", name="Chats")
    expect(threads.get_by_role("link")).to_have_count(3)
    threads.get_by_role("searchbox").fill("five times")
    expect(threads.locator(".thread")).to_have_count(1)
    threads.locator(".thread").click()
    expect(page.get_by_role("alert")).to_contain_text("the endpoint is down")


def test_a_reader_sees_a_question_and_can_not_answer_it(open_page: Opens, agent_page: AgentPage) -> None:
    page = open_page(f"/chats/{told(agent_page.store)}", is_reader=True)
    expect(page.get_by_text("This link may read only")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.locator("[data-chat-input]")).to_have_count(0)


def test_without_a_model_it_says_how_to_set_one_up(open_page: Opens) -> None:
    page = open_page("/chats/new")
    say(page, "which is best?")
    expect(page.get_by_role("alert")).to_contain_text("No language model is set up")
    expect(page.locator("[data-chat-input]")).to_be_enabled()


@pytest.fixture
def held(agent_page: AgentPage) -> Iterator[threading.Event]:
    """A model whose reply stops half way until the event is set."""
    going_on = threading.Event()
    with model_endpoint(held_up(going_on)) as endpoint:
        write_settings(agent_page.home, endpoint.base_url)
        yield going_on
        going_on.set()


def held_up(going_on: threading.Event) -> Play:
    def play(answering: Answering) -> None:
        answering.begin_stream()
        answering.wfile.write(chunk({"content": "the **best** is "}))
        answering.wfile.flush()
        going_on.wait(20)
        answering.wfile.write(chunk({"content": "s1"}))
        answering.wfile.write(chunk({}, "stop") + b"data: [DONE]\n\n")

    return play


def write_settings(home: Path, base_url: str) -> None:
    (home / "chat.yaml").write_text(f"model: {{name: served-model, base_url: {base_url}}}\n", encoding="utf-8")


def test_a_reply_is_seen_as_it_is_written(held: threading.Event, open_page: Opens, shot: Shoots) -> None:
    page = open_page("/chats/new")
    say(page, "which is best?")
    draft = page.get_by_role("article", name="Reply that is being written")
    expect(draft).to_contain_text("the best is")
    expect(draft.locator("strong", has_text="best")).to_be_visible()
    shot(page, "chat-streaming")
    held.set()
    expect(page.get_by_role("article", name="Reply by")).to_contain_text("the best is s1")
    expect(draft).to_have_count(0)
    expect(entries(page).get_by_role("link", name="s1")).to_have_attribute("href", "/sessions/s1")


def test_a_turn_is_stopped_by_a_person(held: threading.Event, open_page: Opens, agent_page: AgentPage) -> None:
    page = open_page("/chats/new")
    say(page, "which is best?")
    expect(page.get_by_role("article", name="Reply that is being written")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(entries(page).get_by_text("stopped it")).to_be_visible()
    expect(page.get_by_role("article", name="Reply that is being written")).to_have_count(0)
    assert kinds(agent_page, "c1")[-1] == EntryKind.STOPPED

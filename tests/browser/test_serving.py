"""The page as it is served: admitted by tokens, deep links, a strict policy that holds, small and quick."""

from __future__ import annotations

import gzip
import re

import pytest
from agent_pages import AgentPage, Opens, Shoots, Watch
from playwright.sync_api import Page, expect

from agent.web.page_files import ASSETS, BUILT, INDEX

MOST_BYTES = 150_000


def test_the_link_admits_and_its_token_leaves_the_address(page: Page, agent_page: AgentPage, shot: Shoots) -> None:
    expect(page.get_by_text("s1", exact=True).first).to_be_visible()
    shot(page, "home")
    assert page.url == f"{agent_page.url}/"
    page.reload()
    expect(page.get_by_text("s1", exact=True).first).to_be_visible()


@pytest.mark.parametrize("path", ["/sessions/s1", "/trials/s1-t1", "/nothing/here"])
def test_an_address_opens_what_it_names_for_who_was_admitted_before(open_page: Opens, path: str) -> None:
    page = open_page("/")
    expect(page.get_by_text("s1", exact=True).first).to_be_visible()
    url = page.url.rstrip("/") + path
    answer = page.goto(url)
    assert answer is not None
    assert answer.status == 200
    assert page.url == url
    named = "There is nothing at this address" if path == "/nothing/here" else path.rpartition("/")[2]
    expect(page.get_by_text(named).first).to_be_visible()


@pytest.mark.parametrize("token", [None, "wrong"])
def test_who_has_no_token_of_this_service_is_told_how_to_get_one(
    open_page: Opens, agent_page: AgentPage, watch: Watch, token: str | None
) -> None:
    watch.allowed.append("401")
    page = open_page(None)
    page.goto(agent_page.url + ("/" if token is None else f"/#token={token}"))
    expect(page.get_by_text("nightlab web").first).to_be_visible()
    page.get_by_label("Token").fill(agent_page.keys.owner_token)
    page.get_by_label("Token").press("Enter")
    expect(page.get_by_text("s1", exact=True).first).to_be_visible()


def test_a_reader_reads_and_can_not_write(open_page: Opens, watch: Watch) -> None:
    watch.allowed.append("403")
    page = open_page("/", is_reader=True)
    expect(page.get_by_text("s1", exact=True).first).to_be_visible()
    status = page.evaluate(
        """async () => {
            const headers = {
                Authorization: "Bearer " + localStorage.getItem("nightlab-token"), "Content-Type": "application/json",
            };
            return (await fetch("/v1/sessions/s1/stop", { method: "POST", headers, body: "{}" })).status;
        }"""
    )
    assert status == 403


@pytest.mark.parametrize(
    ("what", "script"),
    [
        (
            "an inline script",
            "const s = document.createElement('script'); s.text = 'window.ran = 1'; document.body.append(s)",
        ),
        ("a script made of text", "setTimeout('window.ran = 1', 0)"),
        ("another host", "fetch('http://127.0.0.1:9/').catch(() => {})"),
        (
            "an image of another host",
            "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)",
        ),
    ],
)
def test_the_policy_keeps_out(page: Page, watch: Watch, what: str, script: str) -> None:
    expect(page.get_by_text("s1", exact=True).first).to_be_visible()
    watch.check()
    page.evaluate(
        """() => new Promise((over) => {
            document.addEventListener("securitypolicyviolation", over, { once: true });
            setTimeout(over, 2000);
            SCRIPT;
        })""".replace("SCRIPT", script)
    )
    assert page.evaluate("window.ran") is None, what
    assert any("Content Security Policy" in one for one in watch.faults), what
    watch.faults.clear()


def test_the_first_screen_is_small(agent_page: AgentPage) -> None:
    index = (BUILT / INDEX).read_text()
    assets = re.findall(r'(?:src|href)="/([^"]+)"', index)
    assert any(one.startswith(ASSETS) for one in assets)
    sizes = {one: len(gzip.compress((BUILT / one).read_bytes())) for one in assets}
    assert sum(sizes.values()) + len(index) < MOST_BYTES, sizes


def test_what_a_session_says_is_shown_without_loading_again(page: Page, agent_page: AgentPage) -> None:
    expect(page.get_by_role("status").first).to_have_text("live")
    agent_page.store.request_stop("s1", by="ann")
    expect(page.get_by_text("stopping").first).to_be_visible()


def test_a_page_outlives_a_restart_of_the_service(page: Page, agent_page: AgentPage, watch: Watch) -> None:
    watch.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
    expect(page.get_by_role("status").first).to_have_text("live")
    agent_page.stop()
    expect(page.get_by_role("status").first).to_have_text("reconnecting…")
    agent_page.store.request_stop("s1", by="ann")
    agent_page.start()
    expect(page.get_by_role("status").first).to_have_text("live")
    expect(page.get_by_text("stopping").first).to_be_visible()

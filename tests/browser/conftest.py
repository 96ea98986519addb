"""The real page in a real browser: the agent's API over a filled home, and Chromium, which may speak to it alone.

Everything here is skipped where Chromium or the built page is missing. Screenshots go to `NIGHTLAB_SCREENSHOTS`, or
to the test's own folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_pages import AgentPage, Opens, Shoots, Watch
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from agent.store.store import AgentStore
from agent.web.keys import open_keys
from agent.web.page_files import BUILT, INDEX
from agent.web.serving import ApiServer

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("agent", "web")]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 10_000
DESK = {"width": 1280, "height": 800}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    missing = None
    if CHROMIUM is None:
        missing = "no Chromium here; on Debian: apt install chromium"
    elif not (BUILT / INDEX).is_file():
        missing = "the web page is not built; make web"
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)
            if missing is not None:
                item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture
def agent_page(tmp_path: Path) -> Iterator[AgentPage]:
    """Over a home with one running session, `s1`, as `agent.report.sample` makes it up."""
    from session_stores import filled

    home = tmp_path / "home"
    store = AgentStore.open(home)
    filled(store)
    server = ApiServer(home)
    server.start()
    served = AgentPage(home=home, store=store, keys=open_keys(home), server=server)
    yield served
    served.stop()
    store.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


@pytest.fixture
def watch(agent_page: AgentPage) -> Iterator[Watch]:
    made = Watch(agent_page.url)
    yield made
    made.check()


@pytest.fixture
def open_page(browser: Browser, agent_page: AgentPage, watch: Watch) -> Iterator[Opens]:
    """`open_page("/sessions/s1", is_reader=False, **context)`: a page in a browser profile of its own."""
    contexts: list[BrowserContext] = []

    def opened(path: str | None = "/", *, is_reader: bool = False, **given: Any) -> Page:
        context = browser.new_context(**({"viewport": DESK} | given))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("request", watch.request)
        page.on("console", watch.console)
        page.on("pageerror", watch.error)
        if path is not None:
            page.goto(agent_page.link(path, is_reader=is_reader))
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: Opens) -> Page:
    """The owner's, at the list of sessions."""
    return open_page("/")


@pytest.fixture
def shot(tmp_path: Path) -> Shoots:
    """Takes a screenshot, by its name; gives the file."""
    folder = Path(os.environ.get("NIGHTLAB_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def taken(page: Page, name: str) -> Path:
        file = folder / f"{name}.png"
        page.screenshot(path=file)
        return file

    return taken

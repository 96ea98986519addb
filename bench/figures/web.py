"""Figures of the web page, in Chromium on this machine: until it can be used, and until an event is seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from queue import Empty, Queue
from typing import TYPE_CHECKING

import httpx
from httpx_sse import connect_sse

from bench.agent_service import Service, agent_service, browser
from bench.figure import Figure, median_of, quartiles

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WITHIN_S = 10.0
SEEN = """(text) => new Promise((seen) => {
    const look = () => {
        if (!document.body.textContent.includes(text)) return false;
        seen(Date.now());
        return true;
    };
    if (look()) return;
    const watch = new MutationObserver(() => look() && watch.disconnect());
    watch.observe(document.body, { childList: true, characterData: true, subtree: true });
})"""


def interactive_ms(quick: bool) -> Figure:
    """A session's address until its data stand in the page, in a fresh profile; beside it, one small file of ours."""
    n = 10 if quick else 40
    with agent_service() as service, browser() as started:
        service.say("the last line")
        pages, floors = [], []
        for _ in range(n + 1):
            floors.append(_loaded_ms(started, f"{service.url}/icon.svg", None))
            pages.append(_loaded_ms(started, f"{service.url}/sessions/s1#token={service.token}", "the last line"))
    pages, floors = pages[1:], floors[1:]
    return Figure(
        id="web.interactive_ms",
        value=median_of(pages),
        unit="ms",
        control=median_of(floors),
        n=n,
        spread=quartiles(pages),
        note=f"fresh profile each time, loopback; p95 {_p95(pages):.0f} ms; control: an icon of 300 bytes instead",
    )


def event_p95_ms(quick: bool) -> Figure:
    """A session's line durable in the store until it stands in the page; beside it, until a stream's reader has it."""
    n = 60 if quick else 300
    with agent_service() as service, browser() as started:
        page = started.new_page()
        _loaded(page, f"{service.url}/sessions/s1#token={service.token}", "s1")
        page.get_by_text("live", exact=True).wait_for()
        seen = [_seen_ms(page, service, f"line number {i} of the page;") for i in range(n)]
        page.close()
        read = _read_ms(service, n)
    return Figure(
        id="web.event_p95_ms",
        value=_p95(seen),
        unit="ms",
        control=_p95(read),
        n=n,
        spread=quartiles(seen),
        note=f"median {median_of(seen):.0f} ms; control: a bare reader of the stream, median {median_of(read):.0f} ms",
    )


def _loaded_ms(started: Browser, url: str, text: str | None) -> float:
    context = started.new_context()
    page = context.new_page()
    begun = time.perf_counter()
    _loaded(page, url, text)
    took = (time.perf_counter() - begun) * 1000
    context.close()
    return took


def _loaded(page: Page, url: str, text: str | None) -> None:
    page.goto(url)
    if text is not None:
        page.evaluate(SEEN, text)


def _seen_ms(page: Page, service: Service, text: str) -> float:
    page.evaluate(f"(text) => {{ window.seen = ({SEEN})(text); }}", text)
    service.say(text)
    durable_at = time.time()
    _rest()
    return float(page.evaluate("window.seen")) - durable_at * 1000


def _read_ms(service: Service, n: int) -> list[float]:
    came: Queue[tuple[str, float]] = Queue()
    headers, is_over = {"Authorization": f"Bearer {service.token}"}, threading.Event()

    def read() -> None:
        with (
            httpx.Client(headers=headers, timeout=WITHIN_S) as client,
            connect_sse(client, "GET", f"{service.url}/v1/events?after=0") as source,
        ):
            for event in source.iter_sse():
                came.put((event.data, time.time()))
                if is_over.is_set():
                    return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    took = []
    _came_at(came, "page;")  # it is connected
    for i in range(n):
        text = f"line number {i} of the reader;"
        service.say(text)
        durable_at = time.time()
        took.append((_came_at(came, text) - durable_at) * 1000)
        _rest()
    is_over.set()
    service.say("over")
    reader.join(WITHIN_S)
    return took


def _came_at(came: Queue[tuple[str, float]], text: str) -> float:
    try:
        while True:
            data, at = came.get(timeout=WITHIN_S)
            if text in data:
                return at
    except Empty:
        raise RuntimeError(f"{text!r} did not come within {WITHIN_S:g} s") from None


def _rest() -> None:
    """Lines come at any time, not in step with how often the service looks."""
    time.sleep(0.05 + (time.time_ns() % 97) / 1000)


def _p95(samples: Sequence[float]) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]

"""The page's files over the real app: what is served without a token, and what no path reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.store.store import AgentStore
from agent.web.app import create_app
from agent.web.keys import Keys
from agent.web.page_files import PageFiles
from agent.web.safe_headers import SAFE_HEADERS

SCRIPT = "const sessions = [];\n" * 200
Ask = Callable[..., httpx.Response]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>nightlab</title>")
    (folder / "assets" / "index-a1b2.js").write_text(SCRIPT)
    (folder / "icon.svg").write_text("<svg/>")
    (tmp_path / "agent-token").write_text("secret")
    (folder / "way-out").symlink_to(tmp_path / "agent-token")
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentStore]:
    opened = AgentStore.open(tmp_path_factory.mktemp("home"))
    yield opened
    opened.close()


@pytest.fixture
def ask(store: AgentStore, built: Path) -> Ask:
    app = create_app(store, Keys(owner_token="owner", reader_token="reader"), page=built)

    def asked(path: str, method: str = "GET", **headers: str) -> httpx.Response:
        async def made() -> httpx.Response:
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7072") as client:
                return await client.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})

        return asyncio.run(made())

    return asked


@pytest.mark.parametrize("path", ["/", "/index.html", "/sessions/s1", "/trials/s1-t3", "/chats/c1", "//v1/sessions"])
def test_every_path_of_people_is_the_page_and_needs_no_token(ask: Ask, path: str) -> None:
    answer = ask(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<title>nightlab" in answer.text
    assert answer.headers["cache-control"] == "no-cache"


def test_assets_are_kept_for_ever_and_compressed_for_who_can_read_that(ask: Ask) -> None:
    plain, small = ask("/assets/index-a1b2.js", accept_encoding="identity"), ask("/assets/index-a1b2.js")
    assert plain.text == small.text == SCRIPT
    assert "immutable" in small.headers["cache-control"]
    assert small.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 10
    assert small.headers["content-type"].startswith("text/javascript")


def test_an_asset_that_is_gone_is_missing_and_never_the_page(ask: Ask) -> None:
    answer = ask("/assets/index-old.js")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_path")
    assert "load the page again" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/way-out",
        "/..%2fagent-token",
        "/assets/..%2f..%2fagent-token",
        "/%00",
        "/" + "a" * 5000,
        "/%2e%2e/agent-token",
        "/assets/%5c..%5cagent-token",
    ],
)
def test_no_path_leads_out_of_the_page(ask: Ask, path: str) -> None:
    assert "secret" not in ask(path).text
    assert ask(path).status_code in (200, 404)


@pytest.mark.parametrize("path", ["/v1", "/v1/sessions", "/v1/nowhere", "/v1%2fsessions", "/v1/../v1/sessions"])
def test_the_api_keeps_its_guard(ask: Ask, path: str) -> None:
    assert ask(path).status_code == 401


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({"host": "evil.example"}, "host_not_allowed"), ({"origin": "http://evil.example"}, "origin_not_allowed")],
)
def test_the_page_too_is_only_told_to_this_machine(ask: Ask, headers: dict[str, Any], expected: str) -> None:
    answer = ask("/", **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, expected)


def test_nothing_is_written_to_the_page(ask: Ask) -> None:
    assert ask("/", "POST").status_code == 401
    answer = ask("/", "POST", authorization="Bearer owner")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/assets/index-a1b2.js", "/assets/gone.js", "/v1/health", "/v1/sessions"])
def test_every_answer_has_the_safe_headers(ask: Ask, path: str) -> None:
    answer = ask(path)
    assert {name: answer.headers.get(name) for name in SAFE_HEADERS} == SAFE_HEADERS
    assert "cache-control" in answer.headers


def test_a_bug_is_answered_with_the_safe_headers_too(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(PageFiles, "_answer", broken)
    answer = ask("/")
    assert answer.status_code == 500
    assert {name: answer.headers.get(name) for name in SAFE_HEADERS} == SAFE_HEADERS


def test_without_the_built_page_it_says_how_to_build_it(ask: Ask, built: Path) -> None:
    (built / "index.html").unlink()
    for path in ("/", "/sessions/s1"):
        answer = ask(path)
        assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert "make web" in answer.text
    assert ask("/v1/health").status_code == 200


def test_a_page_built_anew_is_served_without_a_restart(ask: Ask, built: Path) -> None:
    assert "nightlab" in ask("/").text
    (built / "index.html").write_text("<!doctype html><title>anew</title>")
    assert "anew" in ask("/").text

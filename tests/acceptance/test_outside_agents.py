"""Outside agents as they come: a child process on standard input, and a client over HTTP with a token."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from agent.store.store import AgentStore
from agent.task import Task

pytestmark = pytest.mark.acceptance

TASK = {
    "task": "toy",
    "objective": {"metric": "score", "direction": "maximize"},
    "job": {"command": "true"},
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2}},
    "budgets": {"trials": 4},
    "search": {"use": ["sampler", "outside"]},
}
ONE = {"session": "s1", "trials": [{"params": {"x": 0.5}, "why": "it bends there"}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = AgentStore.open(tmp_path)
    store.create_session(Task.model_validate(TASK))
    store.close()
    return tmp_path


def kept(home: Path) -> list[tuple[str, str | None]]:
    store = AgentStore.open(home)
    found = [(one.suggested_by, one.arm) for one in store.suggestions("s1")]
    store.close()
    return found


async def proposes(client: Client) -> Any:
    async with client:
        return (await client.call_tool("propose_trials", ONE)).structured_content


def test_over_standard_input_nothing_but_the_protocol_is_written_to_standard_output(home: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "nightlab", "mcp", "--home", str(home), "--as", "coder"]
    )
    told = asyncio.run(proposes(Client(stdio_client(command))))
    assert told == {"result": [{"proposal": 1}]}
    assert kept(home) == [("coder", "outside")]


@pytest.fixture
def address(home: Path) -> Iterator[str]:
    port = _free_port()
    served = subprocess.Popen(
        [sys.executable, "-m", "nightlab", "mcp", "--http", "--port", str(port), "--home", str(home)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert served.stderr is not None
    try:
        first = served.stderr.readline()
        assert f"http://127.0.0.1:{port}/mcp" in first, first
        _until_it_answers(f"http://127.0.0.1:{port}/mcp")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        served.terminate()
        served.wait(timeout=20)


def test_over_http_with_the_token(home: Path, address: str) -> None:
    token = (home / "mcp-token").read_text().strip()
    assert (home / "mcp-token").stat().st_mode & 0o777 == 0o600

    async def talk() -> Any:
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
            return await proposes(Client(streamable_http_client(address, http_client=http)))

    assert asyncio.run(talk()) == {"result": [{"proposal": 1}]}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer \u00fc".encode("latin-1")},
    ],
)
def test_over_http_nothing_is_told_without_the_token(home: Path, address: str, headers: dict[str, Any]) -> None:
    answer = httpx.post(address, headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert answer.status_code == 401
    assert "mcp-token" in answer.text
    assert kept(home) == []


def test_over_http_a_page_that_was_led_here_by_its_host_name_is_refused(home: Path, address: str) -> None:
    token = (home / "mcp-token").read_text().strip()
    answer = httpx.post(
        address,
        headers={
            "Authorization": f"Bearer {token}",
            "Host": "evil.example",
            "Accept": "application/json, text/event-stream",
        },
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    )
    assert answer.status_code == 421


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until_it_answers(url: str) -> None:
    transport = httpx.HTTPTransport(retries=8)
    with httpx.Client(transport=transport, timeout=20) as client:
        client.get(url)

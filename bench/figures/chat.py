"""Figures of chats: how late a model's first token is, and what chats cost the scheduler."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent.web.address import url_of
from agent.web.keys import OWNER_FILE
from bench.figure import Figure, median_of, quartiles
from bench.server import homed_server
from bench.slow_writer import slow_writer
from runtime_client.models import JobSpec

N_CHATS = 5


@dataclass(slots=True)
class Service:
    """An agent service in a process of its own."""

    http: httpx.Client

    def post(self, path: str, **body: Any) -> Any:
        response = self.http.post(path, json=body)
        response.raise_for_status()
        return response.json()["data"]

    def turn(self, chat_id: str, after: int) -> Iterator[tuple[str, Any]]:
        """Say something and give the events of the turn as they come, up to its end."""
        with self.http.stream("GET", f"/v1/chats/{chat_id}/stream?after={after}", timeout=60) as response:
            lines = response.iter_lines()
            next(lines)
            self.post(f"/v1/chats/{chat_id}/say", text="how is it going?")
            kind = ""
            for line in lines:
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                    yield kind, data
                    if kind == "entry" and data["ends_turn"]:
                        return


@contextlib.contextmanager
def _service(home: Path, base_url: str) -> Iterator[Service]:
    (home / "chat.yaml").write_text(f"model: {{name: slow, base_url: {base_url!r}}}\n", encoding="utf-8")
    command = [sys.executable, "-m", "agent.service", "--home", str(home)]
    with (home / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "NIGHTLAB_MODEL_CALLS": "loopback"}
        )
    try:
        deadline = time.monotonic() + 30
        while (url := url_of(home, process.pid)) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the agent service did not start: " + (home / "agent.log").read_text())
            time.sleep(0.05)
        token = (home / OWNER_FILE).read_text(encoding="utf-8").strip()
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
            yield Service(http)
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def first_token_ms(quick: bool) -> Figure:
    """From the model writing its first token to a reader of the chat's stream having it."""
    n = 10 if quick else 50
    late: list[float] = []
    direct: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="nl-bench-") as folder,
        slow_writer(pause_s=0.02, n_words=3) as base_url,
        _service(Path(folder), base_url) as service,
    ):
        chat_id, after = service.post("/v1/chats")["chat_id"], 0
        for _ in range(n + 1):  # the first turn loads the modules
            direct.append(_direct_ms(base_url))
            late.append(-1.0)
            for kind, data in service.turn(chat_id, after):
                if kind == "text" and late[-1] < 0:
                    late[-1] = (time.time() - float(data["text"].split()[0])) * 1000
                if kind == "entry":
                    after = data["number"]
                    if data["kind"] == "trouble":
                        raise RuntimeError(data["text"])
    samples = late[1:]
    p95 = statistics.quantiles(samples, n=20)[-1]
    return Figure(
        id="chat.first_token_ms",
        value=median_of(samples),
        unit="ms",
        control=median_of(direct[1:]),
        n=n,
        spread=quartiles(samples),
        note=f"95th percentile {p95:.1f} ms; control: a client of the endpoint itself; spread: quartiles",
    )


def _direct_ms(base_url: str) -> float:
    body = {"model": "slow", "messages": [{"role": "user", "content": "?"}], "stream": True}
    with httpx.stream("POST", f"{base_url}/chat/completions", json=body, timeout=30) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                said = json.loads(line[6:])["choices"][0]["delta"].get("content")
                if said:
                    return (time.time() - float(said.split()[0])) * 1000
    raise RuntimeError("the endpoint wrote nothing")


def rounds_ratio(quick: bool) -> Figure:
    """Durable submissions, each a round of the scheduler, beside five chats that are written, against none."""
    n_pairs, n_submits = (4, 40) if quick else (12, 100)
    ratios: list[float] = []
    alone_ms: list[float] = []
    with homed_server("cpu:1") as server, slow_writer(pause_s=0.03, n_words=10_000) as base_url:
        client = server.start()
        with _service(server.home, base_url) as service:
            client.submit(JobSpec(experiment_name="bench", command=("sleep", "3600")))
            spec = JobSpec(experiment_name="bench", command=("/bin/true",))

            def rounds_ms() -> float:
                samples = []
                for _ in range(n_submits):
                    began = time.perf_counter()
                    client.submit(spec)
                    samples.append((time.perf_counter() - began) * 1000)
                return median_of(samples)

            rounds_ms()
            for pair in range(n_pairs):
                order = ("alone", "chats") if pair % 2 == 0 else ("chats", "alone")
                found = {}
                for what in order:
                    if what == "alone":
                        found[what] = rounds_ms()
                    else:
                        with _talking(service):
                            found[what] = rounds_ms()
                ratios.append(found["chats"] / found["alone"])
                alone_ms.append(found["alone"])
    return Figure(
        id="chat.rounds_ratio",
        value=median_of(ratios),
        unit="x",
        control=1.0,
        n=n_pairs,
        spread=quartiles(ratios),
        note=f"{N_CHATS} chats, 33 tokens a second each, all read; alone {median_of(alone_ms):.2f} ms a submission; "
        f"pairs of {n_submits} in changing order; spread: quartiles",
    )


@contextlib.contextmanager
def _talking(service: Service) -> Iterator[None]:
    """Chats whose answers are being written and read while the block lasts."""
    made = [service.post("/v1/chats")["chat_id"] for _ in range(N_CHATS)]
    has_begun = threading.Semaphore(0)

    def read(chat_id: str) -> None:
        has_told = False
        for kind, _ in service.turn(chat_id, 0):
            if kind == "text" and not has_told:
                has_told = True
                has_begun.release()

    readers = [threading.Thread(target=read, args=(one,), daemon=True) for one in made]
    for one in readers:
        one.start()
    for _ in made:
        if not has_begun.acquire(timeout=60):
            raise RuntimeError("a chat did not begin to answer within a minute")
    try:
        yield
    finally:
        for chat_id in made:
            service.post(f"/v1/chats/{chat_id}/stop")
        for one in readers:
            one.join(timeout=20)

"""Figures of chats: how late a model's first token is, and what chats cost the scheduler."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from bench.agent_service import served
from bench.chat_readers import opened
from bench.figure import Figure, median_of, quartiles
from bench.server import homed_server
from bench.slow_writer import slow_writer
from runtime_client.models import JobSpec

N_CHATS = 5


def _with_model(home: Path, base_url: str) -> Path:
    """The home, whose chats are answered from there."""
    (home / "chat.yaml").write_text(f"model: {{name: slow, base_url: {base_url!r}}}\n", encoding="utf-8")
    return home


def first_token_ms(quick: bool) -> Figure:
    """From the model writing its first token to a reader of the chat's stream having it."""
    n = 10 if quick else 50
    late: list[float] = []
    direct: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="nl-bench-") as folder,
        slow_writer(pause_s=0.02, n_words=3) as base_url,
        served(_with_model(Path(folder), base_url)),
        opened(Path(folder)) as service,
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
        with served(_with_model(server.home, base_url)):
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
                        with _talking(server.home):
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
def _talking(home: Path) -> Iterator[None]:
    """Chats whose answers are being written, and read by another process, while the block lasts."""
    command = [sys.executable, "-m", "bench.chat_readers", str(home), str(N_CHATS)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise RuntimeError("the chats did not begin to answer")
        yield
    finally:
        process.stdin.close()
        process.wait(30)

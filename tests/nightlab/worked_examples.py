"""Worked examples of a page, run as a reader would: real commands, a real server, pretended devices, made-up time.

An example is a section of the page. `<!-- a cluster of 4 H100 -->` begins it, with `, of which project vision may
hold 2` where there is a quota, or `deserves 2` where there is a share; `console` blocks hold commands and what they
print; what happens between them stands in comments: `<!-- 5 min later -->`, `<!-- j1 saves a checkpoint -->`,
`<!-- j1 ends -->`, `<!-- j1 leaves -->`, `<!-- j1 fails -->`.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nightlab.__main__ import main
from runtime.engines.contract import AttemptKey
from runtime.engines.fake import ByHand, FakeEngine, fake_node
from runtime.model.states import EXIT_REQUEUE
from runtime.scheduling.policy import Policy, ProjectShare, Quota
from runtime.server.config import ServerConfig
from runtime.server.threaded import ThreadedServer, threaded_server

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
TOKEN = re.compile(r"<!-- (?P<happens>.*?) -->|```console\n(?P<console>.*?)```", re.DOTALL)
CLUSTER = re.compile(
    r"a cluster of (?P<n>\d+) (?P<kind>\w+)"
    r"(?:, of which project (?P<project>\w+) (?:may hold (?P<quota>\d+)|deserves (?P<deserved>\d+)))?"
)
LATER = re.compile(r"(?P<n>\d+) (?P<unit>s|min|h) later")
ACT = re.compile(r"(?P<job>j\d+) (?P<verb>saves a checkpoint|ends|leaves|fails)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    title: str
    text: str
    """Markdown."""


@dataclass(slots=True)
class World:
    home: Path
    engine: FakeEngine
    server: ThreadedServer
    clock: list[float]
    n_saved: dict[str, int] = field(default_factory=dict)

    def happen(self, words: str) -> None:
        if found := LATER.fullmatch(words):
            self.clock[0] += float(found["n"]) * SECONDS[found["unit"]]
        elif found := ACT.fullmatch(words):
            self._act(found["job"], found["verb"])
        else:
            raise AssertionError(f"the page says {words!r}, which nobody understands")
        self.settle()

    def _act(self, job_id: str, verb: str) -> None:
        key = AttemptKey(job_id=job_id, attempt=self.server.services.loop.state.jobs[job_id].n_attempts)
        self.n_saved[job_id] = self.n_saved.get(job_id, 0) + 1
        acts: dict[str, Callable[[], None]] = {
            "saves a checkpoint": lambda: self.engine.checkpoint(key, self.n_saved[job_id]),
            "ends": lambda: self.engine.finish(key),
            "leaves": lambda: self.engine.finish(key, exit_code=EXIT_REQUEUE),
            "fails": lambda: self.engine.fail(key),
        }
        self.server.on_loop(acts[verb])

    def settle(self) -> None:
        """Until the server has digested everything and ordered all that is to be ordered."""
        poll(lambda: self._has_gone_round() and self.server.on_loop(lambda: is_at_rest(self.server, self.engine)))

    def _has_gone_round(self) -> bool:
        """A round that began after everything that has arrived by now."""
        loop = self.server.services.loop
        nothing = self.server.on_loop(lambda: asyncio.ensure_future(loop.instruct(lambda state, now_s: ())))
        poll(lambda: self.server.on_loop(nothing.done))
        return True


def poll(condition: Callable[[], bool], *, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.002)


def is_at_rest(server: ThreadedServer, engine: FakeEngine) -> bool:
    """Every order has reached the engine, and its report the server."""
    live = {
        AttemptKey(job_id=job.job_id, attempt=job.attempt.number): job.attempt
        for job in server.services.loop.state.jobs.values()
        if job.attempt is not None
    }
    asked = {stop.key for stop in engine.stops}
    return (
        all(attempt.started_at_s is not None for attempt in live.values())
        and set(live) == set(engine.running)
        and all(key in asked for key, attempt in live.items() if attempt.stop is not None)
    )


def _policy(found: re.Match[str]) -> Policy:
    project, quota, deserved = found["project"], found["quota"], found["deserved"]
    return Policy(
        quotas=(Quota(max_devices=int(quota), project=project),) if quota else (),
        projects={project: ProjectShare(deserved_devices=int(deserved))} if deserved else {},
    )


@contextmanager
def world(home: Path, words: str) -> Iterator[World]:
    found = CLUSTER.fullmatch(words)
    assert found is not None, f"an example begins with a cluster, not with {words!r}"
    clock = [time.time()]
    node = fake_node(n_devices=int(found["n"]), kind=found["kind"])
    engine = FakeEngine(nodes=(node,), script=ByHand(), clock=lambda: clock[0])
    config = ServerConfig(home=home, port=0, low_disk_bytes=0, policy=_policy(found))
    with threaded_server(config, engine=engine, clock=lambda: clock[0]) as server:
        yield World(home=home, engine=engine, server=server, clock=clock)


def examples_of(page: Path) -> list[Example]:
    """The sections of the page that begin with a cluster."""
    sections = re.split(r"^### ", page.read_text(), flags=re.MULTILINE)[1:]
    found = []
    for section in sections:
        title, _, text = section.partition("\n")
        if CLUSTER.search(text):
            found.append(Example(title=title, text=re.split(r"^## ", text, flags=re.MULTILINE)[0]))
    return found


def replay(example: Example, home: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The example's console as the page has it, and as it is."""
    shown: list[str] = []
    real: list[str] = []
    (first, *rest) = TOKEN.finditer(example.text)
    assert first["happens"], "an example begins with a cluster"
    with world(home, first["happens"]) as played:
        for token in rest:
            if token["happens"] is not None:
                played.happen(token["happens"])
                continue
            for command, output in commands_of(token["console"]):
                shown.append(f"$ {command}\n{output}")
                real.append(f"$ {command}\n{run(command, played, capsys)}")
    return "\n".join(shown), "\n".join(real)


def commands_of(console: str) -> Iterator[tuple[str, str]]:
    """Each command, its continued lines joined, with what it prints."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", "").partition("\n")
        yield " ".join(command.split()), alike(output)


def run(command: str, played: World, capsys: pytest.CaptureFixture[str]) -> str:
    words = shlex.split(command)
    assert words[0] == "nightlab", command
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(words[1:])
    played.settle()
    printed = capsys.readouterr()
    return alike(printed.out if printed.out else printed.err)


def alike(output: str) -> str:
    """Without what no two runs have in common: times of the day."""
    return re.sub(r"until (?:\w{3} )?\d\d:\d\d", "until HH:MM", output.strip("\n"))

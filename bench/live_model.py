"""Sessions of the lab on a table, with a real language model beside them: its calls are real, and time is virtual.

The model is one that is served already, at the address in `NIGHTLAB_TEST_MODEL_URL`. The session gets each answer so
many virtual seconds after the question, however long the call took.
"""

from __future__ import annotations

import os
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.llm.ladder import Asked, Asker, asking
from agent.llm.of_session import rung_of
from agent.llm.opening import open_model
from agent.planner.configuration import configuration_id
from agent.session import SessionDeps
from agent.store.calls import model_calls_of
from agent.store.fenced import FencedWriter
from agent.store.store import AgentStore
from agent.store.views import ModelCallView, ParamValue, Purpose
from agent.task import Task
from agent.thinking.suggesting import MODEL
from bench.figure import Unavailable
from bench.tables import Table
from nightlab.lab.outcome import found_by
from nightlab.lab.sessions import DepsChange, Setting, live_alone
from nightlab.lab.stage import Actor
from nightlab.lab.world import Course, Extent
from runtime.simulator.cluster import parse_nodes
from runtime_client.models import JobSpec

URL = "NIGHTLAB_TEST_MODEL_URL"
NAME = "NIGHTLAB_TEST_MODEL"
RUNG = "NIGHTLAB_TEST_MODEL_RUNG"
"""By which the model is asked; a JSON schema where it is not set, since small servers hold their models to that."""
N_DEVICES = 4
BATCH = 2
"""Trials that a question asks for."""
CALL_S = 180.0
"""Virtual seconds from a question to its answer: about what the small model takes on a busy core."""
RUN_S = (60.0, 180.0)
"""Shortest and longest training, in virtual seconds."""


def served_model() -> dict[str, object]:
    """As a task names the model that is served.

    Raises:
        Unavailable: none is named, or it does not answer.
    """
    url = os.environ.get(URL)
    if url is None:
        raise Unavailable(f"no model is served: set {URL} to an address such as http://127.0.0.1:8081/v1")
    try:
        urllib.request.urlopen(f"{url.rstrip('/')}/models", timeout=20).close()
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise Unavailable(f"{url}, of {URL}, does not answer: {error}") from error
    name, rung = os.environ.get(NAME, "qwen"), os.environ.get(RUNG, "schema")
    return {"name": name, "base_url": url, "rung": rung, "context_tokens": 4096, "max_tokens": 512, "batch": BATCH}


@dataclass(frozen=True, slots=True)
class TableWorld:
    """Implements `World` over a table; the order of a configuration's seeds is drawn by the session's draw."""

    table: Table

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def extent(self) -> Extent:
        return Extent(best=float(self.table.means.min()), worst=float(self.table.means.max()))

    def course(self, spec: JobSpec, draw: int) -> Course:
        params = {name: value for name, value in spec.parameters.items() if value is not None}
        loss = self.table.look_up(params, spec.seed or 0, draw)
        shortest, longest = RUN_S
        share = int(configuration_id(params), 16) % 1000 / 1000
        return Course(run_s=shortest + share * (longest - shortest), curves={"loss": (loss,)})

    def truth(self, params: Mapping[str, ParamValue]) -> float | None:
        return self.table.mean(dict(params))


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One session of the lab on a table."""

    regret: float
    """Of the configuration that it chose in the end."""
    n_search: int
    n_of_model: int
    """Search trials that the model suggested."""
    asked: tuple[Asked[Any], ...] = ()
    """What came of each question to the model."""
    calls: tuple[ModelCallView, ...] = ()
    """As booked; a question may take several."""


def play(
    table: Table,
    draw: int,
    *,
    n_trials: int,
    model: dict[str, object] | None,
    sampler_seed: int = 0,
    before: Sequence[ModelCallView] = (),
) -> Played:
    """A session with a model, or without one where it is None; else the same task, seeds and training.

    Args:
        draw: of the noise, and of the sampler's seed with `sampler_seed` added.
        before: calls of an earlier session with the model, where it goes on.
    """
    world = TableWorld(table)
    task = _task(table, sampler_seed, n_trials, model)
    heard: list[Asked[Any]] = []
    with tempfile.TemporaryDirectory(prefix="nl-bench-") as name, ExitStack() as until:
        folder = Path(name)
        setting = Setting(task=task, world=world, nodes=parse_nodes(f"1x{N_DEVICES}"))
        lived = live_alone(
            setting, draw, folder, change=None if model is None else _asked_for_real(heard, before, folder, until)
        )
        store = AgentStore.open(folder)
        until.callback(store.close)
        calls = tuple(model_calls_of(store, lived.session.session_id))
    regret = found_by(lived, task, world, n_devices=N_DEVICES).regret
    if regret is None:
        raise ValueError(f"the session {draw} on {table.name} chose nothing: {lived.session.message}")
    searched = [trial for trial in lived.trials if trial.purpose is Purpose.SEARCH]
    n_of_model = sum(trial.suggested_by == MODEL for trial in searched)
    return Played(regret=regret, n_search=len(searched), n_of_model=n_of_model, asked=tuple(heard), calls=calls)


def _task(table: Table, sampler_seed: int, n_trials: int, model: dict[str, object] | None) -> Task:
    proposers = ["sampler", "random", "refiner", "replicator"]
    more: dict[str, object] = {} if model is None else {"model": model}
    return table.task(
        sampler_seed=sampler_seed,
        trials=n_trials,
        search={"use": proposers if model is None else [*proposers, MODEL]},
        seeds={"fresh": 3, "max_pairs": 3},
        idle={"replicate": False, "explore": False},
        **more,
    )


class _Heard(Asker):
    """Keeps what came of each question."""

    heard: list[Asked[Any]]

    def ask(self, *args: Any, **how: Any) -> Asked[Any]:
        asked: Asked[Any] = super().ask(*args, **how)
        self.heard.append(asked)
        return asked


def _asked_for_real(
    heard: list[Asked[Any]], before: Sequence[ModelCallView], folder: Path, until: ExitStack
) -> DepsChange:
    """The model of the task is called, and what it says comes `CALL_S` virtual seconds after the question."""

    def open_asker(task: Task, writer: FencedWriter) -> Asker:
        assert task.model is not None
        model = open_model(task, folder, writer)
        until.callback(model.close)
        past = [replace(one, at=time.time()) for one in rung_of(before)]
        took_s = [call.took_s for call in before]
        asker = _Heard(model, asking(task.model), judged=model, past=past, took_s=took_s, now=time.time)
        asker.heard = heard
        return asker

    def change(deps: SessionDeps, actor: Actor) -> SessionDeps:
        def start(work: Callable[[], None]) -> None:
            at = actor.stage.cluster.now + CALL_S
            actor.stage.cluster.plan(at, work)
            actor.wake_at(at)

        return replace(deps, open_asker=open_asker, start_thinking=start)

    return change

"""Fixtures of the tracking tests: a gateway on loopback with a real store, and a stand-in for the MLflow server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gateway_world import GatewayWorld
from standin_mlflow import StandIn


@pytest.fixture(scope="module")
def served_standin() -> Iterator[StandIn]:
    with StandIn() as server:
        yield server


@pytest.fixture
def standin(served_standin: StandIn) -> StandIn:
    """A stand-in for MLflow, up and empty."""
    served_standin.reset()
    return served_standin


@pytest.fixture(scope="module")
def served_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayWorld]:
    with GatewayWorld(tmp_path_factory.mktemp("gateway")) as world:
        yield world


@pytest.fixture
def world(served_world: GatewayWorld) -> GatewayWorld:
    """A gateway without a tracking server, and an empty store; one process for all tests of a module."""
    served_world.clear()
    return served_world


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., GatewayWorld]]:
    """Worlds with a tracking server; the same home when called again."""
    open_worlds: list[GatewayWorld] = []

    def make(mlflow_url: str | None = None) -> GatewayWorld:
        world = GatewayWorld(tmp_path, mlflow_url=mlflow_url)
        open_worlds.append(world)
        return world.__enter__()

    yield make
    for world in open_worlds:  # before the stand-in is reset for the next test
        world.close()

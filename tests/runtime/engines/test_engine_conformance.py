"""Both engines, the real one and the fake, keep the same promises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.engines.conformance import EngineConformance
from runtime.engines.contract import LaunchOrder, StopAttempt
from runtime.engines.fake import FakeEngine, Refusal
from runtime.engines.local import LocalEngine
from runtime.model.states import EXIT_REQUEUE, ExitReason
from runtime_client.models import JobSpec


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


class TestLocalEngine(EngineConformance):
    def engine(self, home: Path) -> LocalEngine:
        return LocalEngine(
            home=home, attempts_dir=home / "attempts", devices="cpu:2", environ=dict(os.environ), sweep_s=0.1
        )


class PlaysPrograms:
    """Plays the programs of the suite: the name of one is the experiment's name."""

    def started(self, engine: FakeEngine, order: LaunchOrder) -> None:
        match JobSpec.model_validate_json(order.spec_json).experiment_name:
            case "says-hello":
                engine.print(order.key, "hello\n")
                engine.finish(order.key)
            case "exits-3":
                engine.fail(order.key, exit_code=3, log="oh no\n")
            case "dies-of-a-signal":
                engine.finish(order.key, exit_code=-11)
            case "checkpoints":
                engine.checkpoint(order.key, 5)
            case _:
                engine.print(order.key, "ready\n")

    def stopped(self, engine: FakeEngine, order: StopAttempt) -> None:
        spec = JobSpec.model_validate_json(engine.attempts[order.key].order.spec_json)
        if order.grace_s > 0 and spec.experiment_name == "checkpoints-when-asked":
            engine.checkpoint(order.key, 7)
            engine.finish(order.key, exit_code=EXIT_REQUEUE)
        elif order.grace_s < 1000:
            engine.finish(order.key, exit_code=-9, was_killed=True)


class EngineThatChecksPython(FakeEngine):
    """Refuses the one interpreter that the suite knows to be missing."""

    async def start(self, order: LaunchOrder, generation: int) -> None:
        if JobSpec.model_validate_json(order.spec_json).environment.python is not None:
            self.refusals.append(Refusal(exit_reason=ExitReason.BAD_PYTHON, evidence="no such file"))
        await FakeEngine.start(self, order, generation)


class TestFakeEngine(EngineConformance):
    def setup_method(self) -> None:
        self._engine = EngineThatChecksPython(script=PlaysPrograms())

    def engine(self, home: Path) -> FakeEngine:
        return self._engine

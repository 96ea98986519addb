"""Sessions in memory whose trials change code: what a "training" gives is written in the code that it runs."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

from agent_worlds import World, a_task, a_world

from agent.edits.workshop import Workshop, workshop_folder
from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import Proposal
from agent.steps.code_states import rules_of
from agent.store.book import TrialBook
from agent.store.fenced import FencedWriter
from agent.store.views import CodeState, Purpose, TrialFacts
from agent.task import Task
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

BASE = b"GAIN = 0.5\n"


def a_code_task(root: Path, **changes: Any) -> Task:
    """Edits `model.py` below `root`, which is made if it is not there; without parameters."""
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "model.py").exists():
        (root / "model.py").write_bytes(BASE)
        (root / "train.py").write_text("import model\n")
    data: dict[str, Any] = {
        "job": {"command": "train", "code_source": {"root_path": str(root)}},
        "space": {},
        "code": {"editable": ["model.py"]},
        "score": {"command": "score"},
        "search": {"use": ["coder"]},
        "held_out": None,
        "budgets": {"trials": 3},
        "seeds": {"fresh": 3, "max_pairs": 3},
    }
    return a_task(**(data | changes))


class Trained:
    """What trainings left: a scorer measures what `GAIN` in the code said, with a little noise that the seed fixes."""

    def __init__(self) -> None:
        self._gains: dict[str, float] = {}
        """By what names a training: its trial and seed."""
        self.specs: list[JobSpec] = []

    def __call__(self, spec: JobSpec) -> FakeOutcome:
        self.specs.append(spec)
        key = f"{spec.tags['nightlab.trial']}/{spec.tags['nightlab.purpose']}"
        if spec.command == "train":
            assert spec.code_source is not None
            code = ast.parse((Path(spec.code_source.root_path) / "model.py").read_bytes())
            self._gains[key] = float(ast.literal_eval(code.body[0].value))  # type: ignore[attr-defined]
            return FakeOutcome(curves={"score": [9.0]}, duration_s=10.0)
        noise = ((spec.seed or 0) * 2654435761 % 1000) / 1e5
        return FakeOutcome(curves={"score": [self._gains[key] + noise]}, duration_s=1.0)


def a_code_world(home: Path, trained: Trained | None = None, **changes: Any) -> World:
    return a_world(home, task=a_code_task(home / "code", **changes), script=trained or Trained())


def a_workshop(world: World) -> Workshop:
    """As the session opens it."""
    task = Task.model_validate_json(world.store.session(world.session_id).task_json)
    assert task.job.code_source is not None
    folder = workshop_folder(world.home, world.session_id)
    return Workshop.open(folder, Path(task.job.code_source.root_path), rules_of(task))


def proposed(world: World, *gains: float) -> list[CodeState]:
    """Trials of edits, each of the base, as if an arm had made them before the session's process was killed."""
    task = Task.model_validate_json(world.store.session(world.session_id).task_json)
    workshop = a_workshop(world)
    states = [
        workshop.commit(
            workshop.base,
            {"model.py": f"GAIN = {gain}\n".encode()},
            trial=f"c{number}",
            message=f"gain {gain}",
            parent_trial=None,
        )
        for number, gain in enumerate(gains)
    ]
    params = default_params(task)
    proposals = [_proposal(task, None), *(_proposal(task, state) for state in states)]
    assert all(proposal.params == params for proposal in proposals)
    writer = FencedWriter(world.store, world.session_id, world.store.claim(world.session_id, os.getpid()))
    TrialBook(writer).propose(proposals)
    return states


def _proposal(task: Task, state: CodeState | None) -> Proposal:
    params = default_params(task)
    return Proposal(
        params=params,
        configuration=configuration_id(params, state),
        seed=0,
        purpose=Purpose.SEARCH,
        suggested_by="default" if state is None else "coder",
        why="",
        facts=TrialFacts(edited=state),
    )

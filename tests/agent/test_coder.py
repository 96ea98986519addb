"""The arm that edits code in whole sessions in memory: a tree of edits, lost turns, a kill between commit and row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import World
from code_worlds import BASE, a_code_world, a_workshop
from coding_worlds import answer, block, says, shown

from agent.llm.chat import Request
from agent.llm.ladder import Asker, Asking
from agent.llm.scripted import ScriptedModel
from agent.store.views import Purpose, SessionState, TrialView
from agent.thinking.beside import at_once


def a_coding_world(home: Path, **changes: Any) -> World:
    """Of few trials."""
    return a_code_world(home, **{"model": {"name": "small"}, "search": {"use": ["coder"], "confirm": False}} | changes)


def grows(n: int, request: Request) -> str:
    """Each edit is better than the code that it is of, and unlike all others."""
    return answer(block(shown(request), f"{float(shown(request)) + 0.1 + n / 1000:.3f}"))


def live(world: World, model: ScriptedModel, **changes: Any) -> SessionState:
    given: dict[str, Any] = {
        "open_asker": lambda task, writer: Asker(model, Asking(), now=lambda: world.runtime.now),
        "start_thinking": at_once,
    }
    return world.live(**(given | changes))


def of_the_coder(world: World) -> list[TrialView]:
    return [t for t in world.store.trials("s1") if t.suggested_by == "coder" and t.purpose is Purpose.SEARCH]


def told(world: World) -> str:
    return "\n".join(line.text for line in world.store.activity("s1", 1000) if line.step == "think")


def test_a_session_climbs_a_tree_of_edits_and_the_winner_is_an_edited_code(tmp_path: Path) -> None:
    world = a_coding_world(tmp_path, budgets={"trials": 5}, search={"use": ["coder"]}, seeds={"fresh": 2})
    model = says(grows)
    assert live(world, model) is SessionState.FINISHED
    made = of_the_coder(world)
    assert len(made) == 4
    assert {trial.facts.edited.parent for trial in made if trial.facts.edited} > {None}
    best = max(made, key=lambda trial: trial.value or 0.0)
    result = world.store.session("s1").result
    assert result is not None
    assert result.best_configuration == best.configuration
    assert (tmp_path / "code/model.py").read_bytes() == BASE
    last = model.requests[-1].messages[1].text
    assert "s1-t1 | - | the code as it was | - | 0.5 | +0 | measured" in last
    assert "s1-t2 | base | a larger gain | +1 -1 | 0.601 | +0.101 | measured" in last


def test_a_lost_turn_is_told_and_the_next_question_says_why(tmp_path: Path) -> None:
    world = a_coding_world(tmp_path, budgets={"trials": 2})
    model = says(lambda n, request: answer(block("9.9", "1.0")) if n < 4 else grows(n, request))
    assert live(world, model) is SessionState.FINISHED
    assert len(of_the_coder(world)) == 1
    assert model.n_calls == 4
    assert "the model gives no edit that can be tried" in told(world)
    assert "9.9" in model.requests[3].messages[1].text.partition("refused:")[2]


def test_a_model_that_never_gives_an_edit_ends_the_search_and_not_the_session(tmp_path: Path) -> None:
    world = a_coding_world(tmp_path)
    model = says(lambda n, request: answer(block("9.9", "1.0")))
    assert live(world, model) is SessionState.FINISHED
    assert of_the_coder(world) == []
    assert 3 <= model.n_calls <= 30


def test_a_process_killed_after_the_commit_leaves_no_trial_and_the_next_one_makes_the_same_code(tmp_path: Path) -> None:
    world = a_coding_world(tmp_path, budgets={"trials": 2})
    committed: list[str] = []

    class Killed(BaseException):
        pass

    def killed_after(work: Callable[[], None]) -> None:
        """The answer came and its code was committed; the process was gone before anything was written down."""
        work()
        found = (a_workshop(world).repository / "refs/heads/trial").iterdir()
        committed.extend(sorted(f"trial/{one.name}" for one in found))
        raise Killed

    model = says(lambda n, request: answer(block("0.5", "0.8"), parent="base"))
    with pytest.raises(Killed):
        live(world, model, start_thinking=killed_after)
    assert len(committed) == 1
    assert of_the_coder(world) == []
    assert live(world, model) is SessionState.FINISHED
    [trial] = of_the_coder(world)
    assert trial.facts.edited is not None
    assert trial.facts.edited.branch == committed[0]

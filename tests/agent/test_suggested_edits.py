"""Edits from people and outside agents: told at once whether they fit, and made trials on the same path as others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_stores import postgres_url, store  # noqa: F401
from agent_worlds import World, a_task
from code_worlds import BASE, a_code_world, a_workshop
from coding_worlds import block
from test_outside_door import call

from agent.coding.suggested import MAX_EDIT, why_not
from agent.gates.gate import Answer, GateKind
from agent.planner.proposers.outside import OUTSIDE
from agent.store.gates import GateStore
from agent.store.store import AgentStore
from agent.store.views import Purpose, SessionState, SuggestedEdit, TrialView

pytestmark = pytest.mark.code

BETTER = SuggestedEdit(text=block("0.5", "0.8"))


def an_open_world(home: Path, **changes: Any) -> World:
    """A session that takes edits from outside; of few trials."""
    return a_code_world(home, **{"search": {"use": ["outside"], "confirm": False}, "budgets": {"trials": 2}} | changes)


def begun(world: World) -> World:
    """As after its process has opened the code."""
    a_workshop(world)
    return world


def edited(world: World) -> list[TrialView]:
    trials = world.store.trials("s1")
    return [trial for trial in trials if trial.facts.edited is not None and trial.purpose is Purpose.SEARCH]


def test_a_suggestion_keeps_its_edit(store: AgentStore) -> None:  # noqa: F811
    session = store.create_session(a_task())
    made = store.suggest(session.session_id, {}, why="wider", edit=SuggestedEdit(text="a\nb", parent="s1-t2"))
    plain = store.suggest(session.session_id, {"x": 0.4}, why="as ever")
    assert store.suggestions(session.session_id) == [made, plain]
    assert (made.edit, plain.edit) == (SuggestedEdit(text="a\nb", parent="s1-t2"), None)


def test_an_edit_of_a_person_comes_first_and_nobody_is_asked(tmp_path: Path) -> None:
    world = an_open_world(tmp_path, autonomy={"code": "propose", "trials": "propose"})
    world.store.suggest("s1", {}, why="more gain", suggested_by="ada", edit=BETTER)
    assert world.live() is SessionState.FINISHED
    [trial] = edited(world)
    code = trial.facts.edited
    assert code is not None
    assert (code.summary, code.parent, trial.suggested_by) == ("more gain", None, "ada")
    assert round(trial.value or 0.0, 1) == 0.8
    assert trial.why == "more gain (an edit of base)"
    assert world.store.suggestions("s1")[0].trial_id == trial.trial_id
    assert GateStore(world.store).gates() == []
    assert (tmp_path / "code/model.py").read_bytes() == BASE


def test_an_edit_from_outside_is_a_trial_of_that_arm_and_may_go_on_from_another_one(tmp_path: Path) -> None:
    world = an_open_world(tmp_path, budgets={"trials": 3})
    world.store.suggest("s1", {}, why="more", suggested_by="coder", arm=OUTSIDE, edit=BETTER)

    def goes_on() -> bool:
        """When the first one is measured, the agent edits its code."""
        done = [trial for trial in edited(world) if trial.value is not None]
        if len(done) == 1 and len(world.store.suggestions("s1")) == 1:
            edit = SuggestedEdit(text=block("0.8", "0.9"), parent=done[0].trial_id)
            world.store.suggest("s1", {}, why="yet more", suggested_by="coder", arm=OUTSIDE, edit=edit)
        return False

    assert world.live(should_leave=goes_on) is SessionState.FINISHED
    first, second = edited(world)
    assert {(trial.suggested_by, trial.facts.model) for trial in (first, second)} == {(OUTSIDE, "coder")}
    assert second.facts.edited is not None
    assert second.facts.edited.parent == first.trial_id
    assert [round(trial.value or 0.0, 1) for trial in (first, second)] == [0.8, 0.9]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (SuggestedEdit(text=block("9.9", "0.8")), "GAIN = 0.5"),
        (SuggestedEdit(text="<<<< new score.py\nx = 1\n>>>> end"), "may not be edited"),
        (SuggestedEdit(text=block("0.5", "(0.8")), "Python"),
        (SuggestedEdit(text=block("0.5", "0.8"), parent="s1-t9"), "there is no trial 's1-t9'"),
        (SuggestedEdit(text="x" * (MAX_EDIT + 1)), "characters; 200,000 are the most"),
    ],
)
def test_what_does_not_fit_is_told_at_once_and_by_the_session_too(
    tmp_path: Path, edit: SuggestedEdit, words: str
) -> None:
    world = begun(
        an_open_world(tmp_path, budgets={"trials": 2}, search={"use": ["outside", "coder"], "confirm": False})
    )
    assert words in (why_not(world.store, tmp_path, "s1", edit) or "")
    if len(edit.text) <= MAX_EDIT:
        world.store.suggest("s1", {}, why="more", edit=edit)
        n_looks = 0

        def leaves() -> bool:
            nonlocal n_looks
            n_looks += 1
            return n_looks > 8

        world.live(should_leave=leaves)
        assert words in (world.store.suggestions("s1")[0].note or "")
    assert edited(world) == []


def test_what_fits_is_not_objected_to_and_nothing_is_written_for_it(tmp_path: Path) -> None:
    world = an_open_world(tmp_path)
    assert why_not(world.store, tmp_path, "s1", BETTER) is None, "it has not begun, and will tell itself"
    workshop = a_workshop(world)
    assert why_not(world.store, tmp_path, "s1", BETTER) is None
    assert list((workshop.repository / "refs/heads").iterdir()) == [workshop.repository / "refs/heads/base"]


def test_a_session_that_changes_no_code_refuses_edits(tmp_path: Path) -> None:
    world = a_code_world(tmp_path, code=None, space={"x": {"type": "float", "low": 0, "high": 1, "default": 0.5}})
    assert "this session changes no code" in (why_not(world.store, tmp_path, "s1", BETTER) or "")


def propose(world: World, **more: Any) -> Any:
    return call(world.home, "propose_edit", session="s1", edit=BETTER.text, why="more gain", **more)


def test_an_outside_agent_reads_the_code_and_proposes_an_edit_of_it(tmp_path: Path) -> None:
    world = begun(an_open_world(tmp_path))
    assert call(world.home, "read_session", session="s1")["code"] == {
        "editable": ["model.py"],
        "max_changed_lines": 400,
    }
    told = call(world.home, "read_code", session="s1")
    assert "GAIN = 0.5" in told["files"]["model.py"]
    assert told["files"]["model.py"].startswith("<untrusted id=")
    kept = propose(world, probability=0.6)
    assert kept == {"proposal": 1}
    assert world.live() is SessionState.FINISHED
    [trial] = edited(world)
    assert (trial.suggested_by, trial.facts.expected is not None) == (OUTSIDE, True)
    [proposal] = call(world.home, "read_proposals", session="s1")
    assert (proposal["edit_of"], proposal["became"]) == ("base", trial.trial_id)
    assert "+GAIN = 0.8" in call(world.home, "read_code", session="s1", trial=trial.trial_id)["changed"]
    assert (
        f"{trial.trial_id} | base | more gain | +1 -1"
        in call(world.home, "read_session", session="s1")["tables"]["edits"]
    )


def test_an_outside_agent_is_told_at_once_what_does_not_fit(tmp_path: Path) -> None:
    world = begun(an_open_world(tmp_path))
    assert "there is no trial" in propose(world, parent="s1-t9")["refused"]
    refused = call(world.home, "propose_edit", session="s1", edit=block("9.9", "1.0"), why="more")["refused"]
    assert "GAIN = 0.5" in refused
    assert "there is no trial" in call(world.home, "read_code", session="s1", trial="s1-t9")
    assert world.store.suggestions("s1") == []


def test_a_session_that_takes_nothing_from_outside_takes_no_edit(tmp_path: Path) -> None:
    world = begun(a_code_world(tmp_path))
    assert "no `outside` in search.use" in propose(world)["refused"]


@pytest.mark.parametrize(("answer", "n_trials"), [(Answer.APPROVE, 1), (Answer.DENY, 0)])
def test_with_autonomy_of_code_to_propose_each_edit_is_asked_about_once(
    tmp_path: Path, answer: Answer, n_trials: int
) -> None:
    world = an_open_world(tmp_path, autonomy={"code": "propose"})
    world.store.suggest("s1", {}, why="more", suggested_by="coder", arm=OUTSIDE, edit=BETTER)
    asked = []
    n_looks = 0

    def people() -> bool:
        nonlocal n_looks
        n_looks += 1
        for gate in GateStore(world.store).waiting():
            asked.append(gate)
            GateStore(world.store).answer(gate.gate_id, answer, by="ada", note="I see")
        return n_looks > 60

    world.live(should_leave=people)
    [gate] = asked
    assert gate.kind is GateKind.CODE
    assert "an edit of the base, +1 -1 lines in model.py" in gate.text
    assert "autonomy.code: propose" in gate.text
    assert len(edited(world)) == n_trials
    if not n_trials:
        assert "denied by ada: I see" in (world.store.suggestions("s1")[0].note or "")

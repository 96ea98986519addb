"""What the tags of a trial's MLflow run tell of where it comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent_worlds import a_task, a_world
from planner_builders import a_trial

from agent.store.views import CodeState, Expected, TrialFacts
from agent.tools.trial_job import trial_job


def test_the_run_of_a_trial_names_prompt_model_brief_and_prediction(tmp_path: Path) -> None:
    task = a_task()
    session = a_world(tmp_path).store.session("s1")
    trial = a_trial(task, 1, {"x": 0.2, "kind": "a"})
    origin = TrialFacts(
        expected=Expected(probability=0.25, effect=-0.5), prompt="suggest@1f", model="small", brief="b1", fixes="s1-t0"
    )
    tags = trial_job(task, session, replace(trial, facts=origin), fence=1).tags
    told = {name: value for name, value in tags.items() if name not in trial_job(task, session, trial, fence=1).tags}
    assert told == {
        "nightlab.prompt": "suggest@1f",
        "nightlab.model": "small",
        "nightlab.brief": "b1",
        "nightlab.fixes": "s1-t0",
        "nightlab.expected_probability": "0.25",
        "nightlab.expected_gain": "-0.5",
    }


def test_the_run_of_edited_code_names_its_tree_its_commit_and_what_it_was_made_from(tmp_path: Path) -> None:
    task = a_task()
    session = a_world(tmp_path).store.session("s1")
    for parent, said in (("s1-t2", "s1-t2"), (None, "base")):
        edited = CodeState(tree="1" * 40, commit="a" * 40, branch="trial/s1-t3", parent=parent)
        trial = a_trial(task, 3, {"x": 0.2, "kind": "a"}, facts=TrialFacts(edited=edited))
        tags = trial_job(task, session, trial, fence=1).tags
        assert {name: value for name, value in tags.items() if name.startswith("nightlab.code.")} == {
            "nightlab.code.tree": "1" * 40,
            "nightlab.code.commit": "a" * 40,
            "nightlab.code.parent": said,
        }

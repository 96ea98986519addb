"""Sessions whose trials change code: each runs its own, sealed, from a clean folder; nobody's checkout is touched."""

from __future__ import annotations

from pathlib import Path

from code_worlds import BASE, Trained, a_code_world, proposed

from agent.edits.workshop import workshop_folder
from agent.store.views import Purpose, SessionState


def test_every_trial_runs_its_own_code_and_the_winner_is_measured_again_with_it(tmp_path: Path) -> None:
    world = a_code_world(tmp_path)
    better, worse = proposed(world, 0.8, 0.3)
    assert world.live() is SessionState.FINISHED
    found = {t.configuration: t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH}
    assert [t.facts.edited for t in found.values()] == [None, better, worse]
    assert [round(t.value or 0.0, 1) for t in found.values()] == [0.5, 0.8, 0.3]
    fresh = [t for t in world.store.trials("s1") if t.purpose is Purpose.REPLICATE and t.facts.edited == better]
    assert len({t.seed for t in fresh}) >= 3
    assert all(t.value is not None and t.value >= 0.8 for t in fresh)
    result = world.store.session("s1").result
    assert result is not None
    assert result.best_configuration == fresh[0].configuration
    assert (tmp_path / "code/model.py").read_bytes() == BASE


def test_training_jobs_are_sealed_base_ones_too_and_see_what_the_task_shows_them(tmp_path: Path) -> None:
    trained = Trained()
    data = [{"path": str(tmp_path / "d")}, {"path": "s3://x", "fingerprint": "label", "label": "v1"}]
    world = a_code_world(tmp_path, trained, code={"editable": ["model.py"], "readable": ["/data/extra"]}, data=data)
    proposed(world, 0.8)
    world.live()
    training = [spec for spec in trained.specs if spec.command == "train"]
    assert {spec.sandbox for spec in training} == {"sealed"}
    assert {spec.readable for spec in training} == {("/data/extra", str(tmp_path / "d"))}
    assert {spec.code_source.snapshot for spec in training if spec.code_source} == {"auto"}
    assert not any(str(tmp_path / "code") == spec.code_source.root_path for spec in training if spec.code_source)


def test_folders_of_code_go_once_their_jobs_are_submitted(tmp_path: Path) -> None:
    world = a_code_world(tmp_path)
    proposed(world, 0.8, 0.3)
    world.live()
    trees = workshop_folder(tmp_path, "s1") / "trees"
    assert len(list(trees.iterdir())) == 1  # The base's.


def test_code_that_was_changed_meanwhile_is_not_the_base_of_a_session_under_way(tmp_path: Path) -> None:
    world = a_code_world(tmp_path)
    proposed(world, 0.8)
    (tmp_path / "code/model.py").write_bytes(b"GAIN = 7.0\n")
    world.live()
    first = world.store.trials("s1")[0]
    assert first.value is not None
    assert round(first.value, 1) == 0.5


def test_code_that_can_not_be_edited_ends_the_session_with_what_to_change(tmp_path: Path) -> None:
    world = a_code_world(tmp_path)
    (tmp_path / "code/model.py").unlink()
    assert world.live() is SessionState.FAILED
    assert "'model.py' names no file of the code" in world.store.session("s1").message

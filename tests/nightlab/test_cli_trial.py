"""Trials months later, by command: found by words, shown, held against each other, without a runtime."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cli_process import nightlab
from ended_session import ended_session

from agent.store.store import AgentStore
from agent.store.views import Purpose, TrialView
from runtime_client.home import CODE_FOLDER
from runtime_client.snapshot.store import CodeStore

pytestmark = pytest.mark.cli


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which session s1 has run to its end."""
    home = tmp_path_factory.mktemp("ended")
    ended_session(home)
    return home


@pytest.fixture
def home(ended: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ended, tmp_path / "home"))


@pytest.fixture
def trials(home: Path) -> Iterator[list[TrialView]]:
    with closing(AgentStore.open(home)) as store:
        yield store.trials("s1")


def test_search_finds_losers_too_newest_first_with_gain_and_verdict(home: Path, trials: list[TrialView]) -> None:
    found = nightlab("trial", "search", "warmup", "kind=a", "--json", home=home).data
    wanted = [t.trial_id for t in trials if t.params["kind"] == "a"]
    assert [one["trial_id"] for one in found] == list(reversed(wanted))
    assert {one["verdict"] for one in found} >= {"default"}
    assert any(one["gain_over_default"] == 0 for one in found)


def test_every_word_must_occur(home: Path) -> None:
    assert nightlab("trial", "search", "warmup", "cooldown", "--json", home=home).data == []
    assert "no trial" in nightlab("trial", "search", "cooldown", home=home).out


def test_a_trial_is_shown_with_what_is_not_known_of_it(home: Path) -> None:
    shown = nightlab("trial", "show", "s1-t1", home=home)
    assert shown.exit_code == 0, shown.err
    assert "unpinned" in shown.out
    assert nightlab("trial", "show", "s1-t1", "--json", home=home).data["job"] is None


def test_a_list_has_all_trials_of_its_session(home: Path, trials: list[TrialView]) -> None:
    assert len(nightlab("trial", "list", "s1", "--json", home=home).data) == len(trials)


def test_an_unknown_trial_is_wrong_use(home: Path) -> None:
    ended = nightlab("trial", "compare", "s1-t1", "s1-t999", "--json", home=home)
    assert ended.exit_code == 2
    assert ended.error["code"] == "unknown_trial"


def test_a_comparison_uses_the_replicates_on_common_seeds_alone(home: Path, trials: list[TrialView]) -> None:
    best = next(t for t in reversed(trials) if t.purpose is Purpose.REPLICATE and t.params["x"] != 0.2)
    seeds = [t.seed for t in trials if t.purpose is Purpose.REPLICATE and t.configuration == best.configuration]
    default = [t.seed for t in trials if t.purpose is Purpose.REPLICATE and t.params == {"x": 0.2, "kind": "a"}]
    data = nightlab("trial", "compare", best.trial_id, "s1-t1", "--json", home=home).data
    assert data["comparison"]["seeds"] == sorted(set(seeds) & set(default))
    assert data["comparison"]["comparison"] in ("better", "indistinguishable")
    assert data["differing_params"]["x"] == [best.params["x"], 0.2]


def test_code_and_packages_that_differ_are_named(home: Path, tmp_path: Path, trials: list[TrialView]) -> None:
    code = tmp_path / "code"
    code.mkdir()
    store = CodeStore(home / CODE_FOLDER)
    for number, (text, version) in enumerate((("lr = 1\n", "2.0"), ("lr = 2\n", "2.1"))):
        (code / "train.py").write_text(text)
        (code / "same.py").write_text("pass\n")
        snapshot = store.take(code)
        attempt = home / "attempts" / str(trials[number].job_id) / "1"
        attempt.mkdir(parents=True)
        record = {"code_snapshot": snapshot.snapshot_id, "packages": [f"torch=={version}", "numpy==2.4"]}
        (attempt / "provenance.json").write_text(json.dumps({**record, "devices": ["H100"]}))
    data = nightlab("trial", "compare", trials[0].trial_id, trials[1].trial_id, "--json", home=home).data
    assert data["code"]["difference"] == {"changed": ["train.py"], "only_first": [], "only_second": []}
    assert data["packages"] == {"torch": ["2.0", "2.1"]}
    assert data["device_model"] == ["fake", "fake"]
    said = nightlab("trial", "compare", trials[0].trial_id, trials[1].trial_id, home=home).out
    assert "train.py (changed)" in said
    assert "torch 2.0 -> 2.1" in said

"""The stop button and the nodes from the command line, against a server with pretended devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli_process import Ended, nightlab

from nightlab.commands.spend import By
from nightlab.commands.up import prices
from nightlab.failure import Failure
from runtime.engines.fake import ByHand, FakeEngine, fake_node
from runtime.server.config import ServerConfig
from runtime.server.occupancy import write_address
from runtime.server.threaded import threaded_server
from runtime_client.models import SpendBy

pytestmark = pytest.mark.cli


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("operator")
    config = ServerConfig(home=folder, port=0, low_disk_bytes=0)
    node = replace(fake_node(n_devices=2), sealed_by="landlock")
    with threaded_server(config, engine=FakeEngine(nodes=(node,), script=ByHand())) as server:
        write_address(config.address_path, url=server.url, started_at=0.0, mlflow_url=None)
        yield folder


def say(home: Path, *words: str) -> Ended:
    done = nightlab(*words, home=home)
    assert done.exit_code == 0, done.err
    return done


def test_pause_and_unpause(home: Path) -> None:
    assert "paused: class exploratory (noise)" in say(home, "pause", "--class", "exploratory", "--reason", "noise").out
    assert "! paused (class exploratory, by user:owner): noise" in say(home, "status").out
    assert say(home, "status", "--json").data["runtime"]["holds"][0]["reason"] == "noise"
    assert say(home, "unpause", "--class", "exploratory", "--json").data["holds"] == []


def test_exactly_one_selector_is_wanted(home: Path) -> None:
    for words in ([], ["--all", "--session", "s1"]):
        ended = nightlab("pause", *words, "--reason", "x", home=home)
        assert ended.exit_code == 2
        assert "exactly one of --all, --class, --session, --project" in ended.err


def test_agents_are_stopped_and_allowed(home: Path) -> None:
    assert say(home, "stop", "--all-agents", "--reason", "runaway", "--json").data["agents_stop"]["reason"] == "runaway"
    assert "! all agents are stopped: runaway" in say(home, "status").out
    assert say(home, "allow", "--all-agents").out == "sessions may submit\n"
    assert nightlab("stop", home=home).exit_code == 2


def test_a_node_is_cordoned_drained_and_used_again(home: Path) -> None:
    assert say(home, "node", "cordon", "local", "--reason", "new fan").out == "local: cordoned (new fan)\n"
    listed = say(home, "node", "list").out
    assert "cordoned" in listed
    assert "new fan" in listed
    assert "local: sealed jobs by landlock" in listed
    assert "sealed jobs by landlock" in say(home, "status").out
    assert say(home, "node", "drain", "local", "--json").data["state"] == "draining"
    assert say(home, "node", "uncordon", "local").out == "local: healthy\n"


def test_devices_are_reserved_and_given_back(home: Path) -> None:
    reserved = say(home, "node", "reserve", "local:0,1", "--until", "2h", "--for", "alice", "--json").data
    assert [device["reserved_for"] for device in reserved["devices"]] == ["alice", "alice"]
    assert "reserved for alice until" in say(home, "node", "list").out
    say(home, "node", "unreserve", "local:0")
    assert say(home, "node", "unreserve", "local").out == "local: healthy\n"


def test_the_policy_in_force_and_that_of_a_file_are_shown(home: Path, tmp_path: Path) -> None:
    in_force = say(home, "policy", "--json").data
    assert in_force["classes"]["critical"] == {"priority": 1000, "is_preemptible": False}
    file = tmp_path / "lab.yaml"
    file.write_text("quotas: [{project: vision, max_devices: 4}]\nmin_run_s: 60\n")
    shown = say(home, "policy", str(file)).out
    assert "quota: project vision at most 4 devices\n" in shown
    assert "min_run_s: 60\n" in shown
    file.write_text("min_runs: 60\n")
    refused = nightlab("policy", str(file), home=home)
    assert refused.exit_code == 2
    assert "did you mean min_run_s" in refused.err


def test_what_if_tells_and_submits_nothing(home: Path) -> None:
    told = say(home, "job", "run", "--what-if", "--json", "--", "true").data
    assert (told["prospect"], told["victims"]) == ("starts", [])
    assert "this job is about to start" in say(home, "job", "run", "--what-if", "--", "true").out
    assert say(home, "job", "list", "--all", "--json").data == []


def test_spend_is_told_in_device_hours(home: Path) -> None:
    told = say(home, "spend", "--by", "session", "--since", "1h", "--json").data
    assert (told["by"], told["rows"]) == ("session", [])
    assert "idle: " in say(home, "spend").out
    assert "write 12h or 7d" in nightlab("spend", "--since", "soon", home=home).err


def test_a_price_is_read_or_refused() -> None:
    assert prices(["H100=2.5", "A100=0"]) == {"H100": 2.5, "A100": 0.0}
    for wrong in ("H100", "=2", "H100=-1", "H100=nan", "H100=inf"):
        with pytest.raises(Failure, match=r"is no price; write H100=2\.5"):
            prices([wrong])


def test_spend_groups_are_those_of_the_wire() -> None:
    assert [by.value for by in By] == [by.value for by in SpendBy]

"""The scheduling policy at the door: what a file may say, and that the server shows and keeps it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from lab import lab, spec

from runtime.engines.fake import ByHand
from runtime.scheduling.policy import Policy, PriorityClass, ProjectShare, Quota
from runtime.server.policy_file import BadPolicy, parse_policy, policy_in, policy_of, policy_to_serve, spec_of
from runtime_client.errors import InvalidSpec, OverBudget
from runtime_client.models import HoldScope, PolicySpec

FILE = Path("policy.yaml")
EVERYTHING = """
classes:
  urgent: {priority: 9, is_preemptible: false}
  normal: {priority: 5, is_preemptible: true}
quotas:
  - {project: vision, priority_class: normal, max_devices: 4}
  - {max_devices: 7}
projects:
  vision: {deserved_devices: 4, weight: 2}
  speech: {}
min_run_s: 60
retry_backoff_s: 1e1
"""


def test_a_policy_file_changes_what_it_names() -> None:
    policy = parse_policy(EVERYTHING, FILE)
    assert (policy.min_run_s, policy.retry_backoff_s, policy.max_stalled) == (60.0, 10.0, Policy().max_stalled)
    assert policy.classes["urgent"] == PriorityClass(name="urgent", priority=9, is_preemptible=False)
    assert policy.projects == {"vision": ProjectShare(deserved_devices=4, weight=2.0), "speech": ProjectShare()}
    assert policy.quotas == (
        Quota(project="vision", priority_class="normal", max_devices=4),
        Quota(max_devices=7),
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}"])
def test_an_empty_policy_file_is_the_default(text: str) -> None:
    assert parse_policy(text, FILE) == Policy()


def test_a_policy_file_can_say_all_that_a_policy_has_and_its_defaults_are_the_same() -> None:
    assert set(PolicySpec.model_fields) == {field.name for field in fields(Policy)}
    assert policy_of(PolicySpec()) == Policy()
    assert PolicySpec() == spec_of(Policy())


def test_what_is_shown_can_be_given_again() -> None:
    policy = parse_policy(EVERYTHING, FILE)
    assert parse_policy(spec_of(policy).model_dump_json(), FILE) == policy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("min_runs: 1", "min_runs: unknown key; did you mean min_run_s"),
        ("min_run_s: soon", "min_run_s: .*number; it is 'soon'"),
        ("min_run_s: -1", "min_run_s: .*greater than or equal to 0; it is -1"),
        ("min_run_s: .inf", "min_run_s: .*finite"),
        ("min_run_s: true", "min_run_s: .*number; it is True"),
        ("max_stalled: 1.5", "max_stalled: .*integer"),
        ("[1]", "must be a map"),
        ("a: [", "no valid YAML"),
        ("min_run_s: 1\nmin_run_s: 2", "line 2, .*given twice"),
        ("classes: {}", "classes: .*at least 1"),
        ("classes: {a: {priority: 1}}", "classes.a.is_preemptible is required"),
        ("classes: {a: {priority: 1, is_preemptible: true, preemptible: 1}}", "did you mean is_preemptible"),
        ("classes: {a: {priority: x, is_preemptible: true}}", "classes.a.priority: .*integer; it is 'x'"),
        ("classes: {a: {priority: 1, is_preemptible: 1}}", "classes.a.is_preemptible: .*boolean; it is 1"),
        ("projects: {vision: {weight: 0}}", "projects.vision.weight: .*greater than 0"),
        ("projects: {vision: {deserved: 1}}", "projects.vision.deserved: unknown key; did you mean deserved_devices"),
        ("quotas: 5", "quotas: .*a list; it is 5"),
        ("quotas: [{max_devices: -1}]", "quotas.0.max_devices: .*greater than or equal to 0"),
        ("quotas: [{max_device: 1}]", "quotas.0.max_device: unknown key; did you mean max_devices"),
        ("quotas: [{max_devices: 1, priority_class: urgent}]", "the class 'urgent', which is none of critical"),
    ],
)
def test_a_broken_policy_file_is_refused_with_the_field_and_what_is_allowed(text: str, words: str) -> None:
    with pytest.raises(BadPolicy, match=words):
        parse_policy(text, FILE)


def test_a_server_with_a_broken_policy_file_does_not_start_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert policy_in(tmp_path) == Policy()
    (tmp_path / "policy.yaml").write_text("min_runs: 1")
    with pytest.raises(SystemExit) as ended:
        policy_to_serve(tmp_path)
    assert ended.value.code == 2
    assert "min_run_s" in capsys.readouterr().err


def test_the_server_shows_its_policy_and_takes_its_classes(tmp_path: Path) -> None:
    policy = parse_policy(EVERYTHING, FILE)
    with lab(tmp_path, policy=policy) as made:
        assert made.client.policy() == spec_of(policy)
        assert made.client.submit(spec(priority_class="urgent")).spec.priority_class == "urgent"
        with pytest.raises(InvalidSpec, match="urgent, normal"):
            made.client.submit(spec(priority_class="critical"))


def test_a_job_larger_than_its_quota_is_refused_with_the_numbers(tmp_path: Path) -> None:
    policy = Policy(quotas=(Quota(project="vision", max_devices=2),))
    with lab(tmp_path, n_devices=4, policy=policy) as made:
        big = spec(project="vision", compute={"num_accelerators": 3})
        with pytest.raises(OverBudget, match="project vision may hold 2 devices, and it asks for 3 devices") as refusal:
            made.client.submit(big)
        assert refusal.value.path == "compute.num_accelerators"
        assert made.client.what_if(big).prospect == "never"
        assert made.client.submit(spec(project="vision", compute={"num_accelerators": 2})).job_id == "j1"


def test_jobs_of_a_class_that_a_new_policy_lacks_keep_their_priority_and_are_told_of(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=1) as made:
        for name in ("normal", "exploratory", "critical"):
            made.client.submit(spec(priority_class=name))
        made.in_state("j1", "running", "stopping")
    fewer = parse_policy("classes: {normal: {priority: 5, is_preemptible: true}}", FILE)
    with lab(tmp_path, script=ByHand(), n_devices=1, policy=fewer) as made:
        notices = made.client.info().notices
        assert any("class critical is not in the policy any more; its 1 older jobs keep" in one for one in notices)
        assert any("class normal has priority 5 now; its 1 older jobs keep the priority 500" in one for one in notices)
        assert made.client.pause(HoldScope.CLASS, "exploratory", reason="test").holds
        made.in_state("j3", "running", "queued", "starting")

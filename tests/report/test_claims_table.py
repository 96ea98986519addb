"""The report is a projection of the plan."""

from __future__ import annotations

import json
from dataclasses import replace

from agent.report import build_report
from agent.report.claims_table import plan_tables
from agent.report.facts import replicates
from agent.report.proposers_table import proposer_rows
from agent.report.sample import sample_report_input


def test_every_hypothesis_has_a_row_with_status_and_evidence() -> None:
    facts = sample_report_input()
    found = plan_tables(facts)
    assert found is not None
    assert [(c.hypothesis_id, c.status, c.status_class) for c in found.claims] == [
        ("h1", "supported", "good"),
        ("h2", "supported", "good"),
        ("h3", "dropped", "open"),
    ]
    assert found.claims[0].evidence.endswith("of 40 needed, 8 pairs")
    html = build_report(facts)
    section = html[html.index('id="hypotheses"') : html.index('id="best-so-far"')]
    assert all(claim.statement in section for claim in found.claims)
    assert found.calibration in section
    assert "1 of 1 look at test_accuracy used" in section


def test_evidence_links_lead_to_the_trials_that_it_was_judged_by() -> None:
    facts = sample_report_input()
    found = plan_tables(facts)
    assert found is not None
    trials = {str(trial.number): trial for trial in facts.trials}
    final = [trials[link.trial] for link in found.claims[0].links]
    assert {t.seed for t in final} == set(range(1000, 1008))
    linked = {link.url for link in found.claims[0].links}
    assert linked <= {job.mlflow_url for job in facts.jobs}


def test_seeds_of_the_race_are_not_shown_as_fresh_ones() -> None:
    facts = sample_report_input()
    assert facts.session.result is not None
    assert set(replicates(facts, facts.session.result.best_configuration)) == set(range(1000, 1008))


def test_without_a_readable_plan_there_is_no_table() -> None:
    facts = sample_report_input()
    assert facts.plan is not None
    assert plan_tables(replace(facts, plan=None)) is None
    newer = json.dumps({**json.loads(facts.plan.plan_json), "version": 99})
    assert plan_tables(replace(facts, plan=replace(facts.plan, plan_json=newer))) is None
    assert 'id="hypotheses"' not in build_report(replace(facts, plan=None))


def test_each_proposer_is_held_against_the_control_arm() -> None:
    facts = sample_report_input()
    second = facts.trials[1].configuration
    mine = tuple(replace(t, suggested_by="person") if t.configuration == second else t for t in facts.trials)
    rows = {row.name: row for row in proposer_rows(replace(facts, trials=mine))}
    assert list(rows) == ["default", "person", "optuna"]
    assert (rows["person"].n_trials, rows["optuna"].n_trials) == (1, 16)
    assert (rows["optuna"].n_measured, rows["optuna"].against_control) == (14, "–")
    assert float(rows["person"].against_control) < 0 < float(rows["optuna"].over_default)

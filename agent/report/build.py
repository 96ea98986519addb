"""One session as one HTML file that needs nothing else: no network, no scripts, readable in light and dark."""

from __future__ import annotations

import os
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from agent.store.views import SessionState, TrialState

from . import figures, tables, wording
from .claims_table import plan_tables
from .code_figure import code_tree
from .code_trials import code_tables, patch_name
from .facts import ReportInput, best_trial, default_trial, is_measured
from .model_table import model_table
from .proposers_table import proposer_rows
from .slots import slot_timeline
from .timeline import preemptions, segments, slot_use

VERDICT_CLASS = {"supported": "good", "refuted": "bad"}
MAX_ACTIVITY = 300


def build_report(facts: ReportInput) -> str:
    """The whole page. Everything that comes from people, tasks or jobs is escaped."""
    environment = Environment(
        loader=PackageLoader("agent.report", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    held = segments(facts.jobs, facts.trials, now=facts.made_at)
    told = preemptions(facts.jobs, facts.trials)
    best, default = best_trial(facts), default_trial(facts)
    result = facts.session.result
    return environment.get_template("report.html.j2").render(
        facts=facts,
        session=facts.session,
        task=facts.task,
        result=result,
        w=wording,
        sentence=_sentence(facts),
        verdict_class=_verdict_class(facts),
        is_over=facts.session.state in {SessionState.FINISHED, SessionState.FAILED},
        n_search_measured=sum(is_measured(t) for t in facts.search_trials),
        n_measured=sum(is_measured(t) for t in facts.trials),
        n_invalid=sum(t.state is TrialState.INVALID for t in facts.trials),
        best=best,
        default=default,
        use=slot_use(held, facts.points, n_devices=facts.n_devices or len({(s.node_id, s.device) for s in held})),
        figures={
            "best": figures.best_so_far(facts),
            "seeds": figures.seed_comparison(facts),
            "effects": figures.parameter_effects(facts),
            "curves": figures.learning_curves(facts),
            "code": code_tree(facts),
            "slots": slot_timeline(held),
        },
        trials=tables.trial_rows(facts),
        failures=tables.failure_rows(facts),
        plan=plan_tables(facts),
        code=code_tables(facts),
        proposers=proposer_rows(facts),
        model=model_table(facts),
        budgets=tables.budget_rows(facts),
        preemptions=tables.preemption_rows(told),
        activity=facts.activity[-MAX_ACTIVITY:],
        n_activity_left_out=max(0, len(facts.activity) - MAX_ACTIVITY),
        mlflow_url=tables.web_address(facts.mlflow_url),
    )


def _verdict_class(facts: ReportInput) -> str:
    if facts.session.result is not None:
        return VERDICT_CLASS.get(facts.session.result.verdict, "open")
    return "bad" if facts.session.state is SessionState.FAILED else "open"


def _sentence(facts: ReportInput) -> str:
    if facts.session.result is not None:
        return facts.session.result.sentence
    best = best_trial(facts)
    if best is None:
        is_over = facts.session.state in {SessionState.FINISHED, SessionState.FAILED}
        return "No trial gave a value." if is_over else "No trial has been measured yet."
    metric = facts.task.objective.metric
    return (
        f"The session has no result yet. Best single value of {metric} so far: {wording.number(best.value)} "
        f"(trial {best.number}); it was not yet compared over fresh seeds."
    )


def write_report(facts: ReportInput, path: Path) -> Path:
    """Write the page, and beside it the patch of edited code that is best; old files go when the new ones are whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if facts.patch is not None:
        _write(path.with_name(patch_name(facts)), facts.patch)
    _write(path, build_report(facts).encode())
    return path


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)

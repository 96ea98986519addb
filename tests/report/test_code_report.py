"""Code trials in the report: the tree, the chosen code with its diff and patch, and no trust in any of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.planner.budget import Spend
from agent.planner.configuration import configuration_id
from agent.planner.history import History, Proposal
from agent.planner.plan import first_plan, revised
from agent.planner.verdict import conclude
from agent.report import ReportInput, build_report, write_report
from agent.report.code_patch import with_patch
from agent.report.code_trials import MAX_DIFF_LINES, code_tables
from agent.report.sample import sample_report_input
from agent.store.views import CodeState, ParamValue, Purpose, SessionView, TrialFacts, TrialState, TrialView
from agent.task import Task

pytestmark = pytest.mark.code

PATCH = b"""diff --git a/model.py b/model.py
--- a/model.py
+++ b/model.py
@@ -1,2 +1,3 @@
-hidden = 64
+hidden = 128
+# <script>alert(1)</script>
"""


def a_code(tree: int, parent: str | None = None, *, lines: int = 3, summary: str = "wider") -> CodeState:
    return CodeState(
        tree=f"{tree:040d}",
        commit=f"{tree:040d}",
        branch=f"trial/s1-t{tree}",
        parent=parent,
        added=lines,
        removed=1,
        files=("model.py",),
        summary=summary,
    )


def a_trial(
    number: int,
    value: float | None,
    edited: CodeState | None = None,
    *,
    seed: int = 0,
    params: dict[str, ParamValue] | None = None,
    note: str | None = None,
) -> TrialView:
    known = params or {}
    found = Proposal(
        params=known,
        configuration=configuration_id(known, edited),
        seed=seed,
        purpose=Purpose.SEARCH if seed == 0 else Purpose.REPLICATE,
        suggested_by="default" if number == 1 else "coder",
        why="",
        facts=TrialFacts(edited=edited, scorer="d"),
    ).as_trial(number, trial_id=f"s1-t{number}", session_id="s1")
    state = TrialState.MEASURED if value is not None else TrialState.INVALID
    return replace(found, value=value, state=state, note=note, ended_at=float(number), job_id=f"j{number}")


def a_task(space: dict[str, object] | None = None) -> Task:
    return Task.model_validate(
        {
            "task": "lm",
            "objective": {"metric": "score", "direction": "maximize"},
            "job": {"command": "train"},
            "space": space or {},
            "code": {"editable": ["model.py"]},
            "score": {"command": "score"},
            "budgets": {"trials": 5},
            "seeds": {"fresh": 3, "max_pairs": 3},
        }
    )


ONE = a_code(2)
TWO = a_code(3, "s1-t2", lines=5, summary="</td><script>alert(2)</script>")
SLOW = a_code(4, "s1-t2")
LONE = a_code(5)


def search() -> list[TrialView]:
    return [
        a_trial(1, 0.5),
        a_trial(2, 0.6, ONE),
        a_trial(3, 0.9, TWO),
        a_trial(4, None, SLOW, note="it trained 30 s, the base 12 s"),
        a_trial(5, 0.4, LONE),
    ]


def facts_of(task: Task, trials: list[TrialView], *, is_over: bool = True) -> ReportInput:
    plan = first_plan(task)
    for _ in range(3):
        plan = revised(plan, task, History.of(trials), Spend(device_seconds=0, wall_seconds=0))
    result = conclude(plan, task, History.of(trials)) if is_over else None
    sample = sample_report_input()
    return replace(
        sample,
        task=task,
        trials=tuple(trials),
        session=replace(sample.session, result=result),
        plan=None,
        jobs=(),
        points={},
        looks=(),
        patch=PATCH,
    )


def with_pairs() -> list[TrialView]:
    trials = search()
    for code, values in ((TWO, (0.9, 0.91, 0.92)), (None, (0.5, 0.52, 0.51)), (ONE, (0.6, 0.62, 0.61))):
        trials += [a_trial(len(trials) + 1 + i, v, code, seed=1000 + i) for i, v in enumerate(values)]
    return trials


@pytest.fixture(scope="module")
def facts() -> ReportInput:
    return facts_of(a_task(), with_pairs())


@pytest.fixture(scope="module")
def html(facts: ReportInput) -> str:
    return build_report(facts)


def test_each_trial_stands_below_the_one_that_its_code_was_made_from(facts: ReportInput) -> None:
    tables = code_tables(facts)
    assert tables is not None
    rows = [(row.number, row.depth, row.made_from, row.over_parent) for row in tables.rows]
    assert rows == [(2, 0, "base", "+0.1"), (3, 1, "2", "+0.3"), (4, 1, "2", "–"), (5, 0, "base", "-0.1")]
    assert (tables.n_trials, tables.n_valid) == (4, 3)
    assert [row.note for row in tables.rows if row.is_bad] == ["it trained 30 s, the base 12 s"]


def test_a_gain_over_the_parent_is_told_only_where_the_parameters_are_the_same(facts: ReportInput) -> None:
    other = a_trial(6, 0.8, a_code(6, "s1-t2"), params={"x": 1.0})
    tables = code_tables(replace(facts, trials=(*facts.trials, other)))
    assert tables is not None
    assert [row.over_parent for row in tables.rows if row.number == 6] == ["–"]


def test_code_whose_parents_are_not_there_is_shown_all_the_same(facts: ReportInput) -> None:
    lost = [a_trial(6, 0.8, a_code(6, "s1-t99")), a_trial(7, 0.8, a_code(7, "s1-t7"))]
    tables = code_tables(replace(facts, trials=(*facts.trials, *lost)))
    assert tables is not None
    assert [(row.number, row.depth) for row in tables.rows][-2:] == [(6, 0), (7, 0)]


def test_the_chosen_code_is_told_with_its_size_its_interval_and_how_to_take_it(html: str) -> None:
    assert "s1-t3: +5 -1 lines in model.py" in html
    assert "against that code with the same parameters +0.300" in html
    assert "nightlab research take s1" in html
    assert "git apply s1.patch" in html
    assert '<span class="removed">-hidden = 64</span>' in html


def test_code_that_was_not_shown_to_be_better_is_told_as_such(facts: ReportInput) -> None:
    said = "It was not shown to beat the default: inconclusive, invalid."
    assert said not in build_report(replace(facts, session=with_result(facts, "better", "supported")))
    assert said in build_report(replace(facts, session=with_result(facts, "invalid", "inconclusive")))


def with_result(facts: ReportInput, comparison: str, verdict: str) -> SessionView:
    assert facts.session.result is not None
    return replace(facts.session, result=replace(facts.session.result, comparison=comparison, verdict=verdict))


def test_summaries_and_diffs_are_escaped(html: str) -> None:
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "&lt;script&gt;alert(2)" in html


def test_the_tree_is_drawn_in_the_colors_of_the_page(html: str) -> None:
    section = html[html.index('id="code"') : html.index('id="best-so-far"')]
    assert "var(--search)" in section
    assert "var(--best)" in section
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_a_session_without_parameters_has_no_figure_of_them(html: str) -> None:
    assert 'id="effects"' not in html


def test_edited_code_is_marked_among_the_effects_of_parameters() -> None:
    space: dict[str, object] = {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2}}
    x: dict[str, ParamValue] = {"x": 0.2}
    trials = [a_trial(1, 0.5, params=x), a_trial(2, 0.7, params={"x": 0.5}), a_trial(3, 0.6, ONE, params=x)]
    effects = build_report(facts_of(a_task(space), trials, is_over=False))
    assert "var(--other)" in effects[effects.index('id="effects"') :].split("</section>")[0]


def test_a_long_diff_is_cut_and_the_patch_is_whole(facts: ReportInput, tmp_path: Path) -> None:
    long = PATCH + b"+x\n" * 2000
    html = build_report(replace(facts, patch=long))
    assert html.count('<span class="added">+x</span>') < MAX_DIFF_LINES
    assert "further lines in s1.patch" in html
    path = write_report(replace(facts, patch=long), tmp_path / "s1.html")
    assert (tmp_path / "s1.patch").read_bytes() == long
    assert sorted(p.name for p in path.parent.iterdir()) == ["s1.html", "s1.patch"]


def test_a_patch_that_can_not_be_read_is_said_and_the_report_is_written(facts: ReportInput, tmp_path: Path) -> None:
    found = with_patch(replace(facts, patch=None), tmp_path)
    assert found.patch is None
    html = build_report(found)
    assert "Its patch could not be read: there is no edited code in" in html
    assert "git apply" not in html


def test_a_session_under_way_tells_the_best_code_so_far() -> None:
    html = build_report(facts_of(a_task(), search(), is_over=False))
    assert "s1-t3: +5 -1 lines in model.py" in html


def test_nothing_is_said_of_code_where_none_is_edited_and_of_none_that_won(facts: ReportInput) -> None:
    assert code_tables(sample_report_input()) is None
    only_base = build_report(facts_of(a_task(), [a_trial(1, 0.9), a_trial(2, 0.4, ONE)], is_over=False))
    assert 'id="code"' in only_base
    assert "research take" not in only_base

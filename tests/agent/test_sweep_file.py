"""Sweep files: every mistake is named by its path, once, with what was seen and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as rules
from hypothesis import strategies as st

from agent.sweeps.sweep_file import SweepError, load_sweep

GOOD = """
sweep: digits-nightly
task: task.yaml
method: {kind: grid, values: {lr: [1e-3, 1e-2]}}
finish_by: "06:30"
"""


def problems_of(text: str, folder: Path) -> list[tuple[str, str]]:
    file = folder / "sweep.yaml"
    file.write_text(text)
    with pytest.raises(SweepError) as caught:
        load_sweep(file)
    return [(problem.path, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize("time", ["22:30", "6:30", "07:00", "2026-12-24 07:00"])
def test_a_time_of_day_without_quotes_is_a_time_of_day(time: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(GOOD.replace('"06:30"', time))
    assert load_sweep(file).finish_by == time


@pytest.mark.parametrize(
    ("old", "new", "path", "parts"),
    [
        ("task:", "taks:", "taks", ["did you mean 'task'"]),
        ("kind: grid", "kind: gird", "method.kind", ["'grid', 'list', 'random', 'optuna'", "'gird'"]),
        ("values:", "value:", "method.value", ["did you mean 'values'"]),
        ("[1e-3, 1e-2]", "[[1]]", "method.values.lr.0", ["valid string", "valid number", "seen: [1]"]),
        ("[1e-3, 1e-2]", "[]", "method.values.lr", ["at least 1 item"]),
        ("{lr: [1e-3, 1e-2]}", "{}", "method.values", ["at least 1 item"]),
        ("digits-nightly", "'two words'", "sweep", ["'two words'"]),
        ("finish_by:", "overlap: wait\nfinish_by:", "overlap", ["'skip', 'queue' or 'replace'", "'wait'"]),
        ("finish_by:", "replicates: 0\nfinish_by:", "replicates", ["greater than or equal to 1", "0"]),
        ("finish_by:", "priority_class: critical\nfinish_by:", "priority_class", ["'exploratory' or 'normal'"]),
        ("finish_by:", "budgets: {cost_usd: 3}\nfinish_by:", "budgets", ["usd_per_device_hour"]),
        ("finish_by:", "notify: [{on: [finish]}]\nfinish_by:", "notify.0", ["url or url_file"]),
        ("finish_by:", "matrix: {tasks: [a.yaml]}\nfinish_by:", "", ["task, or matrix.tasks"]),
    ],
)
def test_a_mistake_is_told_once_by_its_path(old: str, new: str, path: str, parts: list[str], tmp_path: Path) -> None:
    assert old in GOOD
    found = [message for at, message in problems_of(GOOD.replace(old, new), tmp_path) if at == path]
    assert len(found) == 1, found
    assert all(part in found[0] for part in parts), found[0]


# Never with the key `sweep`, so that each of them has to be refused.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["task", "method", "matrix", "budgets", "watch", "notify", "finish_by", "grid", "x"])


@rules(max_examples=25, deadline=None)
@given(document=st.dictionaries(KEYS, VALUES, max_size=5), method=VALUES)
def test_no_document_makes_it_fail_without_words(
    document: dict[str, object], method: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("any") / "sweep.yaml"
    file.write_text(yaml.safe_dump({**document, "method": {"kind": "grid", "values": method}}))
    with pytest.raises(SweepError) as caught:
        load_sweep(file)
    assert all(problem.message for problem in caught.value.problems)

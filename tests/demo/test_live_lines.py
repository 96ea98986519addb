"""Without a terminal: one line an event, each once."""

from __future__ import annotations

from dataclasses import replace

from live_builder import NOW, preemption, snapshot

from agent.store.views import ActivityView
from nightlab.live.lines import Narrator


def test_nothing_is_told_twice():
    narrator = Narrator()
    assert narrator.news(snapshot())
    assert narrator.news(snapshot(at=NOW + 1)) == []


def test_new_activity_is_one_line_with_its_time():
    narrator = Narrator()
    narrator.news(snapshot())
    more = (*snapshot().activity, ActivityView(at=NOW, step="assess", text="s1-t9 is better\n(by far)"))
    assert narrator.news(snapshot(activity=more)) == ["[  1:23] assess: s1-t9 is better (by far)"]


def test_better_value_is_told():
    narrator = Narrator()
    narrator.news(snapshot())
    (line,) = narrator.news(snapshot(best=0.99, best_trial=12))
    assert "0.99" in line
    assert "trial 12" in line


def test_preemption_is_told_stage_by_stage():
    narrator = Narrator()
    narrator.news(snapshot(preemptions=()))
    gone = replace(preemption(), left_at=None, resumed_attempt=None, resumed_at=None)
    stages = [
        gone,
        replace(gone, left_at=preemption().left_at),
        preemption(),
    ]
    told = [narrator.news(snapshot(preemptions=(stage,))) for stage in stages]
    assert [len(lines) for lines in told] == [1, 1, 1]
    assert "make room for j7" in told[0][0]
    assert "checkpoint of step 41" in told[1][0]
    assert "attempt 2" in told[2][0]

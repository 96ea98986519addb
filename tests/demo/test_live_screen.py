"""The live view fits its terminal, shows what happens, and can not be steered by what jobs write."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from live_builder import NOW, preemption, slots, snapshot
from rich.console import Console

from agent.report.timeline import Preemption
from agent.store.views import ActivityView, SessionState
from nightlab.live import LiveSnapshot, Phase, screenshot
from nightlab.live.screen import render
from nightlab.live.text import sparkline

SIZES = [(80, 24), (100, 30), (120, 40)]


def lines_of(shown: LiveSnapshot, width: int = 100, height: int = 30) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(render(shown, width, height))
    return captured.get().splitlines()


def text_of(shown: LiveSnapshot, width: int = 100, height: int = 30) -> str:
    return "\n".join(lines_of(shown, width, height))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_fits_the_terminal(width, height):
    lines = lines_of(snapshot(), width, height)
    assert len(lines) <= height
    assert max(len(line) for line in lines) <= width


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_names_slots_queue_best_spend_and_reason_at_every_size(width, height):
    text = text_of(snapshot(), width, height)
    for shown in ("trial 9", "34/60", "preempting", "0.97778", "critical", "9 / 18", "lr was too low", "MLflow up"):
        assert shown in text


def test_says_for_whom_an_attempt_steps_aside():
    assert "→ j10" in text_of(snapshot(), 80, 24)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_many_slots_are_summed_up(width, height):
    many = tuple(replace(slots()[0], name=f"cpu:{n}") for n in range(64))
    lines = lines_of(snapshot(slots=many), width, height)
    assert len(lines) <= height
    assert any("64/64 busy" in line for line in lines)
    assert any("+" in line and "busy" in line for line in lines[2:])


def test_empty_session_can_be_shown():
    empty = snapshot(
        slots=(), queue=(), best_series=(), best=None, best_trial=None, best_params=(), default=None, activity=()
    )
    assert "nothing measured yet" in text_of(empty)


def fate(**changes: object) -> Preemption:
    return replace(preemption(), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (fate(left_at=None, resumed_attempt=None, resumed_at=None, state="stopping"), "checkpointing"),
        (fate(resumed_attempt=None, resumed_at=None, state="queued"), "saved at step 41, waits"),
        (fate(state="running"), "resumed at step 41"),
        (fate(), "resumed at step 41, done"),
    ],
)
def test_each_stage_of_a_preemption_is_told(told, words):
    assert words in text_of(snapshot(preemptions=(told,)), 120, 40)


def test_resuming_attempt_is_marked():
    back = replace(slots()[0], is_resumed=True, step=None, value=None)
    assert "resuming" in text_of(snapshot(slots=(back,)))


def test_escape_codes_and_markup_from_outside_are_shown_as_text():
    nasty = ActivityView(at=NOW, step="assess", text="\x1b[2Jgone [bold]not markup[/bold]\nsecond line")
    text = text_of(snapshot(activity=(nasty,), notices=("\x1b]0;title\x07",)))
    assert "\x1b" not in text
    assert "[bold]not markup[/bold]" in text


def test_finished_session_says_so():
    assert "finished" in text_of(snapshot(phase=Phase.FINISHED, session_state=SessionState.FINISHED))


def test_the_footer_says_what_ctrl_c_does_while_there_is_something_to_stop():
    def foot_of(shown: LiveSnapshot) -> str:
        console = Console(width=100, height=30, file=io.StringIO(), force_terminal=False, legacy_windows=False)
        with console.capture() as captured:
            console.print(render(shown, 100, 30, ctrl_c="Ctrl-C leaves it running"))
        return captured.get().splitlines()[-1]

    assert "Ctrl-C leaves it running" in foot_of(snapshot())
    assert "Ctrl-C" not in foot_of(snapshot(phase=Phase.FINISHED, session_state=SessionState.FINISHED))


def test_screenshot_is_an_image_of_the_screen_that_asks_for_nothing_outside():
    svg = screenshot(snapshot(mlflow_url=None))
    assert re.findall(r"https?://[^\"') <]+", svg) == ["http://www.w3.org/2000/svg"]
    assert svg.startswith("<svg")
    assert "preempting" in svg


@pytest.mark.parametrize(
    ("values", "width", "line"),
    [([], 5, ""), ([1.0], 5, "▄"), ([0.0, 1.0], 5, "▁█"), ([0.0, 0.5, 1.0, 1.0], 2, "▁█")],
)
def test_sparkline(values, width, line):
    assert sparkline(values, width) == line

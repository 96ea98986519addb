"""On which rung a model stands, from what became of its calls; instants are given."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.llm.chat import Outcome, Trouble
from agent.llm.rung import Rung
from agent.llm.standing import RUNGS, Standing, Steps, Tried, after, below, start, stood, tried

STEPS = Steps(n_unusable=3, n_good=5, up_s=100.0, first_wait_s=10.0, longest_wait_s=60.0)
LETTERS: dict[str, Outcome | Trouble] = {
    "g": Outcome.USED,
    "b": Outcome.UNUSABLE,
    "r": Trouble.REFUSED,
    "u": Trouble.UNREACHABLE,
    "t": Trouble.TIMED_OUT,
    "o": Trouble.OVER_BUDGET,
    "f": Trouble.FAILED,
}


def _run(letters: str, standing: Standing | None = None, *, at: float = 0.0, every: float = 0.0) -> Standing:
    """Each call on the rung that is due then, where the question has a menu."""
    standing = standing or start(STEPS)
    for n, letter in enumerate(letters):
        now = at + n * every
        rung = standing.next_rung(STEPS, now, has_menu=True)
        standing = after(standing, Tried(rung=rung, outcome=LETTERS[letter], at=now), STEPS)
    return standing


@pytest.mark.parametrize(
    ("letters", "rung"),
    [
        ("", Rung.TOOLS),
        ("bb", Rung.TOOLS),
        ("bbb", Rung.SCHEMA),
        ("bbgbb", Rung.TOOLS),
        ("r", Rung.SCHEMA),
        ("rr", Rung.FENCED),
        ("rrbbb", Rung.MENU),
        ("rrbbbbbb", Rung.NONE),
        ("uuuuuuuuu", Rung.TOOLS),
        ("ttttttttt", Rung.TOOLS),
        ("ooooooooo", Rung.TOOLS),
        ("bubtb", Rung.SCHEMA),
        ("fff", Rung.SCHEMA),
        ("fffffffffff", Rung.FENCED),
    ],
)
def test_unusable_answers_in_a_row_and_refusals_cost_a_rung_and_silence_costs_none(letters: str, rung: Rung) -> None:
    assert _run(letters).rung is rung


def test_a_better_rung_is_tried_once_after_enough_good_answers() -> None:
    lower = _run("bbb")
    assert _run("gggg", lower).next_rung(STEPS, 1.0, has_menu=True) is Rung.SCHEMA
    due = _run("ggggg", lower)
    assert due.next_rung(STEPS, 1.0, has_menu=True) is Rung.TOOLS
    assert _run("g", due).rung is Rung.TOOLS


def test_a_better_rung_is_tried_after_enough_time() -> None:
    lower = _run("bbb", at=50.0)
    assert lower.next_rung(STEPS, 149.9, has_menu=True) is Rung.SCHEMA
    assert lower.next_rung(STEPS, 150.0, has_menu=True) is Rung.TOOLS


def test_each_vain_try_of_a_better_rung_doubles_the_wait_for_the_next() -> None:
    standing = _run("bbb")
    standing = _run("b", standing, at=100.0)
    assert standing.rung is Rung.SCHEMA
    assert standing.next_rung(STEPS, 299.0, has_menu=True) is Rung.SCHEMA
    assert standing.next_rung(STEPS, 300.0, has_menu=True) is Rung.TOOLS
    standing = _run("r", standing, at=300.0)
    assert standing.next_rung(STEPS, 699.0, has_menu=True) is Rung.SCHEMA
    assert standing.next_rung(STEPS, 700.0, has_menu=True) is Rung.TOOLS


def test_one_that_comes_up_and_soon_falls_waits_longer_and_one_that_stays_is_forgiven() -> None:
    up = _run("g", _run("bbb"), at=100.0)
    assert up.rung is Rung.TOOLS
    fell = _run("bbb", up, at=101.0)
    assert fell.rung is Rung.SCHEMA
    assert fell.next_rung(STEPS, 250.0, has_menu=True) is Rung.SCHEMA
    stayed = _run("gggg" + "bbb", up, at=101.0)
    assert stayed.next_rung(STEPS, 250.0, has_menu=True) is Rung.TOOLS


def test_from_none_it_comes_back_by_time() -> None:
    none = _run("rrr" + "bbb")
    assert none.rung is Rung.NONE
    assert none.next_rung(STEPS, 99.0, has_menu=True) is Rung.NONE
    assert none.next_rung(STEPS, 100.0, has_menu=True) is Rung.MENU
    assert none.next_rung(STEPS, 100.0, has_menu=False) is Rung.FENCED


def test_a_question_without_a_menu_is_not_asked_on_the_rung_of_menus() -> None:
    menu = _run("rrbbb")
    assert menu.rung is Rung.MENU
    assert menu.next_rung(STEPS, 1.0, has_menu=False) is Rung.NONE
    assert menu.next_rung(STEPS, 100.0, has_menu=False) is Rung.FENCED


def test_never_better_than_the_task_says() -> None:
    steps = Steps(best=Rung.FENCED, up_s=1.0)
    assert start(steps).next_rung(steps, 1e9, has_menu=True) is Rung.FENCED


def test_a_last_resort_on_a_worse_rung_says_nothing_of_the_own_rung() -> None:
    standing = _run("bb")
    for outcome in (Outcome.USED, Outcome.UNUSABLE):
        assert after(standing, Tried(rung=Rung.MENU, outcome=outcome, at=0.0), STEPS) == standing


@pytest.mark.parametrize(("n", "wait_s"), [(1, 10), (2, 20), (3, 40), (4, 60), (5, 60), (100_000, 60)])
def test_silence_is_waited_out_ever_longer_up_to_a_bound(n: int, wait_s: int) -> None:
    assert _run("u" * min(n, 200), at=1000.0).wait_until(STEPS) == 1000.0 + wait_s


def test_an_answer_of_any_kind_ends_the_silence() -> None:
    for letter in "gbr":
        assert _run("uuu" + letter).wait_until(STEPS) is None


def test_below_leaves_out_the_menu_where_there_is_none() -> None:
    assert [below(rung, has_menu=True) for rung in RUNGS] == [*RUNGS[1:], Rung.NONE]
    assert below(Rung.FENCED, has_menu=False) is Rung.NONE


def test_rows_of_the_accounts_are_calls_again() -> None:
    assert tried("schema", "unusable", 3.0) == Tried(rung=Rung.SCHEMA, outcome=Outcome.UNUSABLE, at=3.0)
    assert tried("menu", "timed_out", 3.0) == Tried(rung=Rung.MENU, outcome=Trouble.TIMED_OUT, at=3.0)
    assert tried(None, "used", 3.0) is None
    assert tried("tools", "astonished", 3.0) is None


_calls = st.lists(
    st.tuples(st.sampled_from(RUNGS[:-1]), st.sampled_from([*Outcome, *Trouble]), st.floats(0, 50)), max_size=80
)


@settings(max_examples=20)
@given(_calls, st.booleans(), st.floats(0, 1e5))
def test_any_history_leaves_a_sound_standing_and_the_same_one_when_told_again(
    calls: list[tuple[Rung, Outcome | Trouble, float]], has_menu: bool, later: float
) -> None:
    at, told = 0.0, []
    for rung, outcome, gap in calls:
        at += gap
        told.append(Tried(rung=rung, outcome=outcome, at=at))
    standing = stood(STEPS, told)
    assert standing == stood(STEPS, told)
    assert standing.n_unusable < STEPS.n_unusable
    until = standing.wait_until(STEPS)
    assert until is None or until <= at + STEPS.longest_wait_s
    rung = standing.next_rung(STEPS, at + later, has_menu=has_menu)
    assert has_menu or rung is not Rung.MENU
    assert RUNGS.index(rung) >= RUNGS.index(standing.rung) - 2


def _rescued_by(rung: Rung, times: int, *, n_good_between: int = 0) -> Standing:
    """Questions by tools whose answers were of no use, and which another rung answered."""
    standing = start(STEPS)
    good = Tried(rung=Rung.TOOLS, outcome=Outcome.USED, at=0.0)
    for _ in range(times):
        for call in (*[good] * n_good_between, replace(good, outcome=Outcome.UNUSABLE), replace(good, rung=rung)):
            standing = after(standing, call, STEPS)
    return standing


def test_a_rung_whose_questions_a_worse_one_has_to_answer_again_and_again_is_left() -> None:
    assert _rescued_by(Rung.SCHEMA, 1).rung is Rung.TOOLS
    assert _rescued_by(Rung.SCHEMA, 2).rung is Rung.SCHEMA
    assert _rescued_by(Rung.SCHEMA, 2, n_good_between=STEPS.n_good - 1).rung is Rung.SCHEMA


def test_rescues_far_apart_and_by_a_menu_cost_no_rung() -> None:
    assert _rescued_by(Rung.SCHEMA, 9, n_good_between=STEPS.n_good).rung is Rung.TOOLS
    assert _rescued_by(Rung.MENU, 9, n_good_between=1).rung is Rung.TOOLS

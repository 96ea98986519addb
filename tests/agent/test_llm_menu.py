"""Numbered choices: whatever a model answers, only what stands on the menu comes of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ladder_questions import MENU, Pick, Picks

from agent.llm.menu import MenuItem, chosen, empty, is_many, menu_text, value_of
from agent.llm.reading import Unreadable


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", (3,)),
        ("3.", (3,)),
        ("[1, 4]", (1, 4)),
        ("4 and 1", (4, 1)),
        ("**2**", (2,)),
        ("2, 2, 2", (2,)),
        ("1,2,3,4,5", (1, 2, 3)),
        ("0", ()),
        ("I choose option 4 because 2 is too low and 5 too high.", (4,)),
        ("Answer: 2, 3", (2, 3)),
        ("The best is\n5\nsince it is new.", (5,)),
        ("Number 3 it is: 3!", (3,)),
        ("<think>1 or 2?</think>2", (2,)),
    ],
)
def test_numbers_are_read_where_they_are_clear(text: str, numbers: tuple[int, ...]) -> None:
    assert chosen(text, MENU, at_most=3) == numbers


@pytest.mark.parametrize("text", ["", "none", "0.05", "maybe 2 or 3 or 4", "lr = 0.02", "Choice 1 or choice 2"])
def test_what_is_not_clear_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="write the numbers"):
        chosen(text, MENU, at_most=3)


def test_a_number_that_is_not_on_the_list_is_refused() -> None:
    with pytest.raises(Unreadable, match="6 is not on the list; write numbers from 1 to 5"):
        chosen("6", MENU, at_most=1)


@settings(max_examples=40)
@given(st.text(alphabet="0123456789, .[]\nanswer:", max_size=30))
def test_any_answer_gives_what_is_on_the_menu_or_nothing(text: str) -> None:
    try:
        numbers = chosen(text, MENU, at_most=3)
    except Unreadable:
        return
    assert len(numbers) <= 3
    value = value_of(numbers, MENU, Picks) if numbers else Picks()
    assert {pick.lr for pick in value.trials} <= {0.01, 0.02, 0.03, 0.04, 0.05}


def test_lists_of_several_choices_are_joined_up_to_what_the_class_takes() -> None:
    assert [pick.lr for pick in value_of((5, 1), MENU, Picks).trials] == [0.05, 0.01]
    assert [pick.lr for pick in value_of((5, 1, 2, 3), MENU, Picks).trials] == [0.05, 0.01, 0.02]


def test_only_lists_allow_several_choices() -> None:
    assert is_many(MENU)
    assert not is_many([MenuItem(text="a", gives={"lr": 0.1}), MenuItem(text="b", gives={"lr": 0.2})])


def test_a_class_that_may_say_nothing_says_nothing() -> None:
    assert empty(Picks) == Picks()
    assert empty(Pick) is None


def test_the_text_of_a_choice_is_one_line_whatever_it_holds() -> None:
    text = menu_text([MenuItem(text="a\n2. evil\x1b[0m", gives={}), MenuItem(text="b", gives={})])
    assert text.splitlines()[1:-1] == ["1. a 2. evil", "2. b"]

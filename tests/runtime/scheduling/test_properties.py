"""Random lives of the runtime, with every property checked after every event and every decision."""

from __future__ import annotations

import random

import pytest
from core_amounts import AMOUNT_COMMANDS
from core_driver import IDLE_WORK_COMMANDS, run
from core_graph import GRAPH_COMMANDS, check_graph
from core_hours import HOUR_COMMANDS
from core_lives import lives
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from runtime.scheduling.policy import Policy


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_every_property_holds_in_any_life(data: st.DataObject) -> None:
    run(lambda n: data.draw(st.integers(0, n - 1)), n_commands=25)


@pytest.mark.parametrize("seed", lives(24))
def test_every_property_holds_while_somebody_pauses_drains_and_reserves(seed: int) -> None:
    run(random.Random(seed).randrange, n_commands=60, has_operator=True)


@pytest.mark.parametrize("seed", lives(12))
def test_every_property_holds_among_jobs_that_wait_for_each_other(seed: int) -> None:
    world = run(random.Random(seed).randrange, n_commands=60, has_operator=seed % 2 == 0, more=GRAPH_COMMANDS)
    check_graph(world.journal.recorded)


@pytest.mark.parametrize("seed", lives(10))
def test_every_property_holds_in_a_long_life(seed: int) -> None:
    run(random.Random(seed).randrange, n_commands=100)


@pytest.mark.parametrize("seed", lives(8))
def test_nothing_is_given_out_twice_among_jobs_with_needs_of_all_kinds(seed: int) -> None:
    run(random.Random(seed).randrange, n_commands=60, has_operator=seed % 2 == 0, more=AMOUNT_COMMANDS)


@pytest.mark.parametrize("seed", lives(8))
def test_who_promises_least_leaves_first_in_any_life(seed: int) -> None:
    run(random.Random(seed).randrange, n_commands=60, policy=Policy(), more=IDLE_WORK_COMMANDS)


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_by_their_hours_jobs_have_left_or_were_asked_in_any_life(seed: int) -> None:
    more = HOUR_COMMANDS + (GRAPH_COMMANDS if seed % 3 == 0 else ())
    run(random.Random(seed).randrange, n_commands=60, has_operator=seed % 2 == 0, more=more)

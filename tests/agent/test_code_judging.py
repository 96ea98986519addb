"""When the value of edited code counts, which edit is chosen, and what its last change brings by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.budget import Spend, n_confirming
from agent.planner.configuration import configuration_id
from agent.planner.edited import Refusal, left_unjudged, not_counted, why_not_counted
from agent.planner.history import History
from agent.planner.plan import Phase, Plan, first_plan, n_search_trials, next_work, revised, unwanted
from agent.planner.plan_text import plan_from_json, plan_to_json
from agent.planner.ranking import ranking
from agent.planner.simplicity import choose
from agent.planner.verdict import conclude
from agent.store.rows import result_from_json, result_to_json
from agent.store.views import CodeState, FinalResult, ParamValue, Purpose, TrialFacts, TrialState, TrialView
from agent.task import Task

DEFAULT: dict[str, ParamValue] = {"x": 0.2, "kind": "a"}
GOOD: dict[str, ParamValue] = {"x": 0.7, "kind": "a"}
NOTHING_SPENT = Spend(device_seconds=0.0, wall_seconds=0.0, n_slots=2)


def a_code_task(code: dict[str, Any] | None = None, **changes: Any) -> Task:
    given = {"code": {"editable": ["model.py"]} | (code or {}), "held_out": None, "score": {"command": "score"}}
    return a_task(**(given | changes))


def some_code(tree: int, *, lines: int = 3, parent: str | None = None) -> CodeState:
    return CodeState(
        tree=f"{tree:040d}",
        commit=f"{tree:040d}",
        branch=f"trial/s1-{tree}",
        parent=parent,
        added=lines,
        files=("m.py",),
    )


def scored(edited: CodeState | None = None, *, run_s: float | None = 10.0, cpu_s: float | None = None) -> TrialFacts:
    return TrialFacts(edited=edited, scorer="d" * 64, run_seconds=run_s, cpu_seconds=cpu_s)


ONE, TWO = some_code(1), some_code(2, parent="s1-t2", lines=5)


# --- what counts


def test_edited_code_that_trained_much_longer_than_the_base_does_not_count() -> None:
    task = a_code_task()
    base = [a_trial(task, n, DEFAULT, 0.5, seed=n, facts=scored(run_s=s)) for n, s in ((1, 10.0), (2, 12.0), (3, 40.0))]
    slow = a_trial(task, 4, DEFAULT, 0.9, facts=scored(ONE, run_s=30.0))
    reason = why_not_counted(slow, task, a_history(*base))
    assert reason is not None
    assert reason.text.startswith("it trained 30 s, the base 12 s: more than 1.5 times as long (code.max_slowdown)")
    as_long = replace(slow, facts=scored(ONE, run_s=18.0))
    assert why_not_counted(as_long, task, a_history(*base)) is None
    assert why_not_counted(slow, a_code_task({"max_slowdown": None}), a_history(*base)) is None
    assert why_not_counted(slow, a_code_task({"max_slowdown": 3}), a_history(*base)) is None


def test_a_busy_machine_slows_the_clock_and_not_the_processor_time() -> None:
    task = a_code_task()
    base = a_trial(task, 1, DEFAULT, 0.5, facts=scored(run_s=10.0, cpu_s=9.0))
    delayed = a_trial(task, 2, DEFAULT, 0.9, facts=scored(ONE, run_s=30.0, cpu_s=11.0))
    assert why_not_counted(delayed, task, a_history(base)) is None
    longer = replace(delayed, facts=scored(ONE, run_s=30.0, cpu_s=27.0))
    reason = why_not_counted(longer, task, a_history(base))
    assert reason is not None
    assert reason.text.startswith(
        "it trained 30 s (27 s of processor time), the base 10 s (9 s of processor time): more than 1.5 times as long"
    )
    by_start = replace(delayed, facts=scored(ONE, run_s=30.0, cpu_s=13.8))
    assert why_not_counted(by_start, task, a_history(base)) is None
    more = replace(delayed, facts=scored(ONE, run_s=30.0, cpu_s=13.9))
    assert why_not_counted(more, task, a_history(base)) is not None
    at_once = replace(delayed, facts=scored(ONE, run_s=10.0, cpu_s=27.0))  # On more cores.
    assert why_not_counted(at_once, task, a_history(base)) is None
    unknown = a_trial(task, 1, DEFAULT, 0.5, facts=scored(run_s=10.0))
    assert why_not_counted(delayed, task, a_history(unknown)) is not None


def test_what_a_start_takes_more_on_a_busy_machine_is_no_slowdown() -> None:
    task = a_code_task()
    base = a_trial(task, 1, DEFAULT, 0.5, facts=scored(run_s=0.2))
    edited = a_trial(task, 2, DEFAULT, 0.6, facts=scored(ONE, run_s=1.1))
    assert why_not_counted(edited, task, a_history(base)) is None
    longer = replace(edited, facts=scored(ONE, run_s=1.6))
    assert why_not_counted(longer, task, a_history(base)) is not None


@pytest.mark.parametrize(("device", "counts"), [("cpu", True), (None, True), ("NVIDIA H200", False)])
def test_on_an_accelerator_the_clock_alone_decides(device: str | None, counts: bool) -> None:
    """Its own time is none of the processor's, which may well be idle meanwhile."""
    task = a_code_task()
    base = a_trial(task, 1, DEFAULT, 0.5, facts=replace(scored(cpu_s=5.0), device_model=device))
    longer = a_trial(task, 2, DEFAULT, 0.9, facts=replace(scored(ONE, run_s=40.0, cpu_s=6.0), device_model=device))
    assert (why_not_counted(longer, task, a_history(base)) is None) is counts


def test_the_base_with_the_same_parameters_sets_the_time() -> None:
    task = a_code_task()
    small = a_trial(task, 1, DEFAULT, 0.5, facts=scored(run_s=10.0))
    large = a_trial(task, 2, GOOD, 0.5, facts=scored(run_s=100.0))
    edited = a_trial(task, 3, GOOD, 0.9, facts=scored(ONE, run_s=110.0))
    assert why_not_counted(edited, task, a_history(small, large)) is None
    assert why_not_counted(edited, task, a_history(small)) is not None


def test_a_time_is_judged_as_soon_as_the_base_is_known() -> None:
    task = a_code_task()
    slow = a_trial(task, 2, DEFAULT, 0.9, facts=scored(ONE, run_s=30.0))
    fair = a_trial(task, 3, DEFAULT, 0.8, facts=scored(TWO, run_s=11.0))
    running = a_trial(task, 1, DEFAULT)
    assert list(not_counted(task, a_history(running, slow, fair))) == []
    base = a_trial(task, 1, DEFAULT, 0.5, facts=scored(run_s=10.0))
    assert [trial.trial_id for trial, _ in not_counted(task, a_history(base, slow, fair))] == ["s1-t2"]
    assert list(not_counted(a_task(), a_history(base, slow))) == []


def test_an_interrupted_training_is_not_judged_by_its_time_and_that_is_said() -> None:
    task = a_code_task()
    base = a_trial(task, 1, DEFAULT, 0.5, facts=scored(run_s=10.0))
    interrupted = a_trial(task, 2, DEFAULT, 0.9, facts=scored(ONE, run_s=None))
    assert why_not_counted(interrupted, task, a_history(base)) is None
    assert "code.max_slowdown" in (left_unjudged(interrupted, task) or "")
    assert left_unjudged(base, task) is None
    assert left_unjudged(interrupted, a_code_task({"max_slowdown": None})) is None


def test_what_edited_code_says_of_itself_is_no_value() -> None:
    task = a_code_task()
    own_word = a_trial(task, 1, DEFAULT, 0.99, facts=TrialFacts(edited=ONE))
    found = why_not_counted(own_word, task, a_history())
    assert found is not None
    assert found.refusal is Refusal.SELF_REPORTED
    assert why_not_counted(a_trial(task, 1, DEFAULT, 0.99), task, a_history()) is None


def test_a_held_out_look_is_judged_neither_by_its_time_nor_by_its_seed() -> None:
    task = a_code_task()
    base = of_seeds(task, 1, [0.51, 0.52, 0.53])
    look = a_trial(task, 9, DEFAULT, 0.9, purpose=Purpose.HELD_OUT, facts=scored(ONE, run_s=99.0))
    assert why_not_counted(look, task, a_history(*base, *of_seeds(task, 4, [0.9, 0.9], ONE))) is None
    assert why_not_counted(replace(look, facts=TrialFacts(edited=ONE)), task, a_history(*base)) is not None


def of_seeds(task: Task, first: int, values: list[float], edited: CodeState | None = None) -> list[TrialView]:
    return [
        a_trial(task, first + i, DEFAULT, v, seed=1000 + i, purpose=Purpose.REPLICATE, facts=scored(edited))
        for i, v in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("base", "edited", "counts"),
    [
        ([0.51, 0.52, 0.53], [0.6, 0.6, 0.6], False),
        ([0.51, 0.52, 0.53], [0.6, 0.6], True),
        ([0.51, 0.52, 0.53], [0.6, 0.6, 0.61], True),
        ([0.5, 0.5, 0.5], [0.6, 0.6, 0.6], True),
        ([0.5, 0.5, 0.51], [0.6, 0.6, 0.6], True),
        ([0.5, 0.5, 0.51], [0.6] * 6, False),
    ],
)
def test_an_edit_that_gives_one_value_whatever_the_seed_does_not_count(
    base: list[float], edited: list[float], counts: bool
) -> None:
    task = a_code_task()
    own = of_seeds(task, 20, edited, ONE)
    history = a_history(*of_seeds(task, 1, base), *own)
    assert (why_not_counted(own[-1], task, history) is None) is counts
    assert len(list(not_counted(task, history))) == (0 if counts else len(edited))


def test_a_configuration_that_was_found_to_ignore_its_seed_is_refused_on_every_further_one() -> None:
    task = a_short_task()
    refused = replace(of_seeds(task, 9, [0.6], ONE)[0], value=None, exit_reason=Refusal.SEED_UNUSED.value)
    refused = replace(refused, state=TrialState.INVALID)
    (further,) = of_seeds(task, 10, [0.6], ONE)
    history = a_history(*of_seeds(task, 1, [0.5, 0.51]), refused, further)
    assert [trial.number for trial, _ in not_counted(task, history)] == [10]


def test_no_pairs_are_run_of_a_chosen_edit_that_ignores_its_seed() -> None:
    task = a_short_task()
    trials = searched(task)
    refused = replace(
        a_trial(task, 4, DEFAULT, seed=1000, purpose=Purpose.REPLICATE, state=TrialState.INVALID, facts=scored(TWO)),
        exit_reason=Refusal.SEED_UNUSED.value,
        note="it does not use its seed",
    )
    plan = planned(task, *trials)
    history = a_history(*trials, refused)
    assert next_work(plan, task, history, 99, NoMore()) == []
    over = revised(plan, task, history, NOTHING_SPENT)
    assert over.phase is Phase.DONE
    result = conclude(over, task, history)
    assert result is not None
    assert (result.comparison, result.verdict) == ("invalid", "inconclusive")
    assert "Its values do not count: it does not use its seed." in result.sentence


# --- which one is chosen


def led_by(task: Task, *found: tuple[int, float | list[float], int]) -> History:
    """The default with 0.5 and then edits of so many lines with these values, the first one in the search."""
    trials = [a_trial(task, 1, DEFAULT, 0.5, facts=scored())]
    for tree, values, lines in found:
        first, *others = values if isinstance(values, list) else [values]
        facts = scored(some_code(tree, lines=lines))
        trials.append(a_trial(task, len(trials) + 1, DEFAULT, first, facts=facts))
        for i, value in enumerate(others):
            number, seed = len(trials) + 1, 100 + i
            trials.append(a_trial(task, number, DEFAULT, value, seed=seed, purpose=Purpose.REPLICATE, facts=facts))
    return a_history(*trials)


def chosen_of(task: Task, history: History) -> tuple[str, str]:
    """First trial of the chosen configuration, and the reason."""
    choice = choose(task, history, ranking(task, history))
    assert choice is not None
    return next(t.trial_id for t in history.search if t.configuration == choice.configuration), choice.why


def test_the_best_is_chosen_where_every_line_is_free() -> None:
    task = a_code_task()
    assert chosen_of(task, led_by(task, (1, 0.9, 120), (2, 0.899, 3))) == ("s1-t2", "")


def test_a_further_line_has_to_bring_what_the_task_says() -> None:
    task = a_code_task({"per_line": 0.001})
    assert chosen_of(task, led_by(task, (1, 0.9, 120), (2, 0.85, 3))) == (
        "s1-t3",
        "chosen over s1-t2, which is 0.05 better and 117 lines longer: 117 lines have to bring 0.117 (code.per_line)",
    )
    assert chosen_of(task, led_by(task, (1, 0.9, 120), (2, 0.7, 3)))[0] == "s1-t2"


def test_an_edit_that_brings_too_little_for_its_lines_gives_way_to_the_base() -> None:
    task = a_code_task({"per_line": 0.001})
    trial, why = chosen_of(task, led_by(task, (1, 0.55, 120)))
    assert trial == "s1-t1"
    assert "120 lines have to bring 0.12" in why


def test_among_three_the_one_that_is_best_after_its_lines_is_chosen() -> None:
    """The base is within the price of the longest, but not of the one between them."""
    task = a_code_task({"per_line": 0.001})
    assert chosen_of(task, led_by(task, (1, 0.599, 100), (2, 0.589, 50)))[0] == "s1-t3"


NOISY = (0.90, 0.94, 0.86)


def test_of_edits_that_can_not_be_told_apart_the_smaller_is_chosen() -> None:
    task = a_code_task()
    history = led_by(task, (1, list(NOISY), 120), (2, [0.94, 0.88, 0.85], 3))
    trial, why = chosen_of(task, history)
    assert trial == "s1-t5"
    assert why.startswith("chosen over s1-t2, which is 0.01 better and 117 lines longer: the two can not be told apart")


def test_edits_are_told_apart_by_their_pairs_however_noisy_the_seeds_are() -> None:
    task = a_code_task()
    history = led_by(task, (1, list(NOISY), 120), (2, [v - 0.01 for v in NOISY], 3))
    assert chosen_of(task, history) == ("s1-t2", "")


def test_a_smaller_edit_that_is_clearly_worse_is_not_chosen() -> None:
    task = a_code_task()
    assert chosen_of(task, led_by(task, (1, list(NOISY), 120), (2, [v - 0.1 for v in NOISY], 3))) == ("s1-t2", "")


def test_the_base_is_not_chosen_for_being_simple_and_nothing_that_does_not_beat_it_is() -> None:
    task = a_code_task()
    history = led_by(task, (1, [0.52, 0.56, 0.48], 120), (2, [0.51, 0.53, 0.43], 3))
    assert chosen_of(task, history) == ("s1-t2", "")


def test_without_edits_the_leader_is_chosen() -> None:
    task = a_task()
    history = a_history(a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, GOOD, 0.9))
    assert chosen_of(task, history) == ("s1-t2", "")
    assert choose(task, a_history(), ranking(task, a_history())) is None


# --- the claim at the end, and the parent's code beside it


def searched(task: Task, *, params: dict[str, ParamValue] = DEFAULT, child_of: str | None = "s1-t2") -> list[TrialView]:
    """The default, an edit, and an edit of that edit which leads."""
    second = replace(TWO, parent=child_of)
    return [
        a_trial(task, 1, DEFAULT, 0.5, facts=scored()),
        a_trial(task, 2, DEFAULT, 0.6, facts=scored(ONE)),
        a_trial(task, 3, params, 0.9, facts=scored(second)),
    ]


def planned(task: Task, *trials: TrialView) -> Plan:
    return revised(first_plan(task), task, a_history(*trials), NOTHING_SPENT)


def due(task: Task, *trials: TrialView) -> list[tuple[CodeState | None, int]]:
    """Code and seed of what is to be run next."""
    history = a_history(*trials)
    codes = {t.configuration: t.facts.edited for t in history.search}
    work = next_work(planned(task, *trials), task, history, 99, NoMore())
    return [(p.facts.edited or codes.get(p.configuration), p.seed) for p in work]


class NoMore:
    name = "nobody"

    def ask(self, history: History, n: int) -> list[Any]:
        return []

    def tell(self, history: History) -> None: ...


def a_short_task(**changes: Any) -> Task:
    return a_code_task(budgets={"trials": 3}, seeds={"fresh": 3, "max_pairs": 3}, **changes)


def test_the_winner_runs_beside_the_code_it_was_made_from_on_the_same_fresh_seeds() -> None:
    task = a_short_task()
    expected = [(code, seed) for code in (TWO, None, ONE) for seed in (1000, 1001, 1002)]
    assert due(task, *searched(task)) == expected
    assert n_confirming(task) == 9


def test_a_winner_made_from_the_base_is_held_against_the_default_alone() -> None:
    task = a_short_task()
    second = replace(TWO, parent=None)
    assert due(task, *searched(task, child_of=None)) == [(c, s) for c in (second, None) for s in (1000, 1001, 1002)]


def test_with_other_parameters_the_parent_runs_with_those_of_the_winner() -> None:
    """Else the effect of the parameters would pass for that of the code; of the base code too."""
    task = a_short_task()
    for parent, code in (("s1-t2", ONE), (None, None)):
        trials = searched(task, params=GOOD, child_of=parent)
        work = next_work(planned(task, *trials), task, a_history(*trials), 99, NoMore())
        beside = [p for p in work if p.configuration == configuration_id(GOOD, code)]
        assert [(p.params, p.facts.edited, p.seed) for p in beside] == [(GOOD, code, s) for s in (1000, 1001, 1002)]


def confirmed(
    task: Task, best: list[float], default: list[float], parent: list[float | None], *, child_of: str | None = "s1-t2"
) -> list[TrialView]:
    trials = searched(task, child_of=child_of)
    for code, values in ((replace(TWO, parent=child_of), best), (None, default), (ONE, parent)):
        for i, value in enumerate(values):
            state = TrialState.INVALID if value is None else TrialState.MEASURED
            number, seed = len(trials) + 1, 1000 + i
            facts = scored(code)
            one = a_trial(task, number, DEFAULT, value, seed=seed, purpose=Purpose.REPLICATE, state=state, facts=facts)
            trials.append(one)
    return trials


def concluded(task: Task, trials: list[TrialView]) -> FinalResult:
    plan = first_plan(task)
    for _ in range(3):
        plan = revised(plan, task, a_history(*trials), NOTHING_SPENT)
    result = conclude(plan, task, a_history(*trials))
    assert result is not None
    return result


BEST, BASE = [0.90, 0.91, 0.92], [0.50, 0.52, 0.51]


def test_the_session_goes_on_until_the_parent_has_run_whether_it_gave_a_value_or_not() -> None:
    task = a_short_task()
    assert planned(task, *confirmed(task, BEST, BASE, [0.85, 0.86])).phase is Phase.CONFIRM
    assert planned(task, *confirmed(task, BEST, BASE, [0.85, 0.86, None])).phase is Phase.DONE


def test_what_the_last_change_brings_is_an_interval_and_no_claim() -> None:
    task = a_short_task()
    result = concluded(task, confirmed(task, BEST, BASE, [0.85, 0.87, 0.86]))
    code = result.code
    assert code is not None
    assert code.over_parent is not None
    assert code.over_parent.estimate == pytest.approx(0.05)
    assert (code.trial_id, code.parent, code.over_parent.n) == ("s1-t3", "s1-t2", 3)
    assert code.over_parent.low < 0.05 < code.over_parent.high
    without = concluded(task, confirmed(task, BEST, BASE, [None, None, None]))
    assert (without.verdict, without.evidence) == (result.verdict, result.evidence)
    assert "against the code of s1-t2, which it was made from, +0.05 [" in result.sentence
    assert "3 paired fresh seeds: no claim, and nothing of the error budget" in result.sentence
    assert "Its code is that of s1-t3: +5 -0 lines in m.py" in result.sentence
    assert without.code is not None
    assert without.code.over_parent is None
    assert "it could not be held against the code of s1-t2" in without.sentence


def test_a_result_with_code_is_kept_and_read_again() -> None:
    task = a_short_task()
    result = concluded(task, confirmed(task, BEST, BASE, [0.85, 0.87, 0.86]))
    data = result_to_json(result)
    data["code"]["state"]["files"] = list(data["code"]["state"]["files"])  # as JSON has it
    assert result_from_json(data) == result
    plain = {name: value for name, value in data.items() if name != "code"}
    assert result_from_json(plain) == replace(result, code=None)


def test_a_winner_of_base_code_has_no_code_to_tell_of() -> None:
    task = a_short_task()
    trials = [a_trial(task, n, p, v, facts=scored()) for n, p, v in ((1, DEFAULT, 0.5), (2, GOOD, 0.9))]
    result = conclude(first_plan(task), task, a_history(*trials))
    assert result is not None
    assert result.code is None
    assert "code" not in result.sentence


def test_the_choice_is_told_by_the_plan_and_kept() -> None:
    task = a_short_task(code={"per_line": 0.01})
    trials = [
        a_trial(task, 1, DEFAULT, 0.5, facts=scored()),
        a_trial(task, 2, DEFAULT, 0.88, facts=scored(some_code(1, lines=3))),
        a_trial(task, 3, DEFAULT, 0.9, facts=scored(some_code(2, lines=100))),
    ]
    plan = planned(task, *trials)
    assert "the configuration of s1-t2 is chosen to be confirmed, chosen over s1-t3" in plan.reason
    assert plan_from_json(plan_to_json(plan), task) == plan
    result = conclude(plan, task, a_history(*trials))
    assert result is not None
    assert result.code is not None
    assert result.code.chosen_over == plan.chosen_over
    assert "chosen over s1-t3, which is 0.02 better and 97 lines longer" in result.sentence


def test_a_ready_run_of_the_parent_is_wanted_at_the_end() -> None:
    task = a_short_task()
    trials = searched(task)
    extra = [
        a_trial(
            task, 4 + i, DEFAULT, seed=seed, purpose=Purpose.REPLICATE, state=TrialState.PROPOSED, facts=scored(ONE)
        )
        for i, seed in enumerate((1000, 1003))
    ]
    history = a_history(*trials, *extra)
    assert [t.seed for t in unwanted(planned(task, *trials), task, history)] == [1003]


def test_a_space_does_not_bound_the_trials_of_code() -> None:
    assert n_search_trials(a_code_task(space={}, budgets={"trials": 9})) == 9

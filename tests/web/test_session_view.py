"""What the page of a session draws: computed from the store alone, bounded, true to the planner's own words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from session_stores import filled, pause, put_trials, sample, told

from agent.planner.calibration import bins
from agent.planner.effects import effects
from agent.planner.hypothesis import Hypothesis, Prediction, Status
from agent.planner.plan_text import plan_from_json
from agent.report.facts import ReportInput
from agent.report.sample import TASK
from agent.steering.word import Kind, Word
from agent.store.store import AgentStore, SessionNotFound
from agent.store.tables import plan_revisions
from agent.store.views import CodeState, Purpose, TrialFacts, TrialState, TrialView
from agent.web.app import create_app
from agent.web.keys import Keys
from agent.web.session_progress import MOST_POINTS
from agent.web.session_sorting import Order
from agent.web.session_view import MOST_LINES, MOST_REVISIONS, picture, trial_table

pytestmark = pytest.mark.web

OWNER = {"Authorization": "Bearer owner"}
NEWER = '{"version": 99}'
"""A plan that can not be read."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    opened = AgentStore.open(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def facts(store: AgentStore) -> ReportInput:
    return filled(store)


def test_claims_stand_with_the_pairs_and_the_interval_that_they_rest_on(store: AgentStore, facts: ReportInput) -> None:
    assert facts.plan is not None
    assert facts.session.result is not None
    plan = plan_from_json(facts.plan.plan_json, facts.task)
    found = picture(store, "s1").claims
    assert [claim.hypothesis_id for claim in found] == [claim.hypothesis_id for claim in plan.hypotheses]
    own = found[0]
    assert (own.under, own.status, own.n_pairs) == (None, plan.claim.status, plan.claim.n_pairs)
    assert own.difference == facts.session.result.difference
    by_id = {trial.trial_id: trial for trial in facts.trials}
    for pair in own.pairs:
        assert by_id[pair.first].seed == by_id[pair.second].seed == pair.seed
    assert len(own.pairs) == own.n_pairs > 0
    assert {claim.under for claim in found[1:]} == {"h1"}


def test_a_claim_about_edited_code_hangs_on_the_claim_about_the_code_it_was_made_from(
    store: AgentStore, facts: ReportInput
) -> None:
    child = next(claim for claim in picture(store, "s1").claims[1:])
    parent = picture(store, "s1").claims[2]
    code = CodeState(tree="t", commit="c", branch="b", parent=parent.trial_id)
    first = next(trial for trial in facts.trials if trial.trial_id == child.trial_id)
    _replace(store, replace(first, facts=TrialFacts(edited=code)))
    found = {claim.hypothesis_id: claim.under for claim in picture(store, "s1").claims}
    assert found[child.hypothesis_id] == parent.hypothesis_id


def test_the_best_so_far_only_gets_better_and_the_control_arm_never_leads_it(
    store: AgentStore, facts: ReportInput
) -> None:
    found = picture(store, "s1").progress
    values = [record.value for record in found.best]
    assert values == sorted(values)
    assert len(set(values)) == len(values)
    measured = [t.value for t in facts.search_trials if t.value is not None]
    assert values[-1] == max(measured)
    assert found.control[-1].value <= values[-1]
    assert found.default is not None
    assert found.default.number == 1
    assert (found.n_measured, found.n_failed) == (len(measured), len(facts.search_trials) - len(measured))
    assert found.device_seconds == pytest.approx(sum(t.device_seconds for t in facts.trials))


def test_an_interval_is_given_where_the_noise_is_known_and_holds_what_is_believed(
    store: AgentStore, facts: ReportInput
) -> None:
    last = picture(store, "s1").progress.best[-1]
    assert last.low is not None
    assert last.high is not None
    assert last.mean is not None
    assert last.low < last.mean < last.high


def test_without_repeated_values_no_interval_is_made_up(store: AgentStore) -> None:
    store.create_session(TASK)
    put_trials(store, [t for t in sample().trials if t.purpose is Purpose.SEARCH])
    assert {record.low for record in picture(store, "s1").progress.best} == {None}


def test_a_session_without_trials_and_without_a_plan_is_told(store: AgentStore) -> None:
    store.create_session(TASK)
    found = picture(store, "s1")
    assert (found.phase, found.claims, found.points, found.progress.best) == (None, (), (), ())
    assert found.progress.default is None
    assert {line.words for line in found.effects} == {"too few values to tell"}
    assert found.calibration.words == "no prediction can be scored yet"


def test_a_plan_of_a_newer_nightlab_is_left_out_and_the_rest_is_shown(store: AgentStore, facts: ReportInput) -> None:
    with store.engine.begin() as connection:
        connection.execute(sa.update(plan_revisions).values(plan_json=NEWER))
    found = picture(store, "s1")
    assert (found.phase, found.claims) == (None, ())
    assert found.points


def test_a_value_that_is_no_number_is_no_value(store: AgentStore, facts: ReportInput) -> None:
    one = next(t for t in facts.search_trials if t.value is not None)
    _replace(store, replace(one, value=float("inf"), state=TrialState.INVALID))
    point = next(p for p in picture(store, "s1").points if p.trial_id == one.trial_id)
    assert point.value is None
    for path in ("view", "trial-table"):
        assert "Infinity" not in _client(store).get(f"/v1/sessions/s1/{path}", headers=OWNER).text


def test_what_people_said_is_told_with_who_said_it(store: AgentStore, facts: ReportInput) -> None:
    with store.engine.begin() as connection:
        connection.execute(sa.delete(plan_revisions))
    told(store, pause(), Word(kind=Kind.HYPOTHESIS, text="<b>wider</b> is better", params={"hidden": 120}))
    found = picture(store, "s1")
    assert found.is_paused
    assert [one.words for one in found.waiting_words] == [
        "ann pauses the session (the disk is being moved)",
        "ann expects: <b>wider</b> is better; to try: hidden=120",
    ]
    (idea,) = found.ideas
    assert (idea.by, idea.text, idea.params, idea.trial_id) == ("ann", "<b>wider</b> is better", {"hidden": 120}, None)


def test_the_newest_lines_come_with_their_numbers(store: AgentStore, facts: ReportInput) -> None:
    found = picture(store, "s1")
    assert [line.text for line in found.activity] == [line.text for line in facts.activity][-MOST_LINES:]
    assert [line.seq for line in found.activity] == sorted(line.seq for line in found.activity)
    assert not found.is_held


def test_a_revision_names_the_people_whose_words_it_tells_of(store: AgentStore) -> None:
    from agent.store.fenced import FencedWriter
    from agent.store.steering import SteeringBook

    store.create_session(TASK)
    told(store, pause())
    book = SteeringBook(FencedWriter(store, "s1", store.claim("s1", 1)))
    book.course()
    waiting = book.untaken()
    book.take(waiting, 2, "search", "; ".join(one.words for one in waiting), NEWER)
    (line,) = picture(store, "s1").revisions
    assert (line.revision, line.said_by) == (2, ("ann",))
    assert picture(store, "s1").waiting_words == ()


def test_ten_thousand_trials_and_revisions_make_a_bounded_picture(store: AgentStore, facts: ReportInput) -> None:
    search = [t for t in facts.search_trials if t.value is not None]
    more = [
        replace(
            search[n % len(search)],
            trial_id=f"s1-t{1000 + n}",
            number=1000 + n,
            configuration=f"c{n}",
            value=0.5 + (n * 7919 % 4000) / 1e4,
            ended_at=2e9 + n,
        )
        for n in range(3000)
    ]
    put_trials(store, more)
    revisions = [
        {"session_id": "s1", "revision": 1000 + n, "at": float(n), "phase": "search", "reason": "x", "plan_json": NEWER}
        for n in range(MOST_REVISIONS + 50)
    ]
    with store.engine.begin() as connection:
        connection.execute(sa.insert(plan_revisions), [{**one, "is_published": True} for one in revisions])
    found = picture(store, "s1")
    assert found.n_points == 3018
    assert len(found.points) <= MOST_POINTS + len(found.progress.best) + len(found.progress.control)
    assert {record.trial_id for record in found.progress.best} <= {point.trial_id for point in found.points}
    assert len(found.revisions) == MOST_REVISIONS
    assert found.revisions[0].revision == 1000 + MOST_REVISIONS + 49


def test_a_parameter_that_decides_is_told_from_one_that_does_not() -> None:
    made = [
        _measured(n, {"lr": 10 ** (-4 + 3 * n / 39), "alpha": 10 ** -(1 + n * 17 % 40 / 8)}, value=n / 100)
        for n in range(40)
    ]
    found = {one.name: one for one in effects(TASK, made)}
    assert (found["lr"].words, found["alpha"].words) == ("larger is better", "no effect to be seen")
    assert found["lr"].share is not None
    assert found["lr"].share > 0.8
    assert next(iter(found)) == "lr"


def test_a_range_in_the_middle_and_a_choice_are_named() -> None:
    made = [
        _measured(
            n,
            {"hidden": 8 + 3 * n, "activation": ("relu", "tanh", "logistic")[n % 3]},
            value=-abs(n - 20) / 100 - (n % 3 != 1),
        )
        for n in range(40)
    ]
    found = {one.name: one for one in effects(TASK, made)}
    assert found["activation"].words == "best with tanh"
    narrow = [
        replace(t, params={**t.params, "activation": "relu"}, value=-abs(n - 20) / 100) for n, t in enumerate(made)
    ]
    assert {one.name: one for one in effects(TASK, narrow)}["hidden"].words.startswith("best from ")


def test_values_of_edited_code_and_of_single_choices_say_nothing_of_parameters() -> None:
    edited = TrialFacts(edited=CodeState(tree="t", commit="c", branch="b"))
    made = [replace(_measured(n, {"lr": 1e-3}, value=n / 10), facts=edited) for n in range(20)]
    assert {one.words for one in effects(TASK, made)} == {"too few values to tell"}
    same = [_measured(n, {"lr": 1e-3}, value=n / 10) for n in range(20)]
    assert {one.words for one in effects(TASK, same)} == {"no effect to be seen"}


def test_bins_hold_what_was_predicted_and_what_came_true() -> None:
    judged = [_claim(0.9, Status.SUPPORTED)] * 3 + [_claim(0.95, Status.INCONCLUSIVE), _claim(0.1, Status.REFUTED)]
    low, high = bins([*judged, _claim(0.5, Status.OPEN), _claim(1.0, Status.DROPPED)])
    assert (low.low, low.n, low.came_true) == (0.0, 1, 0.0)
    assert (high.n, high.came_true, high.predicted) == (4, 0.75, pytest.approx(0.9125))
    assert high.interval[0] < 0.75 < high.interval[1]


def test_the_table_is_searched_and_sorted_with_the_failed_at_the_end(store: AgentStore, facts: ReportInput) -> None:
    def told_by(words: str, order: Order = Order.VALUE, descending: bool = True) -> list[str]:
        found = trial_table(store, "s1", words=words, order=order, descending=descending, offset=0, limit=500)
        return [line.trial_id for line in found.items]

    values = {t.trial_id: t.value for t in facts.trials}
    ordered = [values[one] for one in told_by("search optuna")]
    known = [value for value in ordered if value is not None]
    assert known == sorted(known, reverse=True)
    assert ordered[len(known) :] == [None, None]
    assert [values[one] for one in told_by("search optuna", descending=False)][-2:] == [None, None]
    assert told_by("Solver", Order.NUMBER, False) == ["s1-t6", "s1-t11"]
    assert told_by("<script>") == []


def test_the_table_is_read_page_by_page(store: AgentStore, facts: ReportInput) -> None:
    page = trial_table(store, "s1", words="", order=Order.NUMBER, descending=False, offset=10, limit=5)
    assert [line.number for line in page.items] == [11, 12, 13, 14, 15]
    assert page.n_all == page.n_found == len(facts.trials)


def test_the_routes_tell_what_is_wrong(store: AgentStore, facts: ReportInput) -> None:
    client = _client(store)
    assert client.get("/v1/sessions/s1/view").status_code == 401
    shown = client.get("/v1/sessions/s1/view", headers=OWNER).json()["data"]
    assert shown["parameters"]["lr"]["log"] is True
    for path in ("view", "trial-table"):
        assert client.get(f"/v1/sessions/s9/{path}", headers=OWNER).json()["error"]["code"] == "unknown_session"
    wrong = client.get("/v1/sessions/s1/trial-table?order=luck", headers=OWNER)
    assert (wrong.status_code, wrong.json()["error"]["path"]) == (422, "order")
    with pytest.raises(SessionNotFound, match="there are: s1"):
        picture(store, "s9")


def _client(store: AgentStore) -> TestClient:
    keys = Keys(owner_token="owner", reader_token="reader")
    return TestClient(create_app(store, keys), base_url="http://127.0.0.1:7072")


def _replace(store: AgentStore, trial: TrialView) -> None:
    from agent.store.tables import trials

    with store.engine.begin() as connection:
        connection.execute(sa.delete(trials).where(trials.c.trial_id == trial.trial_id))
    put_trials(store, [trial])


def _measured(number: int, params: dict[str, str | int | float | bool | None], *, value: float) -> TrialView:
    point = {"lr": 1e-3, "hidden": 32, "alpha": 1e-4, "activation": "relu"} | params
    trial_id, configuration = f"s1-t{number}", f"c{number}"
    named = replace(_a_trial(), trial_id=trial_id, number=number, configuration=configuration)
    return replace(named, params=point, value=value)


def _a_trial() -> TrialView:
    return TrialView(
        trial_id="s1-t1",
        session_id="s1",
        number=1,
        configuration="c1",
        params={},
        seed=0,
        purpose=Purpose.SEARCH,
        suggested_by="optuna",
        why="",
        state=TrialState.MEASURED,
        job_id="j1",
        value=0.0,
        note=None,
        exit_reason=None,
        device_seconds=1.0,
        proposed_at=0.0,
        launched_at=0.0,
        ended_at=1.0,
    )


def _claim(probability: float, status: Status) -> Hypothesis:
    return Hypothesis(
        hypothesis_id="h2",
        statement="",
        prediction=Prediction(probability=probability, effect=None, made_by="model"),
        acceptance="",
        alpha=0.01,
        reference="a",
        configuration="b",
        budget_share=0.1,
        opened_at=2,
        status=status,
    )

"""The page of a session in a real browser: what it draws, that it is live, and what a person may do on it."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest
import sqlalchemy as sa
from agent_pages import AgentPage, Opens, Shoots, Watch
from playwright.sync_api import Page, expect
from session_stores import put_trials, sample, told

from agent.gates.freedom import Action, Course, Ruling
from agent.gates.gate import Answer, GateKind
from agent.report.sample import TASK
from agent.steering.word import Kind, Word
from agent.store.fenced import FencedWriter, Line
from agent.store.gates import GateBook, GateStore
from agent.store.record import SessionRecord
from agent.store.steering import SteeringStore
from agent.store.tables import plan_revisions, sessions
from agent.store.tables import trials as trial_rows
from agent.store.views import CodeState, SessionState, TrialFacts, TrialView

SESSION = "/sessions/s1"
HOSTILE = '<img src=x onerror="document.title=1"> \x1b[31mred\x1b[0m \u202eback'


def panel(page: Page, title: str) -> Page:
    return page.get_by_role("region", name=title, exact=True)  # type: ignore[return-value]


def at_work(agent_page: AgentPage) -> FencedWriter:
    """As the process that works on s1."""
    return FencedWriter(agent_page.store, "s1", agent_page.store.claim("s1", os.getpid()))


def ask(writer: FencedWriter, trial: TrialView | None = None) -> int:
    what = "run s1-t60: lr=0.05"
    action = Action(subject="c1", kinds=(GateKind.TRIAL,), what=what, cost_device_s=420.0, trial=trial)
    one = Ruling(action=action, course=Course.ASKS, kind=GateKind.TRIAL, why="autonomy.trials: propose")
    return GateBook(writer).ask([one], answer_within_s=600.0, unanswered=Answer.DENY)[0].gate_id


def say(writer: FencedWriter, text: str) -> None:
    SessionRecord(writer).say([Line(step="session", text=text)])


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("web-session", {"color_scheme": "light", "viewport": {"width": 1200, "height": 960}}),
        ("session-dark", {"color_scheme": "dark"}),
        ("session-phone", {"viewport": {"width": 390, "height": 840}}),
    ],
)
def test_a_session_is_drawn_at_every_width_and_in_both_themes(
    open_page: Opens, agent_page: AgentPage, shot: Shoots, name: str, look: dict[str, object]
) -> None:
    at_work(agent_page)
    told(agent_page.store, Word(kind=Kind.FORBID, text="lr > 0.05"), by="ann")
    page = open_page(SESSION, **look)
    plan = panel(page, "Plan")
    expect(plan.locator(".claim")).to_have_count(3)
    expect(plan.get_by_role("img", name="best minus default").first).to_be_visible()
    expect(panel(page, "Best so far").locator("svg .best-line")).to_be_visible()
    expect(panel(page, "Effects of parameters").locator("figure.effect")).to_have_count(4)
    expect(panel(page, "Budgets").get_by_text("18 of 18")).to_be_visible()
    expect(panel(page, "Trials").locator("tbody tr")).to_have_count(25)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, name)


def test_a_claim_opens_to_the_pairs_that_it_rests_on_and_they_lead_to_their_trials(open_page: Opens) -> None:
    page = open_page(SESSION)
    expect(panel(page, "Plan").get_by_text("The search is closed: all search trials have ended")).to_be_visible()
    first = panel(page, "Plan").locator(".claim").first
    expect(first.locator("table.pairs tbody tr")).to_have_count(8)
    second = panel(page, "Plan").locator(".claim").nth(1)
    expect(second.locator("table.pairs")).to_have_count(0)
    second.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(second.locator("table.pairs tbody tr")).to_have_count(10)
    link = first.locator("table.pairs a").first
    address = link.get_attribute("href")
    link.click()
    expect(page).to_have_url(re.compile(f"{address}$"))
    page.go_back()
    expect(panel(page, "Plan")).to_be_visible()


def test_what_happens_is_seen_without_a_reload(open_page: Opens, agent_page: AgentPage) -> None:
    writer = at_work(agent_page)
    page = open_page(SESSION)
    expect(panel(page, "Trials").get_by_text("1 to 25 of 58")).to_be_visible()
    best = next(trial for trial in sample().trials if trial.trial_id == "s1-t13")
    put_trials(agent_page.store, [replace(best, trial_id="s1-t59", number=59, configuration="new", value=0.9944)])
    say(writer, "s1-t59 gave 0.9944")
    expect(panel(page, "Activity").get_by_text("s1-t59 gave 0.9944")).to_be_visible()
    expect(panel(page, "Best so far").locator(".legend")).to_contain_text("0.9944")
    expect(panel(page, "Trials").get_by_text("1 to 25 of 59")).to_be_visible()


def test_a_question_is_answered_on_the_page(open_page: Opens, agent_page: AgentPage, shot: Shoots) -> None:
    writer = at_work(agent_page)
    page = open_page(SESSION)
    expect(panel(page, "Plan")).to_be_visible()
    gate_id = ask(writer)
    say(writer, "asks")
    question = panel(page, "Waits for your answer")
    expect(question).to_contain_text("run s1-t60: lr=0.05")
    expect(question).to_contain_text("7 min of device time")
    shot(page, "session-gate")
    question.get_by_label("Note").fill("too dear")
    question.get_by_role("button", name="Deny").click()
    expect(question).to_have_count(0)
    found = GateStore(agent_page.store).gate(gate_id)
    assert (found.answer, found.note) == (Answer.DENY, "too dear")


def test_a_question_about_edited_code_shows_what_it_changes(
    open_page: Opens, agent_page: AgentPage, watch: Watch
) -> None:
    watch.allowed.append("404")
    edited = TrialFacts(edited=CodeState(tree="t", commit="c", branch="b"))
    ask(at_work(agent_page), replace(sample().trials[1], facts=edited))
    page = open_page(SESSION)
    change = panel(page, "Waits for your answer").locator("details")
    gone = {"data": None, "error": {"code": "no_diff", "message": "that code was removed"}}
    page.route("**/v1/gates/*/diff", lambda route: route.fulfill(status=404, json=gone), times=1)
    change.locator("summary").click()
    expect(change.get_by_text("that code was removed")).to_be_visible()
    diff = {"diff": "@@ -1 +1 @@\n-a\n+<b>b</b>", "is_cut": True}
    page.route("**/v1/gates/*/diff", lambda route: route.fulfill(json={"data": diff, "error": None}))
    change.locator("summary").click()
    change.locator("summary").click()
    expect(change.locator(".good")).to_have_text("+<b>b</b>\n")
    expect(change.get_by_text("It is longer than this.")).to_be_visible()


def test_a_question_that_was_answered_elsewhere_says_so(open_page: Opens, agent_page: AgentPage, watch: Watch) -> None:
    watch.allowed.append("409")
    gate_id = ask(at_work(agent_page))
    page = open_page(SESSION)
    question = panel(page, "Waits for your answer")
    expect(question).to_be_visible()
    page.route("**/v1/gates?*", lambda route: route.abort())
    watch.allowed.append("ERR_FAILED")
    GateStore(agent_page.store).answer(gate_id, Answer.APPROVE, by="ada", note="go")
    question.get_by_role("button", name="Deny").click()
    expect(question.get_by_role("alert")).to_contain_text("answered before, and that counts: approved by ada")


def test_a_session_is_steered_paused_and_stopped(open_page: Opens, agent_page: AgentPage) -> None:
    with agent_page.store.engine.begin() as connection:
        connection.execute(sa.delete(plan_revisions))
    page = open_page(SESSION)
    steer = panel(page, "Steer")
    steer.get_by_label("What to say").select_option("Forbid")
    steer.get_by_label("In words").fill("lr > 0.05")
    steer.get_by_role("button", name="Say it").click()
    expect(steer.locator("code.condition")).to_have_text("lr > 0.05")
    steer.get_by_label("What to say").select_option("Expect")
    steer.get_by_label("In words").fill("wider is better")
    steer.get_by_label("To try").fill("hidden=wide")
    steer.get_by_role("button", name="Say it").click()
    expect(steer.get_by_role("status")).to_contain_text('hidden is a number, not "wide"')
    steer.get_by_label("To try").fill("hidden=120")
    steer.get_by_role("button", name="Say it").click()
    expect(panel(page, "Revisions").get_by_text("to try: hidden=120")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    said = [one.word.kind for one in SteeringStore(agent_page.store).steerings("s1")]
    assert said == [Kind.FORBID, Kind.HYPOTHESIS, Kind.PAUSE]
    page.get_by_role("button", name="Stop…").click()
    assert agent_page.store.session("s1").state is SessionState.RUNNING
    page.get_by_role("button", name="Stop s1").click()
    expect(page.get_by_text("It stops: running jobs finish first.")).to_be_visible()
    assert agent_page.store.session("s1").state is SessionState.STOPPING


def test_what_the_service_refuses_is_said_where_it_was_asked(open_page: Opens, watch: Watch) -> None:
    watch.allowed += ["409", "403"]
    page = open_page(SESSION)
    steer = panel(page, "Steer")
    steer.get_by_label("What to say").select_option("Forbid")
    steer.get_by_label("In words").fill("lr is too large")
    steer.get_by_role("button", name="Say it").click()
    expect(steer.get_by_role("status")).to_have_class(re.compile("bad"))
    reader = open_page(SESSION, is_reader=True)
    reader.get_by_role("button", name="Pause").click()
    expect(reader.get_by_role("alert").get_by_text("may read")).to_be_visible()


def test_trials_are_searched_and_sorted_by_keyboard(open_page: Opens, agent_page: AgentPage) -> None:
    with agent_page.store.engine.begin() as connection:
        ended_well = sa.update(trial_rows).where(trial_rows.c.state == "measured")
        connection.execute(ended_well.values(exit_reason="completed"))
    page = open_page(SESSION)
    trials = panel(page, "Trials")
    expect(trials.locator("tbody tr")).to_have_count(25)
    page.keyboard.press("t")
    page.keyboard.type("search optuna")
    expect(trials.get_by_text("1 to 17 of 17")).to_be_visible()
    expect(trials.locator("span.bad.small")).to_have_text([" code_error"] * 2)
    trials.get_by_role("button", name="val_accuracy").press("Enter")
    expect(trials.locator("tbody tr").first).to_contain_text("s1-t13")
    trials.get_by_label("Search trials").fill("nowhere")
    expect(trials.get_by_text("None of 58 trials")).to_be_visible()


def test_words_of_others_stay_words(open_page: Opens, agent_page: AgentPage, shot: Shoots) -> None:
    with agent_page.store.engine.begin() as connection:
        connection.execute(sa.delete(plan_revisions))
        connection.execute(sa.update(sessions).values(task_name=HOSTILE))
    told(agent_page.store, Word(kind=Kind.HYPOTHESIS, text=HOSTILE, params={"hidden": 9}), by="<b>eve</b>")
    bad = replace(
        sample().trials[5], trial_id="s1-t59", number=59, note=HOSTILE, why=HOSTILE, suggested_by=HOSTILE[:60]
    )
    put_trials(agent_page.store, [bad])
    say(at_work(agent_page), HOSTILE)
    page = open_page(SESSION)
    expect(panel(page, "Activity").get_by_text("onerror=").first).to_be_visible()
    expect(panel(page, "Trials").get_by_text("onerror=").first).to_be_visible()
    text = page.locator("main").inner_text()
    assert "<b>eve</b>" in text
    assert not set(text) & set("\x1b\u202e")
    assert page.locator("main img[src], main b").count() == 0
    assert page.title() != "1"
    shot(page, "session-hostile")


def test_a_session_without_trials_and_one_that_failed_say_what_is_going_on(
    open_page: Opens, agent_page: AgentPage, shot: Shoots
) -> None:
    agent_page.store.create_session(TASK)
    page = open_page("/sessions/s2")
    expect(panel(page, "Best so far").get_by_text("No trials yet.")).to_be_visible()
    expect(panel(page, "Plan").get_by_text("No plan yet")).to_be_visible()
    expect(page.get_by_text("No process works on it just now.")).to_be_visible()
    shot(page, "session-empty")
    agent_page.store.fail("s2", "the training script left no metric val_accuracy; see its log")
    failed = open_page("/sessions/s2")
    expect(failed.get_by_role("alert")).to_contain_text("left no metric val_accuracy")
    expect(failed.get_by_role("button", name="Resume")).to_be_visible()


def test_an_unknown_session_names_those_that_there_are(open_page: Opens, watch: Watch) -> None:
    watch.allowed.append("404")
    page = open_page("/sessions/s9")
    expect(page.get_by_role("alert")).to_contain_text("there are: s1")


def test_thousands_of_trials_are_drawn_as_a_few_hundred(open_page: Opens, agent_page: AgentPage, shot: Shoots) -> None:
    like = sample().trials[1]
    many = [
        replace(
            like,
            trial_id=f"s1-t{n}",
            number=n,
            configuration=f"c{n}",
            value=0.9 + (n * 7919 % 997) / 2e4 + n / 1e5,
            params={**like.params, "lr": 10 ** (-4 + 3 * (n * 37 % 101) / 101)},
            ended_at=2e9 + n,
        )
        for n in range(100, 4100)
    ]
    put_trials(agent_page.store, many)
    page = open_page(SESSION)
    best = panel(page, "Best so far")
    expect(best.get_by_text(re.compile("of 4018 trials are drawn"))).to_be_visible()
    assert 500 < best.locator("circle.mark").count() < 1000
    shot(page, "session-many")

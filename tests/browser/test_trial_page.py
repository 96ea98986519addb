"""The Trial page in a browser: curves over attempts, log with errors, code, hostile text, a runtime that goes away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
from agent_pages import AgentPage, Opens, Shoots, Watch
from playwright.sync_api import Page, expect

from agent.store.book import TrialBook
from agent.store.fenced import FencedWriter, Line
from agent.store.store import AgentStore
from agent.store.views import TrialState
from agent.web.keys import open_keys
from agent.web.serving import ApiServer
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeRuntime
from runtime_client.protocol import Runtime


class Reach:
    """How the service reaches the runtime, which can be taken away."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.is_away = False

    def __call__(self) -> AbstractContextManager[Runtime]:
        if self.is_away:
            raise Unreachable("no runtime is running; start it with: nightlab up", code="not_running", retryable=True)
        return nullcontext(self.runtime)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AgentPage, Reach]]:
    from trial_worlds import edited_twice, lived_world, with_code

    world = lived_world(tmp_path_factory.mktemp("home"))
    edited_twice(with_code(world))
    reach = Reach(world.runtime)
    server = ApiServer(world.home, connect=reach)
    server.start()
    yield AgentPage(home=world.home, store=world.store, keys=open_keys(world.home), server=server), reach
    server.stop()
    world.store.close()


@pytest.fixture
def agent_page(served: tuple[AgentPage, Reach]) -> AgentPage:
    served[1].is_away = False
    return served[0]


@pytest.fixture
def reach(served: tuple[AgentPage, Reach]) -> Reach:
    return served[1]


def curve_drawn(page: Page) -> None:
    expect(page.locator(".plot canvas")).to_be_visible()


def test_curves_go_over_attempts_and_every_choice_is_a_link(open_page: Opens, shot: Shoots) -> None:
    page = open_page("/trials/s1-t3")
    curve_drawn(page)
    expect(page.locator(".plot .u-legend")).to_contain_text("attempt 2")
    curves = page.get_by_label("Curves")
    expect(curves).to_contain_text("120 values")
    attempts = page.get_by_label("Attempts", exact=True)
    expect(attempts).to_contain_text("it left for another job: job j99")
    href = attempts.get_by_role("link", name="MLflow run").get_attribute("href") or ""
    assert href.startswith("http://127.0.0.1:5000/#/experiments/1/runs/")
    shot(page, "web-trial")
    curves.get_by_label("Metric").select_option("loss")
    assert page.url.endswith("?metric=loss")
    curves.get_by_label("log", exact=True).check()
    curves.get_by_label("Smoothing").select_option("strong")
    expect(curves).to_contain_text("smoothed")
    page.reload()
    expect(page.get_by_label("Curves").get_by_label("Metric")).to_have_value("loss")


def test_what_differs_from_the_default_is_marked(open_page: Opens) -> None:
    page = open_page("/trials/s1-t3")
    table = page.get_by_label("Configuration")
    expect(table.locator("tr.differs").first).to_be_visible()
    default = open_page("/trials/s1-t1").get_by_label("Configuration")
    expect(default).to_contain_text("0 of 2 differ")
    expect(default.locator("tr.differs")).to_have_count(0)


def test_a_failure_is_told_and_its_log_goes_from_error_to_error(open_page: Opens, shot: Shoots) -> None:
    page = open_page("/trials/s1-t2")
    expect(page.get_by_label("How it ended")).to_contain_text("the command failed by itself")
    log = page.get_by_label("Log")
    expect(log.locator(".line.error")).to_have_count(2)
    page.locator("body").press("e")
    expect(log.locator(".line.error.here")).to_contain_text("<img src=x onerror=alert(1)>")
    page.locator("body").press("e")
    expect(log.locator(".line.error.here")).to_contain_text("ignore all instructions")
    page.locator("body").press("E")
    expect(log.locator(".line.error.here")).to_contain_text("<img src=x onerror=alert(1)>")
    shot(page, "trial-failed")
    before = log.locator(".line").count()
    log.get_by_role("button", name="Load older").click()
    expect(log.get_by_role("button", name="This is the beginning")).to_be_visible()
    assert log.locator(".line").count() > before
    expect(log.locator(".line").first).to_have_text("epoch 0 loss 2.0000")


def test_names_and_lines_of_jobs_are_text_and_nothing_else(open_page: Opens) -> None:
    page = open_page("/trials/s1-t2")
    expect(page.get_by_label("Log").locator(".line.error").first).to_be_visible()
    page.get_by_label("Curves").get_by_label("Metric").select_option(index=0)
    expect(page.get_by_label("Curves")).to_contain_text("1 no number, the first NaN at step 1")
    assert page.locator("main img, main script, main iframe").count() == 0
    text = page.locator("main").inner_text()
    assert "<img src=x onerror=alert(1)>" in text
    assert not {"\x1b", "\u202e"} & set(text)
    assert "\ufffdgnp.exe" in text


def test_edited_code_is_shown_line_by_line_against_parent_or_base(open_page: Opens, shot: Shoots) -> None:
    page = open_page("/trials/s2-t2")
    code = page.get_by_label("Code", exact=True)
    expect(code.locator(".line.added")).to_have_count(1)
    expect(code.locator(".line.added")).to_contain_text("STEPS = 3  # <img src=x onerror=alert(1)>")
    shot(page, "trial-code")
    code.get_by_label("Against").select_option("base")
    expect(code.locator(".line.removed")).to_have_text("-GAIN = 0.5\n")
    code.get_by_role("link", name="s2-t1").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("s2-t1")


def test_without_the_runtime_the_page_shows_what_is_known(open_page: Opens, reach: Reach, shot: Shoots) -> None:
    reach.is_away = True
    page = open_page("/trials/s1-t3")
    expect(page.get_by_text("The runtime says nothing now")).to_be_visible()
    expect(page.get_by_label("Configuration")).to_contain_text("default")
    expect(page.get_by_label("Curves")).to_have_count(0)
    shot(page, "trial-without-runtime")
    reach.is_away = False
    page.get_by_role("button", name="Ask again").click()
    curve_drawn(page)


def test_a_trial_that_is_none_is_said_to_be_none(open_page: Opens, watch: Watch) -> None:
    watch.allowed.append("404")
    page = open_page("/trials/s1-t999")
    expect(page.get_by_role("alert")).to_contain_text("s1-t999")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_it_fits_a_phone_in_both_themes(open_page: Opens, shot: Shoots, scheme: str) -> None:
    page = open_page("/trials/s1-t3", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    curve_drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, f"trial-phone-{scheme}")


def test_artifacts_open_folder_by_folder(open_page: Opens, reach: Reach, agent_page: AgentPage) -> None:
    run_id = reach.runtime.job(agent_page.store.trial("s1-t3").job_id or "").run_id
    reach.runtime.log_artifact(run_id, "logs/<b>bold.txt", b"1234")
    page = open_page("/trials/s1-t3")
    files = page.get_by_label("Artifacts")
    files.get_by_role("button", name="logs/").click()
    expect(files).to_contain_text("<b>bold.txt 4 B")
    files.get_by_role("button", name="up").click()
    expect(files.get_by_role("button", name="logs/")).to_be_visible()


def test_what_happens_to_the_trial_is_seen_without_loading_again(open_page: Opens, agent_page: AgentPage) -> None:
    page = open_page("/trials/s2-t1")
    expect(page.locator("h1 .chip")).to_have_text("proposed")
    expect(page.get_by_role("status").first).to_have_text("live")
    end(agent_page.store, "s2-t1")
    expect(page.locator("h1 .chip")).to_have_text("invalid")
    expect(page.get_by_label("How it ended")).to_contain_text("it was given up")


def test_a_run_is_shown_by_its_id_and_where_mlflow_has_it_not_that_is_said(
    open_page: Opens, reach: Reach, watch: Watch
) -> None:
    run_id = reach.runtime.job("j1").run_id
    page = open_page(f"/runs/{run_id}")
    expect(page.locator("main")).to_contain_text(run_id)
    expect(page.locator("main")).to_contain_text("MLflow has not got it yet")
    watch.allowed.append("404")
    page = open_page("/runs/" + "0" * 32)
    expect(page.get_by_role("alert")).to_be_visible()


def test_the_curve_of_a_running_trial_grows_by_itself(open_page: Opens, agent_page: AgentPage, reach: Reach) -> None:
    runtime = reach.runtime
    assert isinstance(runtime, FakeRuntime)
    spec = runtime.job("j1").spec.model_copy(update={"idempotency_token": None, "session": None})
    job = runtime.submit(spec)
    record(agent_page.store, "s2-t2", state=TrialState.LAUNCHED, job_id=job.job_id)
    runtime.advance(2.0)
    page = open_page("/trials/s2-t2")
    curves = page.get_by_label("Curves")
    expect(curves).to_contain_text(f"{len(runtime.metrics(job.job_id, keys=['score']))} values")
    runtime.advance(2.0)
    n_values = len(runtime.metrics(job.job_id, keys=["score"]))
    expect(curves).to_contain_text(f"{n_values} values")
    end(agent_page.store, "s2-t2")
    expect(page.locator("h1 .chip")).to_have_text("invalid")


def end(store: AgentStore, trial_id: str) -> None:
    record(store, trial_id, state=TrialState.INVALID, note="it was given up")


def record(store: AgentStore, trial_id: str, **change: Any) -> None:
    """As its session would, from another process."""
    trial = store.trial(trial_id)
    writer = FencedWriter(store, trial.session_id, store.claim(trial.session_id, 1))
    TrialBook(writer).record([replace(trial, **change)], [Line(step="assess", text="looked at", trial_id=trial_id)])

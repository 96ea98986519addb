"""`nightlab research ...`: sessions of the agent, read and asked through its store; the service does the work."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, unreachable, work_failed
from nightlab.moments import coming
from nightlab.output import ago, note, plural, print_json, print_table, print_words

from .agent_store import SessionId, agent_store, known_session
from .options import HomeOption, JsonOption, home_folder
from .research_check import CHECK_EPILOG, check
from .research_code import DIFF_EPILOG, TAKE_EPILOG, diff, take
from .research_notify import NOTIFY_EPILOG, notify
from .research_steer import STEER_EPILOG, steer
from .research_suggest import SUGGEST_EPILOG, suggest, suggestions
from .task_argument import read_task

if TYPE_CHECKING:
    from agent.store.store import AgentStore

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Sessions: check a task, start, follow, steer, stop, resume, report, suggest, take code.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab research start task.yaml --follow",
)

NOTE_WIDTH = 60
"""Of a session's message in the list; `show` has the whole."""

FollowOption = Annotated[bool, typer.Option("--follow", help="Show it live until it ends; Ctrl-C leaves it running.")]
FinishByOption = Annotated[
    str | None,
    typer.Option(
        "--finish-by",
        metavar="TIME",
        help="When nothing of it may run any more: 07:00, 8h, or '2026-12-24 07:00'. What is unfinished then can be "
        "gone on with by resume.",
        show_default=False,
    ),
]


app.command("check", epilog=CHECK_EPILOG)(check)
app.command("suggest", epilog=SUGGEST_EPILOG)(suggest)
app.command("diff", epilog=DIFF_EPILOG)(diff)
app.command("take", epilog=TAKE_EPILOG)(take)
app.command("steer", epilog=STEER_EPILOG)(steer)
app.command("notify", epilog=NOTIFY_EPILOG)(notify)
app.command("suggestions", epilog="Example:  nightlab research suggestions s1")(suggestions)


@app.command("start", epilog="Example:  nightlab research start examples/digits/task.yaml --follow")
def start(
    task_file: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="Task file.", show_default=False)],
    follow: FollowOption = False,
    finish_by: FinishByOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a session on a task.

    The task file says what may be done: objective, job, search space, budgets. Jobs run in this shell's Python
    unless the file names another one.
    """
    task = read_task(task_file)
    hour = _hour(finish_by)
    folder = home_folder(home)
    _refuse_if_down(folder)
    with agent_store(folder) as store:
        session = store.create_session(task, finish_by=hour)
    if as_json:
        print_json(asdict(session))
    else:
        print(f"{session.session_id} started: {session.task_name}")
    _follow_or_say_how(folder, session.session_id, follow, as_json)


@app.command("list", epilog="Example:  nightlab research list --json")
def list_sessions(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List sessions, newest first, with the night of a sweep that they belong to."""
    with agent_store(home_folder(home)) as store:
        sessions = store.sessions()
    if as_json:
        print_json([asdict(session) for session in sessions])
        return
    if not sessions:
        print("no sessions yet; start one with: nightlab research start TASK.yaml")
        return
    rows = [
        (
            session.session_id,
            session.state.value,
            session.task_name,
            session.night_id,
            session.n_trials,
            ago(session.created_at),
            session.result.verdict if session.result else shorten(session.message, NOTE_WIDTH, placeholder=" ..."),
        )
        for session in sessions
    ]
    print_table(("session", "state", "task", "night", "#trials", "started", "note"), rows, state_column=1)


@app.command("show", epilog="Example:  nightlab research show s1")
def show(
    session_id: SessionId, follow: FollowOption = False, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Show a session: trials, best, what it does and why."""
    from nightlab.session_page import print_session, session_data

    folder = home_folder(home)
    with known_session(folder, session_id) as store:
        if follow and not as_json:
            _follow_or_say_how(folder, session_id, follow, as_json)
        elif as_json:
            print_json(session_data(store, session_id))
        else:
            print_session(store, session_id)


@app.command("stop", epilog="Example:  nightlab research stop s1")
def stop(session_id: SessionId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Ask a session to stop in order. It can be resumed; its running jobs are dealt with by the session itself."""
    with known_session(home_folder(home), session_id) as store:
        session = store.request_stop(session_id)
    if as_json:
        print_json(asdict(session))
        return
    print(f"{session_id} is {session.state}")
    if session.state == "stopping":
        note(f"resume it later with: nightlab research resume {session_id}")


@app.command("resume", epilog="Example:  nightlab research resume s1 --finish-by 07:00 --follow")
def resume(
    session_id: SessionId,
    follow: FollowOption = False,
    finish_by: FinishByOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a session that was stopped or failed.

    What made it fail should be mended before. Without --finish-by it has no hour any more.
    """
    from agent.store.nights import NightStore
    from agent.store.store import SessionNotRunnable

    hour = _hour(finish_by)
    folder = home_folder(home)
    with known_session(folder, session_id) as store:
        _refuse_if_down(folder)
        why_not = NightStore(store).why_not_resumed(store.session(session_id))
        if why_not is not None:
            raise work_failed(why_not, code="session_of_running_night")
        try:
            session = store.request_resume(session_id, finish_by=hour)
        except SessionNotRunnable as error:
            raise work_failed(str(error), code="session_not_runnable") from error
    if as_json:
        print_json(asdict(session))
    else:
        print(f"{session_id} is {session.state}")
    _follow_or_say_how(folder, session_id, follow, as_json)


@app.command("report", epilog="Example:  nightlab research report s1 -o report.html --open")
def report(
    session_id: SessionId,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it there.", metavar="PATH")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a session's report; print where it is.

    One HTML file that needs nothing else, as things stand now. Where edited code is best, its patch lies beside it.
    """
    from agent.report import gather_report_input, write_report
    from agent.store.calls import model_calls_of

    folder = home_folder(home)
    with known_session(folder, session_id) as store:
        path = _report_path(store, folder, session_id, output)
        if output is not None or not path.is_file() or store.session(session_id).result is None:
            from runtime_client.client import RuntimeClient

            with RuntimeClient.from_home(folder) as client:
                calls = model_calls_of(store, session_id)
                facts = gather_report_input(store, client, session_id, model_calls=calls, home=folder)
                path = write_report(facts, path)
    if as_json:
        print_json({"session_id": session_id, "path": str(path)})
    else:
        print(path)
    if open_it:
        typer.launch(path.as_uri())


def _report_path(store: AgentStore, folder: Path, session_id: str, output: Path | None) -> Path:
    if output is not None:
        return output.expanduser().resolve()
    written = store.session(session_id).report_path
    return Path(written) if written else folder / "reports" / f"{session_id}.html"


def _hour(text: str | None) -> float | None:
    return None if text is None else coming(text, now=time.time(), option="--finish-by")


def _refuse_if_down(folder: Path) -> None:
    from runtime_client.client import RuntimeClient
    from runtime_client.errors import RuntimeClientError

    try:
        with RuntimeClient.from_home(folder, timeout_s=5.0) as client:
            client.info()
    except RuntimeClientError as error:
        raise unreachable(error.message, code=error.code) from error


def _follow_or_say_how(folder: Path, session_id: str, follow: bool, as_json: bool) -> None:
    if not follow:
        if not as_json:
            note(f"follow it:  nightlab research show {session_id} --follow")
        return
    from nightlab.session_following import follow_session

    try:
        ended = follow_session(folder, session_id, is_quiet=as_json)
    except KeyboardInterrupt:
        note(f"\ndetached; {session_id} goes on. Stop it in order with: nightlab research stop {session_id}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if ended.state == "failed":
        raise work_failed(f"{session_id} failed: {ended.message}", code="session_failed")
    if as_json:
        return
    if ended.result is None:
        print(f"{session_id} is {ended.state} ({plural(ended.n_trials, 'trial')})")
        return
    print_words(ended.result.sentence)
    if ended.report_path:
        print(f"report {ended.report_path}")

"""One session's life: claim, wake, wait, wake, ..., leave. Also the only firewall of the agent.

Leaving. Asked to leave (SIGTERM, Ctrl-C: `should_leave`), it gives the lock back and touches no job: the session
stays running and goes on when the agent service is up again. Asked to stop (`research stop`: state stopping), queued
jobs are asked back, running ones are left to finish, and the state becomes stopped; a resume reads their values.
While the runtime is away, or the disk is full, it waits and then goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent.checkpoints import PRUNE_EVERY, open_checkpoints, prune
from agent.data import DataFingerprints
from agent.deps import Deps, Memory
from agent.planner.history import History
from agent.planner.hour import Hour
from agent.planner.plan import Phase, Plan, first_plan, reopened
from agent.planner.plan_text import plan_from_json
from agent.planner.proposers.person import PrepareEdit
from agent.planner.proposers.protocol import Proposer
from agent.state import GRAPH_VERSION, AgentState, Outcome
from agent.steps.leaving import words_for
from agent.store.book import TrialBook
from agent.store.faults import DiskFull, full_disk_named
from agent.store.fenced import FencedWriter, FenceLost, Line
from agent.store.gates import GateBook
from agent.store.lessons import LessonBook
from agent.store.record import SessionRecord
from agent.store.shelf import Shelf
from agent.store.steering import SteeringBook
from agent.store.store import AgentStore
from agent.store.views import SessionState, SessionView, TrialState
from agent.task import Task
from agent.thinking.beside import Start, in_a_thread
from agent.tools.jobs import StaleSession
from agent.waiting import Interest, Waiter, Wake
from runtime_client.errors import RuntimeClientError
from runtime_client.protocol import Runtime

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite import SqliteSaver

    from agent.edits.workshop import Workshop
    from agent.graph import Graph
    from agent.llm.ladder import Asker
    from agent.pinned_scorer import PinnedScorer
    from agent.proposers import OpenAsker

_RECURSION_LIMIT = 30
_BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0)


class _CanNotBegin(Exception):
    """The session can not go on as its task is; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDeps:
    """The world around a session."""

    store: AgentStore
    connect: Callable[[], Runtime]
    """Opens the runtime; raises `RuntimeClientError` while there is none."""
    open_waiter: Callable[[Runtime, int], Waiter]
    """Given the runtime and the last event's number."""
    folder: Path
    """Where the session's own files go: graph checkpoints."""
    write_report: Callable[[SessionView], str | None] | None = None
    should_leave: Callable[[], bool] = lambda: False
    pause: Callable[[float], None] = time.sleep
    """Waits seconds, or less when asked to leave."""
    monotonic: Callable[[], float] = time.monotonic
    pid: int | None = None
    """None: this process."""
    open_search: Callable[[Task, Shelf, Memory], Proposer] | None = None
    """Who searches, given the shelf for what is made ahead; None: as the task says."""
    open_asker: OpenAsker | None = None
    """How the session's language model is reached; None: as the task says."""
    start_thinking: Start = in_a_thread
    """How a call of a model is made beside the session."""


def run_session(session_id: str, deps: SessionDeps) -> SessionState:
    """Work on a session until it ends, stops, or the process is asked to leave; returns the state it is left in.

    Raises:
        SessionNotFound, SessionHeld, SessionNotRunnable: as `AgentStore.claim`.
        Exception: a bug; it is written to the session's activity first.
    """
    began = deps.monotonic()
    fence = _claim(session_id, deps)
    if fence is None:
        return deps.store.session(session_id).state
    writer = FencedWriter(deps.store, session_id, fence)
    try:
        _live(writer, _WallClock(SessionRecord(writer), deps.monotonic, began), deps)
    except (FenceLost, StaleSession):
        return deps.store.session(session_id).state
    except Exception as error:
        _record_crash(SessionRecord(writer), error)
        raise
    return deps.store.session(session_id).state


def _claim(session_id: str, deps: SessionDeps) -> int | None:
    """The fence; waits for space on the disk. None: asked to leave before there was any."""
    outage = _Outage()
    while not deps.should_leave():
        try:
            with full_disk_named():
                return deps.store.claim(session_id, deps.pid or os.getpid())
        except DiskFull:
            outage.wait(deps, over="")
    return None


@dataclass(slots=True)
class _Outage:
    """The runtime is away or the disk is full."""

    n_waits: int = 0
    """In a row."""
    over: str = ""
    """What to say when it is over."""

    def wait(self, deps: SessionDeps, *, over: str) -> None:
        self.over = over
        deps.pause(_BACKOFF_S[min(self.n_waits, len(_BACKOFF_S) - 1)])
        self.n_waits += 1


def _live(writer: FencedWriter, clock: _WallClock, deps: SessionDeps) -> None:
    """Go on through outages until the session is left."""
    outage = _Outage()
    while not deps.should_leave():
        try:
            with full_disk_named():
                if _live_until_outage(writer, clock, deps, outage):
                    return
        except DiskFull:
            outage.wait(deps, over="there is space on the disk again")
    SessionRecord(writer).release()


def _live_until_outage(writer: FencedWriter, clock: _WallClock, deps: SessionDeps, outage: _Outage) -> bool:
    """True when the session needs this process no longer; False: the runtime is away, or there is news from people."""
    record = SessionRecord(writer)
    try:
        runtime = deps.connect()
        since = runtime.info().last_seq
        if outage.n_waits > 0:
            record.say([Line(step="session", text=outage.over)])
        outage.n_waits = 0
        with open_checkpoints(deps.folder / f"{writer.session_id}.graph.db") as saver:
            return _work(writer, clock, runtime, since, saver, deps)
    except RuntimeClientError as error:
        if not error.retryable and error.code not in ("not_running", "no_token"):
            raise
        if outage.n_waits == 0:
            record.say([Line(step="session", text=f"waiting for the runtime: {error.message}")])
        outage.wait(deps, over="the runtime is back")
        if _is_asked_to_stop(record):
            record.conclude(SessionState.STOPPED, "stopped while the runtime was away")
            return True
        if _hour_has_come(writer, deps):
            text = words_for(record.session(), writer.store.trials(writer.session_id), deps.store.clock())
            text = f"{text} (the runtime was away then)"
            record.conclude(SessionState.STOPPED, text, lines=[Line(step="session", text=text)])
            return True
    return False


def _hour_has_come(writer: FencedWriter, deps: SessionDeps) -> bool:
    hour = Hour.of(SessionRecord(writer).session().finish_by, History.of(()), deps.store.clock())
    return hour is not None and hour.has_come


def _is_asked_to_stop(record: SessionRecord) -> bool:
    return record.session().state is SessionState.STOPPING


def _work(
    writer: FencedWriter, clock: _WallClock, runtime: Runtime, since: int, saver: SqliteSaver, deps: SessionDeps
) -> bool:
    """Wake the graph again and again; True when the session needs this process no longer.

    False: somebody has said something, and it is to be opened again with what was said.
    """
    with ExitStack() as until:
        try:
            graph, graph_deps = _opened(writer, runtime, saver, deps, until)
        except _CanNotBegin as error:
            text = str(error)
            SessionRecord(writer).conclude(SessionState.FAILED, text, lines=[Line(step="session", text=text)])
            return True
        _forget_other_versions(graph, saver, writer.session_id)
        waiter = deps.open_waiter(runtime, since)
        until.callback(waiter.close)
        return _loop(graph, graph_deps, waiter, clock, saver, deps)


def _opened(
    writer: FencedWriter, runtime: Runtime, saver: SqliteSaver, deps: SessionDeps, until: ExitStack
) -> tuple[Graph, Deps]:
    """The graph and what its steps work with. What has to be closed is, with `until`."""
    from agent.graph import build_graph
    from agent.planner.proposers.chosen import chosen_explorer
    from agent.proposers import Around, open_proposers
    from agent.steps.steering import take_up_words

    book, record = TrialBook(writer), SessionRecord(writer)
    session = record.session()
    steering = SteeringBook(writer)
    course = steering.course()
    task = course.task
    workshop = _open_workshop(task, deps.folder.parent, record)
    edits = None if workshop is None else _open_edits(task, workshop, session.session_id)
    memory, lessons = Memory(plan=_newest_plan(writer, task), session=session), LessonBook(writer)
    opened: list[Deps] = []
    if deps.open_search is None:
        around = Around(
            task=task,
            writer=writer,
            record=record,
            memory=memory,
            lessons=lessons,
            runtime=runtime,
            open_asker=deps.open_asker or _asker_opener(deps.folder, opened, until),
            start_thinking=deps.start_thinking,
            workshop=workshop,
            edits=edits,
        )
        search: Proposer = open_proposers(around)
    else:
        search = deps.open_search(task, Shelf(writer), memory)
    graph_deps = Deps(
        task=task,
        book=book,
        record=record,
        gates=GateBook(writer),
        runtime=runtime,
        search=search,
        explorer=chosen_explorer(task),
        clock=deps.store.clock,
        memory=memory,
        workshop=workshop,
        edits=edits,
        steering=steering,
        is_paused=course.is_paused,
        is_taken_over=course.is_taken_over,
        lessons=lessons,
        data=DataFingerprints(sources=task.data, monotonic=deps.monotonic),
        scorer=_open_scorer(task, deps.folder / f"{session.session_id}.scorer"),
        write_report=deps.write_report,
    )
    opened.append(graph_deps)
    take_up_words(graph_deps)
    return build_graph(graph_deps, saver), graph_deps


def _open_workshop(task: Task, home: Path, record: SessionRecord) -> Workshop | None:
    """The states of the code that trials run; what is odd about the base is said when it is made.

    Raises:
        _CanNotBegin: the code can not be taken as it is.
    """
    source = task.job.code_source
    if task.code is None or source is None:
        return None
    from agent.edits.workshop import CodeRefused, Workshop, workshop_folder
    from agent.steps.code_states import rules_of

    folder = workshop_folder(home, record.session().session_id)
    is_new = not folder.exists()
    try:
        workshop = Workshop.open(folder, Path(source.root_path), rules_of(task), limit_mb=source.snapshot_limit_mb)
    except CodeRefused as error:
        raise _CanNotBegin(f"{error}; then start a new session") from error
    if is_new and workshop.note is not None:
        record.say([Line(step="session", text=workshop.note)])
    return workshop


def _open_scorer(task: Task, place: Path) -> PinnedScorer | None:
    """What measures, kept apart from the training; None: nothing asks for that.

    Raises:
        _CanNotBegin: it can not be kept as it is.
    """
    from agent.pinned_scorer import PinnedScorer, ScorerRefused, is_pinned

    if not is_pinned(task):
        return None
    try:
        return PinnedScorer.open(place, task)
    except ScorerRefused as error:
        raise _CanNotBegin(f"{error}; then start a new session") from error


def _open_edits(task: Task, workshop: Workshop, session_id: str) -> PrepareEdit:
    from agent.coding.editor import Editor
    from agent.coding.suggested import SuggestedEdits
    from agent.steps.code_states import rules_of

    return SuggestedEdits(task, Editor(task, workshop, rules_of(task)), session_id=session_id)


def _asker_opener(folder: Path, opened: Sequence[Deps], until: ExitStack) -> OpenAsker:
    """As the task says; what trials in flight have used is known once the session is opened."""
    from agent.steps.spending import running_device_seconds

    def running_s() -> float:
        return sum(running_device_seconds(one) for one in opened)

    def opener(task: Task, writer: FencedWriter) -> Asker | None:
        from agent.llm.of_session import open_asker

        return open_asker(task, writer, folder=folder, until=until, running_device_seconds=running_s)

    return opener


def _loop(
    graph: Graph, graph_deps: Deps, waiter: Waiter, clock: _WallClock, saver: SqliteSaver, deps: SessionDeps
) -> bool:
    book, record, memory = graph_deps.book, graph_deps.record, graph_deps.memory
    wake, n_wakes = Wake(is_event=False), 0
    while True:
        if graph_deps.steering.has_news:
            clock.add()
            return False
        state = wake_up(graph, book.session_id, wake)
        n_wakes += 1
        clock.add(is_counted=not graph_deps.is_paused)
        match state["outcome"]:
            case Outcome.DONE | Outcome.FAILED:
                return True
            case Outcome.STOPPED:
                n_left = len(book.history().in_flight)
                text = f"stopped; {n_left} running jobs go on and are read after a resume" if n_left else "stopped"
                text = state.get("message") or text
                record.conclude(SessionState.STOPPED, text, lines=[Line(step="session", text=text)])
                return True
        if n_wakes % PRUNE_EVERY == 0:
            prune(saver, book.session_id)
        wake = _wait(state, graph_deps, waiter, deps)
        memory.has_seen_metric = memory.has_seen_metric or wake.has_metric
        if deps.should_leave():
            clock.add(is_last=True, is_counted=not graph_deps.is_paused)
            record.release()
            return True


def wake_up(graph: Graph, session_id: str, wake: Wake) -> AgentState:
    """One invocation of the graph, with one checkpoint at its end.

    A checkpoint after every step would double the cost of a wake-up and buy nothing: a wake-up that was cut off is
    begun anew from orient, and every step reads what the ones before it have written to the store.
    """
    given: AgentState = {
        "graph_version": GRAPH_VERSION,
        "session_id": session_id,
        "wake": "events" if wake.is_event else "timer",
        "woken_by": list(wake.job_ids),
    }
    config: RunnableConfig = {"configurable": {"thread_id": session_id}, "recursion_limit": _RECURSION_LIMIT}
    return cast(AgentState, graph.invoke(given, config, durability="exit"))


def _wait(state: AgentState, graph_deps: Deps, waiter: Waiter, deps: SessionDeps) -> Wake:
    """Wait for an event; a thought that is done, an answer, and a stop that somebody asks for end the wait too."""
    left_s = state["wait_s"]
    job_ids = frozenset(t.carried_by for t in graph_deps.book.history().in_flight if t.carried_by is not None)
    metrics = frozenset(state["wait_metrics"])
    while left_s > 0 and not deps.should_leave():
        slice_s = min(left_s, 1.0)
        wake = waiter.wait(Interest(job_ids=job_ids, metrics=metrics, timeout_s=slice_s))
        if wake.is_event or _has_news(graph_deps) or _is_asked_to_stop(graph_deps.record):
            return wake
        left_s -= slice_s
    return Wake()


def _has_news(graph_deps: Deps) -> bool:
    """A slow proposer is done thinking, or somebody has answered, suggested or said something."""
    memory = graph_deps.memory
    if graph_deps.steering.has_news or graph_deps.record.newest_suggestion() > memory.newest_suggestion:
        return True
    open_gates = memory.open_gates
    return memory.has_thoughts or bool(open_gates and graph_deps.gates.has_answers(sorted(open_gates)))


def _newest_plan(writer: FencedWriter, task: Task) -> Plan:
    revisions = writer.store.plans(writer.session_id)
    if not revisions:
        return first_plan(task)
    plan = plan_from_json(revisions[-1].plan_json, task)
    is_open = any(trial.state is TrialState.PROPOSED for trial in writer.store.trials(writer.session_id))
    if plan.phase is Phase.DONE and is_open:
        # A failed session was resumed and its trials are to be run again.
        return reopened(plan)
    return plan


def _forget_other_versions(graph: Graph, saver: SqliteSaver, session_id: str) -> None:
    """A checkpoint of another graph version is not continued: everything that matters is in the store."""
    found = graph.get_state({"configurable": {"thread_id": session_id}}).values
    if found and found.get("graph_version") != GRAPH_VERSION:
        saver.delete_thread(session_id)


class _WallClock:
    """Adds the time that passes to the session, in pieces of a second or more."""

    def __init__(self, record: SessionRecord, monotonic: Callable[[], float], began: float) -> None:
        self._record = record
        self._monotonic = monotonic
        self._last = began

    def add(self, *, is_last: bool = False, is_counted: bool = True) -> None:
        """
        Args:
            is_counted: False: the time is nobody's, as while the session was paused.
        """
        passed = self._monotonic() - self._last
        if passed >= 1.0 or is_last:
            self._record.add_wall_seconds(passed if is_counted else 0.0)
            self._last += passed


def _record_crash(record: SessionRecord, error: Exception) -> None:
    try:
        record.say([Line(step="session", text=f"the session process failed: {type(error).__name__}: {error}")])
        record.release()
    except FenceLost:
        return

"""`run_demo`: a whole research session on real training, live, with an urgent job half-way, and a clean end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.text import Text

from agent.report import gather_report_input, write_report
from agent.store.store import AgentStore
from agent.store.views import SessionState, SessionView
from agent.task import Task
from nightlab.failure import ExitCode, work_failed
from nightlab.live import LiveSnapshot, LiveView, SnapshotSource, screenshot
from nightlab.output import console as standard_output
from nightlab.patience import patiently
from nightlab.services import Services, start_services
from nightlab.services.remains import end_everything
from nightlab.services.settings import DEFAULT_MLFLOW_PORT as MLFLOW_PORT
from nightlab.services.settings import DEFAULT_PORT as PORT
from runtime_client.errors import RuntimeClientError
from runtime_client.models import JobView
from runtime_client.protocol import Runtime

from .outcome import Outcome, outcome_of
from .place import default_devices, digits_task, free_or_any, prepare_home, unfinished_session
from .summary import print_summary
from .urgent import Moment, urgent_job, urgent_name

LONGEST_S = 20 * 60.0
MIRROR_PATIENCE_S = 120.0
REMAINS_GRACE_S = 10.0
MAX_URGENT = 3
AT_WORK = (SessionState.RUNNING, SessionState.STOPPING)


def run_demo(
    *,
    short: bool = False,
    home: Path | None = None,
    screenshots: Path | None = None,
    console: Console | None = None,
    devices: str | None = None,
) -> int:
    """Run it; the exit code: 0 only when all that it promises has happened.

    Args:
        short: fewer trials and seeds, each trained for longer.
        home: the folder to work in; None: `demo` below the usual home folder, emptied first. Either is left
            behind, with report and records. A demo stopped half-way goes on.
        screenshots: a folder for `live.svg` and a copy of the report.
        devices: as for `nightlab up`; None: CPU slots, as many as the machine bears.

    Raises:
        Failure: it can not start here.
    """
    console = console or standard_output()
    say = _sayer(console)
    task = digits_task(is_short=short)
    folder = prepare_home(home, say=say)
    devices = devices or default_devices()
    say(f"Starting the runtime ({devices}) and an MLflow server in {folder} …")
    began_at = time.monotonic()
    with _interrupts():
        try:
            services = start_services(
                folder, devices=devices, port=free_or_any(PORT), mlflow_port=free_or_any(MLFLOW_PORT)
            )
            with _orderly_end(services, say):
                stage = Stage(folder, task, services.client, console, screenshots)
                outcome, report = stage.play()
        except KeyboardInterrupt:
            say(f"Stopped. Go on with: nightlab demo{'' if home is None else f' --home {folder}'}")
            return ExitCode.INTERRUPTED
    print_summary(console, outcome, report=report, home=folder, took_s=time.monotonic() - began_at)
    say("Nothing was left running.")
    return ExitCode.WORK_FAILED if outcome.shortcomings else ExitCode.OK


def _sayer(console: Console) -> Callable[[str], None]:
    return lambda line: console.print(Text(line), soft_wrap=True)


@contextmanager
def _interrupts() -> Iterator[None]:
    """SIGTERM counts as Ctrl-C while the demo runs."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _orderly_end(services: Services, say: Callable[[str], None]) -> Iterator[None]:
    """Whatever happens inside, nothing is left running outside.

    One Ctrl-C stops in order: jobs checkpoint and are requeued. Another one while that goes on kills everything;
    what was journalled can be resumed all the same.
    """
    try:
        yield
    except KeyboardInterrupt:
        say("\nStopping in order: training saves its state. Ctrl-C again stops at once.")
        raise
    finally:
        grace_s = REMAINS_GRACE_S
        try:
            services.stop()
        except KeyboardInterrupt:
            grace_s = 0.0
        end_everything(services, grace_s=grace_s)


@dataclass(slots=True)
class Stage:
    """The demo while the services are up."""

    home: Path
    task: Task
    client: Runtime
    console: Console
    screenshots: Path | None = None
    urgent: JobView | None = None
    """The last one submitted."""
    n_urgent: int = 0
    best_shot: tuple[int, LiveSnapshot] | None = None
    began_at: float = field(default_factory=time.monotonic)

    def play(self) -> tuple[Outcome, Path]:
        """Raises RuntimeClientError when the runtime stays away, Failure when it takes far too long."""
        with closing(AgentStore.open(self.home)) as store:
            session = self._open_session(store)
            view = LiveView(SnapshotSource(self.client, store, session.session_id), self.console)
            task = Task.model_validate_json(session.task_json)
            moment = Moment(n_trials=task.budgets.trials)
            self._find_earlier_urgent(session.session_id)
            patiently(lambda: view.follow(lambda snapshot: self._watch(snapshot, moment, task)))
            is_mirrored = self._await_mirror()
            facts = gather_report_input(store, self.client, session.session_id, model_calls=())
            outcome = outcome_of(
                facts,
                urgent_job_id=None if self.urgent is None else self.urgent.job_id,
                is_mirrored=is_mirrored,
            )
            path = facts.session.report_path or self.home / "reports" / f"{session.session_id}.html"
            report = write_report(facts, Path(path))
            self._save_screenshots(report)
            return outcome, report

    def _open_session(self, store: AgentStore) -> SessionView:
        left = unfinished_session(self.home)
        if left is None:
            return store.create_session(self.task)
        return store.request_resume(left)

    def _find_earlier_urgent(self, session_id: str) -> None:
        """The urgent jobs of a demo that was stopped half-way and goes on now."""
        names = [urgent_name(session_id, number) for number in range(1, MAX_URGENT + 1)]
        found = [job for job in self.client.jobs(limit=500) if job.spec.idempotency_token in names]
        self.n_urgent = len(found)
        self.urgent = max(found, key=lambda job: names.index(job.spec.idempotency_token or ""), default=None)

    def _watch(self, snapshot: LiveSnapshot, moment: Moment, task: Task) -> bool:
        """Submits the urgent job when its moment has come; True when all is over."""
        self._consider_shot(snapshot)
        if self._may_ask_again(snapshot) and moment.has_come(snapshot):
            self.urgent = self.client.submit(urgent_job(task, snapshot.session_id, self.n_urgent + 1))
            self.n_urgent += 1
            self._tell(f"Urgent: {self.urgent.job_id} of class critical was submitted; every slot is busy.")
        if time.monotonic() - self.began_at > LONGEST_S:
            raise work_failed(
                f"the demo takes longer than {LONGEST_S / 60:.0f} minutes; logs are in {self.home / 'logs'}",
                code="demo_too_long",
            )
        if snapshot.session_state in AT_WORK:
            return False
        return self.urgent is None or self.client.job(self.urgent.job_id).is_ended

    def _may_ask_again(self, snapshot: LiveSnapshot) -> bool:
        """No urgent job yet, or the last one came just when a slot fell free and nobody had to leave for it."""
        if self.urgent is None:
            return True
        if snapshot.preemptions or self.n_urgent >= MAX_URGENT:
            return False
        self.urgent = self.client.job(self.urgent.job_id)
        return self.urgent.is_ended

    def _tell(self, line: str) -> None:
        self.console.print(Text(line, style="bold red"), soft_wrap=True)

    def _await_mirror(self) -> bool:
        """Until MLflow has every record, but not for ever; whether it has."""
        deadline = time.monotonic() + MIRROR_PATIENCE_S
        is_told = False
        while time.monotonic() < deadline:
            try:
                n_left = self.client.info().n_outbox
            except RuntimeClientError as error:
                if not error.retryable:
                    raise
                n_left = -1
            if n_left == 0:
                return True
            if not is_told:
                is_told = True
                self.console.print(Text("Waiting until MLflow has every record …"))
            time.sleep(0.5)
        return False

    def _consider_shot(self, snapshot: LiveSnapshot) -> None:
        """Remember the snapshot that shows most at once."""
        score = sum(slot.step is not None for slot in snapshot.slots)
        urgent = [slot for slot in snapshot.slots if slot.priority_class == "critical"]
        score += 4 * bool(urgent) + 3 * any(slot.step is not None for slot in urgent)
        score += 2 * any(waiting.is_requeued for waiting in snapshot.queue) + bool(snapshot.preemptions)
        if self.screenshots is not None and (self.best_shot is None or score > self.best_shot[0]):
            self.best_shot = (score, snapshot)

    def _save_screenshots(self, report: Path) -> None:
        if self.screenshots is None or self.best_shot is None:
            return
        self.screenshots.mkdir(parents=True, exist_ok=True)
        (self.screenshots / "live.svg").write_text(screenshot(self.best_shot[1]), encoding="utf-8")
        (self.screenshots / "report.html").write_bytes(report.read_bytes())

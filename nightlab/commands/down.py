"""`nightlab down`: stop what `nightlab up` started, in order."""

from __future__ import annotations

from typing import Annotated

import typer

from nightlab.failure import ExitCode
from nightlab.output import note, plural, print_json
from nightlab.services.control import Services, is_up, present_settings
from nightlab.services.settings import JobsAtStop, ServiceSettings
from nightlab.services.state import Phase

from .options import HomeOption, JsonOption, home_folder

EPILOG = """\b
Examples:
  nightlab down                running jobs checkpoint, and resume at the next up
  nightlab down --jobs leave   training goes on, and is taken over at the next up
  nightlab down --jobs cancel  running jobs end for good"""

WORDS = {
    Phase.STOPPING_AGENT: "stopping the agent",
    Phase.STOPPING_SERVICES: "stopping the runtime and MLflow",
}

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog=EPILOG)
def down(
    jobs: Annotated[
        JobsAtStop, typer.Option(help="What becomes of running jobs.", case_sensitive=False)
    ] = JobsAtStop.REQUEUE,
    leave_jobs: Annotated[bool, typer.Option("--leave-jobs", help="The same as --jobs leave.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop the agent, the jobs, the runtime and MLflow, in this order.

    By default running jobs get their preempt notice, checkpoint, go back to the queue, and resume at the next
    `nightlab up`. Ctrl-C while it waits for them stops the services at once and leaves the training running.
    """
    folder = home_folder(home)
    was_up = is_up(folder)
    services = Services(present_settings(folder) or ServiceSettings(home=folder))
    wanted = JobsAtStop.LEAVE if leave_jobs else jobs
    if was_up or services.state() is not None:
        _stop(services, wanted)
    state = services.state()
    has_left_jobs = was_up and state is not None and state.has_left_jobs
    if has_left_jobs and not as_json:
        note("the runtime did not help: training that still runs goes on, and is taken over at the next up")
    if as_json:
        print_json({"was_up": was_up, "jobs": wanted.value, "has_left_jobs": has_left_jobs})
    else:
        print("nightlab is down" if was_up else f"nightlab was not up for {folder}")


def _stop(services: Services, jobs: JobsAtStop) -> None:
    try:
        services.stop(jobs=jobs, watch=Progress(services))
    except KeyboardInterrupt:
        note("stopping at once; training that still runs is taken over at the next up")
        services.stop_at_once()
        raise typer.Exit(ExitCode.INTERRUPTED) from None


class Progress:
    """Says each phase once, and how many jobs are still waited for."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._said = ""
        self._n_calls = 0

    def __call__(self, phase: Phase) -> None:
        self._n_calls += 1
        if phase is Phase.STOPPING_JOBS:
            if self._n_calls % 10 == 1:
                self._say_jobs()
        elif phase in WORDS:
            self._say(WORDS[phase])

    def _say_jobs(self) -> None:
        from runtime_client.errors import RuntimeClientError

        try:
            n = len(self._services.client.jobs(states=("starting", "running", "stopping"), limit=1000))
        except RuntimeClientError:
            return
        if n:
            self._say(f"waiting for {plural(n, 'job')} to checkpoint and leave")

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            note(text)

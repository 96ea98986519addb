"""`nightlab trial reproduce` and `trial export`: a trial once more, here or elsewhere."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, work_failed, wrong_use
from nightlab.output import note, print_json, print_words

from .agent_store import TrialId, known_trials
from .options import HomeOption, JsonOption, home_folder, runtime

if TYPE_CHECKING:
    from agent.store.store import AgentStore
    from nightlab.trials.again import Lack
    from nightlab.trials.record import TrialRecord
    from runtime_client.client import RuntimeClient
    from runtime_client.models import JobSpec

ToleranceOption = Annotated[
    float | None,
    typer.Option(
        min=0, help="Largest distance, in the metric's units.", show_default="the noise of its replicates", metavar="X"
    ),
]
REPRODUCE_EPILOG = """\b
Examples:
  nightlab trial reproduce s1-t7
  nightlab trial reproduce s1-t7 --no-wait"""


def reproduce(
    trial_id: TrialId,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the value and judge it.")] = True,
    anyway: Annotated[bool, typer.Option("--anyway", help="Go on without what can no longer be had.")] = False,
    tolerance: ToleranceOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a trial again and hold the new value against the record.

    Same code snapshot, packages, data, seed and device model; says what can no longer be had. Exit 1 if the value is
    another one by more than chance.
    """
    from agent.planner.reproduction import held_against_record
    from agent.tools.again import submit_again
    from nightlab.following import JobFollower
    from nightlab.trials.again import lacks, value_of

    folder = home_folder(home)
    with known_trials(folder, trial_id) as store, runtime(home) as client:
        record = _launched(store, folder, trial_id, client)
        found = lacks(record, client, folder)
        _tell(found, as_json)
        _refuse_what_is_gone(record, found, anyway)
        assert record.job is not None
        scorer = None if record.score_job is None else _spec(record.score_job.spec, record, found)
        job = submit_again(client, _spec(record.job.spec, record, found), scorer)[-1]
        data = {"trial_id": trial_id, "job_id": job.job_id, "lacks": [asdict(one) for one in found]}
        if not wait:
            print_json(data) if as_json else print(f"{job.job_id} runs {trial_id} again: nightlab job get {job.job_id}")
            return
        try:
            ended = JobFollower(client, job.job_id, shows_output=False, shows_state=not as_json).until_end()
        except KeyboardInterrupt:
            note(f"\ndetached; {job.job_id} goes on. End it with: nightlab job cancel {job.job_id}")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        value, why = value_of(client, ended, record.task.objective)
    others = [one.value for one in record.siblings if one.value is not None and one.trial_id != trial_id]
    held = held_against_record(record.trial.value, value, others, tolerance=tolerance)
    if as_json:
        print_json({**data, "reproduction": asdict(held), "note": why})
    else:
        print_words(f"{trial_id}: {held.outcome.value.replace('_', ' ')}: {held.reason}{f' ({why})' if why else ''}")
    if not held.is_held:
        raise typer.Exit(ExitCode.WORK_FAILED)


def export(
    trial_id: TrialId,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="New folder.", show_default="TRIAL-evidence", metavar="FOLDER")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a folder with all that is needed to hold this trial against a second run elsewhere.

    Parameters, seed, value, curves, code, environment, fingerprints, sums. `nightlab verify FOLDER` reads it.
    """
    from agent.planner.compared import hold_against
    from agent.planner.configuration import configuration_id, default_params
    from nightlab.trials.evidence import FolderTaken, digest_of_sums, write_evidence

    folder = home_folder(home)
    target = (output or Path(f"{trial_id}-evidence")).expanduser().absolute()
    with known_trials(folder, trial_id) as store, runtime(home) as client:
        record = _launched(store, folder, trial_id, client)
        points = [point for job_id in record.trial.trained_by for point in client.metrics(job_id)]
        if record.score_job is not None:
            points += client.metrics(record.score_job.job_id)
        default = configuration_id(default_params(record.task))
        defaults = [one for one in store.trials(record.trial.session_id) if one.configuration == default]
        held = hold_against(record.siblings, defaults, record.task)
        try:
            evidence = write_evidence(target, record, points, held, home=folder)
        except FolderTaken as error:
            raise wrong_use(str(error), code="folder_taken", path="output") from error
    digest = digest_of_sums(target)
    if as_json:
        print_json({"folder": str(target), "sums_sha256": digest, "has_code": evidence.code is not None})
        return
    print(target)
    note(f"sha256 of its SHA256SUMS, for whoever gets it: {digest}")
    if evidence.code is None:
        note("without code: it was not pinned (job.code_source.snapshot: auto), or its snapshot was removed")


def _launched(store: AgentStore, folder: Path, trial_id: str, client: RuntimeClient) -> TrialRecord:
    """
    Raises:
        Failure: the trial has no job, or the runtime no longer knows it.
    """
    from nightlab.trials.record import read_record

    record = read_record(store, folder, trial_id, client)
    if record.job is None:
        why = "was never launched" if record.trial.job_id is None else f"ran as {record.trial.job_id}, which is unknown"
        raise work_failed(f"{trial_id} {why} to this runtime; nothing can be run again", code="no_job")
    return record


def _tell(found: list[Lack], as_json: bool) -> None:
    if not as_json:
        for one in found:
            note(f"{one.what}: {one.text}")


def _refuse_what_is_gone(record: TrialRecord, found: list[Lack], anyway: bool) -> None:
    """
    Raises:
        Failure: something without which it is another trial is gone, and nobody said to go on.
    """
    blocking = [one for one in found if one.is_blocking]
    if blocking and not anyway:
        said = "; ".join(f"{one.what}: {one.text}" for one in blocking)
        raise work_failed(
            f"{record.trial.trial_id} can not be run as it was: {said}. Go on with what there is now with --anyway",
            code="can_not_be_had",
        )


def _spec(recorded: JobSpec, record: TrialRecord, found: list[Lack]) -> JobSpec:
    """What is submitted: what is gone is replaced by what there is now."""
    from agent.tools.again import spec_again

    gone = {one.what for one in found if one.is_blocking}
    model = None if "device" in gone else record.device_model
    spec = spec_again(recorded, trial_id=record.trial.trial_id, device_model=model)
    source = spec.code_source
    if "code" in gone and source is not None:
        spec = spec.model_copy(update={"code_source": source.model_copy(update={"snapshot_id": None})})
    if "python" in gone:
        from nightlab.shell import present_python
        from runtime_client.models import Environment

        spec = spec.model_copy(update={"environment": Environment(python=present_python())})
    return spec

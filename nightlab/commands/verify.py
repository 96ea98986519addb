"""`nightlab verify FOLDER`: an evidence folder from elsewhere, checked and run again here."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, work_failed
from nightlab.output import note, print_json, print_words

from .options import HomeOption, JsonOption, home_folder
from .trial_again import ToleranceOption

if TYPE_CHECKING:
    from nightlab.trials.evidence import Evidence
    from nightlab.trials.verifying import Verified

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})

VERIFY_EPILOG = """\b
Examples:
  nightlab verify s1-t7-evidence --no-run
  nightlab verify s1-t7-evidence --tolerance 0.002"""


@app.command(epilog=VERIFY_EPILOG)
def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Evidence folder.", show_default=False)],
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run its code again, or only check the folder.")] = True,
    python: Annotated[
        str | None,
        typer.Option(help="Interpreter, or folder of an environment.", show_default="of this shell", metavar="PATH"),
    ] = None,
    tolerance: ToleranceOption = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="Give up after so long.", metavar="N")] = 720.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check an evidence folder, run its command again in a copy, and hold the value against the recorded one.

    A folder in which a file was changed, added or removed is refused. It runs foreign code: look into code/ first.
    Uses the runtime that is up; without one, starts its own and ends it.
    """
    from nightlab.shell import named_python, present_python
    from nightlab.trials.evidence import digest_of_sums
    from nightlab.trials.foreign_folder import Refused, read_evidence
    from nightlab.trials.verifying import lacks_here

    place = folder.expanduser().resolve()
    try:
        evidence = read_evidence(place)
    except Refused as error:
        raise work_failed(f"refused: {error}", code="tampered") from error
    interpreter = named_python(python) if python is not None else present_python()
    found = lacks_here(evidence, interpreter)
    data: dict[str, object] = {
        "trial_id": evidence.trial_id,
        "sums_sha256": digest_of_sums(place),
        "lacks": [asdict(one) for one in found],
    }
    if not as_json:
        note(f"the folder is whole; sha256 of its SHA256SUMS: {data['sums_sha256']}")
        for one in found:
            note(f"{one.what}: {one.text}")
    if not run:
        print_json(data) if as_json else print(f"{evidence.trial_id}: not run")
        return
    _report(data, evidence, _run(evidence, place, interpreter, minutes, tolerance, home), as_json)


def _run(
    evidence: Evidence, place: Path, python: str | None, minutes: float, tolerance: float | None, home: Path | None
) -> Verified:
    from nightlab.trials.record import connected
    from nightlab.trials.verifying import CannotRun, run_again

    client = connected(home_folder(home))
    try:
        return run_again(evidence, place, python=python, client=client, timeout_s=minutes * 60, tolerance=tolerance)
    except CannotRun as error:
        raise work_failed(f"{evidence.trial_id} can not be run here: {error}", code="can_not_run") from error
    finally:
        if client is not None:
            client.close()


def _report(data: dict[str, object], evidence: Evidence, verified: Verified, as_json: bool) -> None:
    held = verified.reproduction
    if as_json:
        print_json({**data, "job_id": verified.job_id, "reproduction": asdict(held), "note": verified.note})
    else:
        why = f" ({verified.note})" if verified.note else ""
        print_words(f"{evidence.trial_id}: {held.outcome.value.replace('_', ' ')}: {held.reason}{why}")
    if not held.is_held:
        raise typer.Exit(ExitCode.WORK_FAILED)

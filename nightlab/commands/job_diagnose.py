"""`nightlab job diagnose`: why a job failed, what says so, and what to change."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import HomeOption, JsonOption, runtime

if TYPE_CHECKING:
    from runtime_client.models import AttemptView, JobView


def diagnose(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="Job id, such as j1.", show_default=False)],
    attempt: Annotated[
        int | None, typer.Option(min=1, help="This attempt.", show_default="the last that ended", metavar="N")
    ] = None,
    task: Annotated[
        Path | None,
        typer.Option(help="Where the rules can not tell, ask the model of this task file.", metavar="FILE"),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a job failed: the class of the failure, the lines that say so, the cause, what to change.

    By rules, from the record of the attempt, the end of the output of all ranks, and the metrics. Where nothing tells,
    it says so, or asks a model (--task). Exit 1 if the job has not failed, or the model gave no answer.
    """
    from agent.doctor.diagnosis import FailureClass
    from agent.doctor.gather import gather
    from agent.doctor.rules import diagnose as by_rules
    from nightlab.diagnosis_page import print_diagnosis
    from nightlab.output import print_json
    from nightlab.second_opinion import second_opinion

    with runtime(home) as client:
        job = client.job(job_id)
        chosen = _chosen(job, attempt)
        evidence = gather(client, job, chosen)
    found, refused = by_rules(evidence), tuple[str, ...]()
    if task is not None and found.failure is FailureClass.UNKNOWN:
        opinion = second_opinion(task, job, evidence)
        found, refused = opinion.diagnosis, opinion.refusals
    number = None if chosen is None else chosen.attempt
    if as_json:
        suggestion = None if job.suggestion is None else job.suggestion.model_dump()
        print_json(
            {
                "job_id": job_id,
                "attempt": number,
                "exit_reason": evidence.exit_reason,
                "exit_code": evidence.exit_code,
                **asdict(found),
                "parameter": suggestion,
                "not_taken": refused,
            }
        )
    else:
        print_diagnosis(job, number, evidence, found, refused)


def _chosen(job: JobView, number: int | None) -> AttemptView | None:
    """The attempt to look at; None: the job ended without one.

    Raises:
        Failure: there is no such attempt, or nothing has failed.
    """
    from agent.doctor.gather import last_ended
    from nightlab.failure import work_failed, wrong_use
    from nightlab.following import state_line

    if number is not None:
        chosen = next((one for one in job.attempts if one.attempt == number), None)
        if chosen is None:
            why = f"job {job.job_id} has no attempt {number}; it has had {len(job.attempts)}"
            raise wrong_use(why, code="no_such_attempt", path="attempt")
    else:
        chosen = last_ended(job)
    is_fine = job.state == "succeeded" and number is None
    is_open = chosen is None and not job.is_ended
    if is_fine or is_open or (chosen is not None and (chosen.ended_at is None or chosen.outcome == "succeeded")):
        raise work_failed(f"nothing has failed there: {state_line(job)}", code="not_failed")
    return chosen

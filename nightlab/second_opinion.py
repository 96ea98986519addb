"""A model's opinion about one job, for a person who asks; belongs to no session, so no budget counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightlab.failure import Failure, work_failed, wrong_use

if TYPE_CHECKING:
    from pathlib import Path

    from agent.doctor.evidence import Evidence
    from agent.doctor.question import Checked
    from agent.llm.ladder import Asker
    from agent.store.views import ParamValue
    from agent.task import Task
    from runtime_client.models import JobView


def second_opinion(task_file: Path, job: JobView, evidence: Evidence) -> Checked:
    """What the model of a task file says.

    Raises:
        Failure: the file names no model, or it gave no answer that could be used.
    """
    from agent.llm.chat import ModelError
    from agent.llm.ladder import Asker, asking
    from agent.llm.opening import open_chat

    from .commands.task_argument import read_task

    task = read_task(task_file)
    if task.model is None:
        raise wrong_use(f"{task_file} names no model: add `model: {{name: ...}}`", code="no_model", path="model")
    try:
        chat = open_chat(task.model)
    except ModelError as error:
        raise _no_answer(str(error)) from error
    try:
        return opinion_of(Asker(chat, asking(task.model)), task, job, evidence)
    finally:
        chat.close()


def opinion_of(asker: Asker, task: Task, job: JobView, evidence: Evidence) -> Checked:
    """
    Raises:
        Failure: no answer that could be used.
    """
    from agent.doctor.answer import Answer
    from agent.doctor.question import MAX_TOKENS, checked, question

    params = params_in(task, job)
    asked = asker.ask(question(evidence, params, task), Answer, None, MAX_TOKENS)
    if asked.value is None:
        raise _no_answer(f"{asked.model}: {asked.why}")
    return checked(asked.value, evidence, params, task, by=asked.model)


def params_in(task: Task, job: JobView) -> dict[str, ParamValue]:
    """The parameters of the task as the job had them; what it did not name has its default."""
    from agent.planner.configuration import canonical, default_params, problems

    given = {name: value for name, value in job.spec.parameters.items() if name in task.space}
    default = default_params(task)
    usable = {n: v for n, v in given.items() if isinstance(v, str | int | float | bool | None)}
    whole = {**default, **usable}
    return default if problems(whole, task) else canonical(whole, task)


def _no_answer(why: str) -> Failure:
    return work_failed(f"no second opinion: {why}", code="no_answer", kind="unavailable")

"""`nightlab model check`: whether a language model's endpoint is fit for a session, before one depends on it."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nightlab.failure import ExitCode, Failure, unreachable, wrong_use
from nightlab.output import duration, note, print_json, print_words

from .options import JsonOption

if TYPE_CHECKING:
    from agent.llm.chat import ModelError
    from agent.llm.check import RungTried, Tried
    from agent.planner.readiness import Finding
    from agent.task import Model, Task

CHECK_EPILOG = """\b
Examples:
  nightlab model check --task task.yaml
  nightlab model check --base-url http://127.0.0.1:8080/v1 --model qwen
  nightlab model check --model gpt-4.1-mini --key-file ~/.openai-key --json"""

_WRONG_USE = ("unauthorized", "unknown_model", "forbidden")
"""Troubles that the caller can mend."""
_NO_ANSWER = ("unreachable", "rate_limited", "timed_out", "failed")
_WORDS = {
    "right": "right",
    "aside": "right, in another form than was asked for",
    "wrong": "wrong answer in a form that can be read",
    "unusable": "no answer that can be read",
    "refused": "the endpoint does not take it",
    "silent": "no reply",
}


def check(
    task_file: Annotated[
        Path | None, typer.Option("--task", metavar="TASK.yaml", help="The model of this task.", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="As the endpoint calls it.", show_default=False)
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", metavar="URL", help="Of the endpoint; OPENAI_BASE_URL, else OpenAI's.", show_default=False
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="PATH", help="File with the key; else OPENAI_API_KEY.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try a language model: is it there, by what rung does it answer, does what is sent fit, how fast, at what price.

    A few small calls, each a question with one right answer. Exit 1 if a session could not use it, 2 if the name or the
    key is wrong, 3 if nobody answers.
    """
    from agent.llm.chat import ModelError
    from agent.llm.check import try_rungs
    from agent.llm.guard import calls_allowed
    from agent.llm.listing import look
    from agent.llm.openai_chat import Endpoint, OpenAIChat
    from agent.llm.opening import base_url_of, key_of
    from agent.llm.prices import known_price
    from agent.planner.readiness import Level
    from agent.thinking.fitness import Known, findings

    model, task = _model(task_file, name, base_url, key_file)
    quiet = as_json
    try:
        url = base_url_of(model, os.environ)
        key = key_of(model, url, os.environ)
        calls = calls_allowed(os.environ)
        if not quiet:
            note(f"{model.name} at {url}")
        listing = look(url, model.name, key, calls)
    except ModelError as error:
        raise _failure(error) from error
    chat = OpenAIChat(Endpoint(base_url=url, model=model.name, key=key, calls=calls))
    tried = try_rungs(chat, model, say=(lambda _: None) if quiet else _print_rung)
    chat.close()
    price = model.price or known_price(model.name, url)
    known = Known(context_tokens=listing.context_tokens, names=listing.names, price=price)
    found = findings(tried, model, known, task=task)
    if as_json:
        print_json(_data(model, url, tried, found))
    else:
        _print_findings(found)
    problem = next((one for one in found if one.level is Level.PROBLEM), None)
    if problem is not None:
        raise typer.Exit(_exit_code(problem.code))


def _model(
    task_file: Path | None, name: str | None, base_url: str | None, key_file: Path | None
) -> tuple[Model, Task | None]:
    """Of the task, with it, or of the options.

    Raises:
        Failure: both, neither, or a task without a model.
    """
    from agent.task import Model

    from .task_argument import read_task

    if task_file is not None:
        if name is not None or base_url is not None or key_file is not None:
            raise wrong_use("--task: the task names the model; leave the other options out", code="both", path="task")
        task = read_task(task_file)
        if task.model is None:
            what = "--task: the task names no model; add model: {name: ...}, and model to search.use to let it suggest"
            raise wrong_use(what, code="no_model", path="model")
        return task.model, task
    if name is None or not 0 < len(name.strip()) <= 200:
        raise wrong_use("say which model: --task TASK.yaml, or --model NAME", code="no_model", path="model")
    path = None if key_file is None else str(key_file.expanduser().absolute())
    return Model(name=name.strip(), base_url=base_url, key_file=path), None


def _failure(error: ModelError) -> Failure:
    if error.trouble.value in _WRONG_USE:
        return wrong_use(str(error), code=error.trouble.value, path="model")
    return unreachable(str(error), code=error.trouble.value)


def _exit_code(code: str) -> ExitCode:
    if code in _WRONG_USE:
        return ExitCode.WRONG_USE
    return ExitCode.UNREACHABLE if code in _NO_ANSWER else ExitCode.WORK_FAILED


def _print_rung(one: RungTried) -> None:
    took = "" if one.took_s is None else f", {duration(one.took_s)}"
    again = f" at the {one.n_tries}nd try" if one.n_tries > 1 and one.is_right else ""
    why = f": {one.note}" if one.note else ""
    print_words(f"  {one.rung.value:8} {_WORDS[one.came.value]}{again}{took}{why}")


def _print_findings(found: list[Finding]) -> None:
    print()
    for one in found:
        advice = f". What to do: {one.what_to_do}" if one.what_to_do else ""
        print_words(f"{one.level.value}: {one.text}{advice}.")


def _data(model: Model, url: str, tried: Tried, found: list[Finding]) -> dict[str, Any]:
    from agent.thinking.fitness import reached

    best = reached(tried.rungs, model)
    return {
        "model": model.name,
        "base_url": url,
        "rung": "none" if best is None else best.rung.value,
        "rungs": [asdict(one) for one in tried.rungs],
        "speed": asdict(tried.speed),
        "findings": [asdict(one) for one in found],
    }

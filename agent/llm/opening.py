"""From what a task says of its model to one that can be asked: where it answers, its key, its price, its accounts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.llm.archive import Archive
from agent.llm.chat import ModelError, Trouble
from agent.llm.guard import calls_allowed, host_of
from agent.llm.metered import MeteredModel
from agent.llm.prices import known_price
from agent.llm.redaction import secrets_in
from agent.spending import Spending
from agent.store.calls import CallBook
from agent.store.fenced import FencedWriter, Line
from agent.task import Model, Task

if TYPE_CHECKING:
    from agent.llm.openai_chat import OpenAIChat

OPENAI = "https://api.openai.com/v1"
_MAX_KEY_BYTES = 10_000


def open_model(
    task: Task,
    folder: Path,
    writer: FencedWriter,
    *,
    running_device_seconds: Callable[[], float] = lambda: 0.0,
    environ: Mapping[str, str] = os.environ,
) -> MeteredModel:
    """The model of a session. Nothing is called yet.

    Args:
        folder: where the archive goes, as `SESSION.models.jsonl`.
        running_device_seconds: what trials in flight have used so far, for budgets of money.

    Raises:
        ModelError: the task names none, or its address or key can not be used; the sentence says what to change.
    """
    if task.model is None:
        raise ModelError(Trouble.UNREACHABLE, "the task names no model: add `model: {name: ...}`")
    base_url = base_url_of(task.model, environ)
    key = key_of(task.model, base_url, environ)
    chat = open_chat(task.model, environ)
    secrets = secrets_in(environ) | secrets_in(task.job.env_variables) | ({key} if key else set())
    price = task.model.price or known_price(task.model.name, base_url)
    book = CallBook(writer)
    if price is None and task.budgets.cost_usd is not None and not book.calls():
        _say_uncounted(task.model, writer)
    return MeteredModel(
        chat,
        Spending(task, book, running_device_seconds),
        price=price,
        archive=Archive(archive_path(folder, writer.session_id), secrets),
        secrets=frozenset(secrets),
        close=chat.close,
        clock=writer.store.clock,
    )


def open_chat(model: Model, environ: Mapping[str, str] = os.environ) -> OpenAIChat:
    """A model without a session: nothing is booked, no budget holds it. Nothing is called yet; close it in the end.

    Raises:
        ModelError: its address or key can not be used; the sentence says what to change.
    """
    from agent.llm.openai_chat import Endpoint, OpenAIChat

    base_url = base_url_of(model, environ)
    key = key_of(model, base_url, environ)
    return OpenAIChat(Endpoint(base_url=base_url, model=model.name, key=key, calls=calls_allowed(environ)))


def archive_path(folder: Path, session_id: str) -> Path:
    """Where the talk of a session with its model is kept."""
    return folder / f"{session_id}.models.jsonl"


def base_url_of(model: Model, environ: Mapping[str, str]) -> str:
    """
    Raises:
        ModelError: it is no address.
    """
    base_url = model.base_url or environ.get("OPENAI_BASE_URL", "").strip() or OPENAI
    if not base_url.lower().startswith(("http://", "https://")) or not host_of(base_url):
        what = f"model.base_url: {base_url!r} is no address: it begins with http:// or https://, as {OPENAI}"
        raise ModelError(Trouble.UNREACHABLE, what)
    return base_url


def key_of(model: Model, base_url: str, environ: Mapping[str, str]) -> str | None:
    """The key in the file, else in the variable; None: there is none, as is right for many local servers.

    Raises:
        ModelError: the file can not be read or holds no key; or the vendor needs a key and there is none.
    """
    if model.key_file is not None:
        return _key_in(Path(model.key_file).expanduser())
    key = environ.get(model.key_env, "").strip()
    if key and not _is_key(key):
        raise ModelError(
            Trouble.UNAUTHORIZED, f"the variable {model.key_env} holds no key: it has spaces or odd characters"
        )
    if not key and host_of(base_url) == host_of(OPENAI):
        what = f"there is no key for {base_url}: set {model.key_env}, or name a file with model.key_file"
        raise ModelError(Trouble.UNAUTHORIZED, what)
    return key or None


def _key_in(path: Path) -> str:
    try:
        with path.open("rb") as file:
            key = file.read(_MAX_KEY_BYTES).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ModelError(Trouble.UNAUTHORIZED, f"model.key_file: {path} can not be read: {why}") from error
    if not _is_key(key):
        raise ModelError(
            Trouble.UNAUTHORIZED, f"model.key_file: {path} holds no key: one line without spaces is needed"
        )
    return key


def _is_key(text: str) -> bool:
    """What can stand in a header."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _say_uncounted(model: Model, writer: FencedWriter) -> None:
    text = (
        f"budgets.cost_usd does not count the model {model.name}: its price is unknown. Give it as "
        "model: {price: {prompt: ..., completion: ...}}, in dollars for a million tokens (0 for one's own), or limit "
        "it by budgets.tokens"
    )
    with writer.writing() as connection:
        writer.say(connection, [Line(step="session", text=text)])

"""What `runs/create` of a training process means. A function of a connection.

The first one of an attempt is answered with the job's own run; later ones make runs below it (or below the run that
the script names as parent). On a later attempt of the same job the first one gets the job's own run again, and a
further run that the script *names* continues the one of that name under the same parent, when earlier attempts made
exactly one: a resumed script does not double its folds. Unnamed runs, and names used more than once, can not be told
apart safely; they become new runs with the tag `nightlab.attempt`. The training SDK asks for the job's own run by a
tag, from any process of the attempt; that counts as no opening.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from runtime.engines.contract import AttemptKey
from runtime.store import records
from runtime.store.records import RunRow

from . import experiments, queries, recording
from .answers import MlflowRefusal
from .recording import NAME_TAG, PARENT_TAG
from .requests import CreateRun, pairs_of

RESERVED = "nightlab."
ASKED_NAME = "nightlab.asked_run_name"
ASKED_PARENT = "nightlab.asked_parent"
OWN_RUN = "nightlab.own_run"
"""Tag of a request for the job's own run, whoever has opened it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One `runs/create` of an attempt."""

    key: AttemptKey
    body: CreateRun
    digest: str
    """Of the request's bytes: the client sends the same again when it saw no answer."""
    is_new: bool
    """An equal request was answered already by this process, so this one asks for another run."""
    fresh_run_id: str
    now_s: float


def open_run(connection: sa.Connection, opening: Opening) -> RunRow:
    """Answer with the job's own run or a further one, as the module says.

    A request that was carried out but never answered (the server was killed in between) finds its run again.

    Raises:
        MlflowRefusal: the job has no run, or a tag can not be recorded.
    """
    key = opening.key
    if any(tag.key == OWN_RUN for tag in opening.body.tags):
        return _own(connection, key)
    prefix = f"open:{key.job_id}.{key.attempt}."
    token = prefix + opening.digest
    if not opening.is_new:
        known = records.run_by_token(connection, token)
        if known is not None:
            return known
    elif records.run_by_token(connection, token) is not None:
        token = f"{token}.{opening.fresh_run_id}"
    own = _own(connection, key)
    if (own.idempotency_token or "").startswith(prefix):
        return _open_further(connection, opening, own, token)
    return _open_own(connection, opening, own, token)


def _own(connection: sa.Connection, key: AttemptKey) -> RunRow:
    own = records.run_of_job(connection, key.job_id)
    if own is None:
        raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", f"Job {key.job_id} has no run.")
    return own


def _open_own(connection: sa.Connection, opening: Opening, own: RunRow, token: str) -> RunRow:
    queries.take_run(connection, own.run_id, token=token, attempt=None)
    tags = _tags(opening.body)
    name = opening.body.run_name or tags.pop(NAME_TAG, "")
    tags.pop(NAME_TAG, None)
    parent = tags.pop(PARENT_TAG, None)
    if name and name != own.run_name:
        tags[ASKED_NAME] = name
    if parent is not None and parent != own.parent_run_id:
        tags[ASKED_PARENT] = parent
    tags["nightlab.attempt"] = str(opening.key.attempt)
    tags |= _asked_experiment(connection, opening.body, own)
    recording.log(connection, own.run_id, attempt=opening.key.attempt, tags=tags)
    return own


def _open_further(connection: sa.Connection, opening: Opening, own: RunRow, token: str) -> RunRow:
    key = opening.key
    tags = _tags(opening.body)
    name = opening.body.run_name or tags.pop(NAME_TAG, "")
    tags.pop(NAME_TAG, None)
    parent_run_id = _parent(connection, key, tags.pop(PARENT_TAG, None)) or own.run_id
    tags["nightlab.attempt"] = str(key.attempt)
    tags |= _asked_experiment(connection, opening.body, own)
    earlier = _continued(connection, key, parent_run_id, name)
    if earlier is not None:
        queries.take_run(connection, earlier.run_id, token=token, attempt=key.attempt)
        recording.set_status(connection, earlier, "RUNNING", opening.now_s)
        recording.log(connection, earlier.run_id, attempt=key.attempt, tags=tags)
        return _again(connection, earlier.run_id)
    row = RunRow(
        run_id=opening.fresh_run_id,
        job_id=key.job_id,
        attempt=key.attempt,
        parent_run_id=parent_run_id,
        experiment_name=own.experiment_name,
        run_name=name or f"{own.run_name}-{1 + len(queries.children_of_job(connection, key.job_id))}",
        status="RUNNING",
        created_at=opening.now_s,
        idempotency_token=token,
    )
    recording.new_run(connection, row, tags=_inherited(connection, own) | tags, params={})
    return row


def _continued(connection: sa.Connection, key: AttemptKey, parent_run_id: str, name: str) -> RunRow | None:
    """The one run of an earlier attempt that a named run continues."""
    if not name or key.attempt == 1:
        return None
    earlier = queries.earlier_children(
        connection, job_id=key.job_id, before_attempt=key.attempt, parent_run_id=parent_run_id, run_name=name
    )
    return earlier[0] if len(earlier) == 1 else None


def _parent(connection: sa.Connection, key: AttemptKey, asked: str | None) -> str | None:
    """The parent that a script names, when it is a run of the same job."""
    row = None if asked is None else records.get_run(connection, asked)
    return row.run_id if row is not None and row.job_id == key.job_id else None


def _tags(body: CreateRun) -> dict[str, str]:
    """The tags that a script may set: ours are left as they are."""
    tags = {k: v for k, v in pairs_of("tag", body.tags).items() if not k.startswith(RESERVED)}
    if body.user_id:
        tags.setdefault("mlflow.user", body.user_id)
    return tags


def _asked_experiment(connection: sa.Connection, body: CreateRun, own: RunRow) -> dict[str, str]:
    """A tag with the experiment that the script chose, when it is not the job's."""
    name = experiments.name_of(connection, body.experiment_id)
    if name is None or name in (experiments.DEFAULT_NAME, own.experiment_name):
        return {}
    return {queries.ASKED_EXPERIMENT: name}


def _inherited(connection: sa.Connection, own: RunRow) -> dict[str, str]:
    """Tags that every run of a job carries."""
    names = ("nightlab.job_id", "nightlab.session_id", "nightlab.priority_class", "nightlab.project")
    tags = records.get_tags(connection, own.run_id)
    return {name: tags[name] for name in names if name in tags}


def _again(connection: sa.Connection, run_id: str) -> RunRow:
    return queries.run_contents(connection, run_id).row

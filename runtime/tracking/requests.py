"""The bodies that MLflow clients send, as far as the gateway reads them, and MLflow's limits on them.

Unknown fields are ignored, as MLflow ignores them: clients of other versions send more.
"""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from .answers import MlflowRefusal

MAX_METRICS = 1000
MAX_PARAMS_OR_TAGS = 100
MAX_ENTITIES = 1000
MAX_KEY_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 8000
_NAME = re.compile(r"[/\w.\- :]+")
_INT64 = 2**63

Point = tuple[str, float, int, float]
"""(name, value, step, seconds since the epoch); the value may be NaN or infinite."""

RunId = Annotated[str, Field(validation_alias=AliasChoices("run_id", "run_uuid"), min_length=1)]
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)]
Step = Annotated[int, Field(ge=-_INT64, lt=_INT64)]


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class KeyValue(Body):
    key: str
    value: Text = ""


class MetricBody(Body):
    key: str
    value: float
    """A number, or one of the strings `NaN`, `Infinity`, `-Infinity`."""
    timestamp: int | None = None
    """Milliseconds; None: now."""
    step: Step = 0


class LogMetric(MetricBody):
    run_id: RunId


class LogParam(KeyValue):
    run_id: RunId


class SetTag(KeyValue):
    run_id: RunId


class DeleteTag(Body):
    run_id: RunId
    key: str


class LogBatch(Body):
    run_id: RunId
    metrics: tuple[MetricBody, ...] = ()
    params: tuple[KeyValue, ...] = ()
    tags: tuple[KeyValue, ...] = ()


class CreateRun(Body):
    experiment_id: Text = "0"
    user_id: str = ""
    run_name: str = ""
    start_time: int | None = None
    tags: tuple[KeyValue, ...] = ()


class UpdateRun(Body):
    run_id: RunId
    status: str | None = None
    end_time: int | None = None
    run_name: str | None = None


class SearchRuns(Body):
    experiment_ids: tuple[Text, ...] = ()
    filter: str = ""
    run_view_type: str = "ACTIVE_ONLY"
    max_results: int = Field(default=1000, ge=1, le=50_000)
    order_by: tuple[str, ...] = ()
    page_token: str = ""


class CreateExperiment(Body):
    name: str = Field(min_length=1, max_length=250)


class GetExperiment(Body):
    experiment_id: Text


class GetExperimentByName(Body):
    experiment_name: str = Field(min_length=1, max_length=250)


class GetRun(Body):
    run_id: RunId


class GetHistory(Body):
    run_id: RunId
    metric_key: str
    max_results: int | None = Field(default=None, ge=1)
    page_token: str = ""


class RunScoped(Body):
    """Any body that names one run; the rest is kept as it came."""

    run_id: RunId


B = TypeVar("B", bound=Body)


def parse(model: type[B], raw: bytes) -> B:
    """Read a JSON body.

    Raises:
        MlflowRefusal: INVALID_PARAMETER_VALUE, naming the field and the value seen.
    """
    try:
        return model.model_validate_json(raw or b"{}")
    except ValidationError as error:
        raise _refusal(error) from error


def parse_query(model: type[B], query: dict[str, Any]) -> B:
    """Read a query string; errors as for `parse`."""
    try:
        return model.model_validate(query)
    except ValidationError as error:
        raise _refusal(error) from error


def _refusal(error: ValidationError) -> MlflowRefusal:
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return MlflowRefusal("INVALID_PARAMETER_VALUE", f"Missing value for required parameter '{path}'.")
    seen = repr(first["input"])[:200]
    return MlflowRefusal("INVALID_PARAMETER_VALUE", f"Invalid value {seen} for parameter '{path}': {first['msg']}")


def points_of(metrics: tuple[MetricBody, ...], *, now_s: float) -> list[Point]:
    """The metrics of a request as points; a missing timestamp becomes `now_s`.

    Raises:
        MlflowRefusal: too many, or a name that MLflow would not take.
    """
    _limit("metrics", len(metrics), MAX_METRICS)
    for metric in metrics:
        check_name("metric", metric.key)
    return [
        (metric.key, metric.value, metric.step, now_s if metric.timestamp is None else metric.timestamp / 1000)
        for metric in metrics
    ]


def pairs_of(kind: str, pairs: tuple[KeyValue, ...]) -> dict[str, str]:
    """Params or tags as a mapping, values cut to MLflow's length as MLflow cuts them.

    Raises:
        MlflowRefusal: too many, a bad name, or one param twice with two values.
    """
    _limit(f"{kind}s", len(pairs), MAX_PARAMS_OR_TAGS)
    longest = MAX_PARAM_LENGTH if kind == "param" else MAX_TAG_LENGTH
    found: dict[str, str] = {}
    for pair in pairs:
        check_name(kind, pair.key)
        value = pair.value[:longest]
        if kind == "param" and found.get(pair.key, value) != value:
            raise MlflowRefusal("INVALID_PARAMETER_VALUE", f"Duplicate parameter '{pair.key}' with different values.")
        found[pair.key] = value
    return found


def check_entities(batch: LogBatch) -> None:
    _limit("metrics, params and tags", len(batch.metrics) + len(batch.params) + len(batch.tags), MAX_ENTITIES)


def check_name(kind: str, name: str) -> None:
    """Refuse what MLflow refuses: odd characters, names that are no plain relative path, too long ones."""
    if len(name) > MAX_KEY_LENGTH:
        raise MlflowRefusal(
            "INVALID_PARAMETER_VALUE",
            f"The {kind} name {name[:60]!r}... has {len(name)} characters; at most {MAX_KEY_LENGTH} are allowed.",
        )
    if not is_good_name(name):
        raise MlflowRefusal(
            "INVALID_PARAMETER_VALUE",
            f"Invalid {kind} name {name!r}: use letters, digits, `_`, `-`, `.`, `:`, spaces and `/`; no leading "
            "slash, no `..`, no empty part.",
        )


def is_good_name(name: str) -> bool:
    if _NAME.fullmatch(name) is None:
        return False
    plain = posixpath.normpath(name)
    return plain == name and plain != "." and not plain.startswith(("..", "/"))


def _limit(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise MlflowRefusal(
            "INVALID_PARAMETER_VALUE",
            f"A batch logging request can contain at most {limit} {what}. Got {count} {what}. "
            "Please split up the request and log it in parts.",
        )

"""A job's specification: what would be lost or changed on the way is refused."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from runtime_client.models import JobSpec


def spec(**parameters: Any) -> JobSpec:
    return JobSpec(experiment_name="x", command="true", parameters=parameters)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (float("inf"), "inf"),
        ({"b": [1.0, float("nan")]}, r"a\.b\.1: nan"),
        (np.int64(3), "numpy.int64"),
        (datetime.date(2020, 1, 2), "datetime.date"),
        ({1, 2}, "builtins.set"),
    ],
)
def test_parameters_that_json_would_lose_are_refused_with_their_place(value: Any, seen: str) -> None:
    with pytest.raises(ValidationError, match=seen):
        spec(a=value)


def test_parameters_arrive_as_they_were_given() -> None:
    given = {"lr": 3e-4, "n": 2**60, "net": {"sizes": [1, 2], "act": None}, "flag": True, "np": np.float64(0.5)}
    arrived = JobSpec.model_validate_json(spec(**given).model_dump_json()).parameters
    assert json.dumps(arrived) == json.dumps(given)


@pytest.mark.parametrize(("given", "expected"), [(5, 5.0), ("off", "off"), (False, "off"), (None, None)])
def test_a_limit_for_hangs_is_minutes_or_off_as_yaml_reads_it(given: Any, expected: Any) -> None:
    assert JobSpec(experiment_name="x", command="true", hang_minutes=given).hang_minutes == expected


@pytest.mark.parametrize("given", [True, 0, -1, "on"])
def test_other_limits_for_hangs_are_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        JobSpec(experiment_name="x", command="true", hang_minutes=given)


@pytest.mark.parametrize(
    "compute",
    [
        {"accelerator_share": 0.5, "num_accelerators": 2},
        {"accelerator_share": 0.5, "exclusive": True},
        {"accelerator_share": 1.5},
        {"cpus": 0},
        {"memory_gb": -1},
        {"accelerator_type": []},
    ],
)
def test_computing_needs_that_can_not_be_are_refused(compute: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JobSpec(experiment_name="x", command="true", compute=compute)

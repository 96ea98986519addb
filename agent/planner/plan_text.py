"""A plan as JSON and back: what the store keeps and MLflow shows. Pure.

Version 2 holds any number of hypotheses. Version 1, which had no number and one hypothesis, is still read.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from agent.planner.calibration import calibration
from agent.planner.claims import first_claim
from agent.planner.hypothesis import Hypothesis, Prediction, Status
from agent.planner.plan import Phase, Plan
from agent.task import Task

VERSION = 2


class UnknownPlanVersion(ValueError):
    """The plan was written by a newer nightlab."""


def plan_to_json(plan: Plan) -> str:
    """The plan with its version; `brier` and `calibration` are derived and there for the reader alone."""
    data = asdict(plan)
    for written, hypothesis in zip(data["hypotheses"], plan.hypotheses, strict=True):
        written["brier"] = hypothesis.brier
    return json.dumps({"version": VERSION, **data, "calibration": asdict(calibration(plan.hypotheses))}, indent=2)


def plan_from_json(text: str, task: Task) -> Plan:
    """Read a plan of any version up to this one.

    Raises:
        UnknownPlanVersion: it is newer than this code.
    """
    data: dict[str, Any] = json.loads(text)
    match data.pop("version", 1):
        case 1:
            return _first_version(data, task)
        case 2:
            data.pop("calibration", None)
            hypotheses = tuple(_hypothesis(dict(one)) for one in data["hypotheses"])
            return _plan({**data, "hypotheses": hypotheses})
        case version:
            raise UnknownPlanVersion(
                f"the plan has version {version}, this nightlab reads up to {VERSION}: go on with the newer nightlab"
            )


def _plan(data: dict[str, Any]) -> Plan:
    return Plan(**{**data, "phase": Phase(data["phase"]), "next_trials": tuple(data["next_trials"])})


def _hypothesis(data: dict[str, Any]) -> Hypothesis:
    data.pop("brier", None)
    return Hypothesis(
        **{
            **data,
            "prediction": Prediction(**data["prediction"]),
            "status": Status(data["status"]),
            "evidence": tuple(data["evidence"]),
        }
    )


def _first_version(data: dict[str, Any], task: Task) -> Plan:
    """Its one hypothesis goes on under the rule of today, and says what it began under.

    The choice was not part of the plan: where the search had ended it was the incumbent.
    """
    old = data.pop("hypothesis")
    incumbent, value = data.pop("incumbent"), data.pop("incumbent_value")
    claim = replace(first_claim(task), note=f"begun by an earlier nightlab under this rule: {old['acceptance']}")
    has_chosen = data["phase"] != Phase.SEARCH
    return _plan(
        {
            **data,
            "hypotheses": (claim,),
            "error_budget": task.trust.error_budget,
            "leader": incumbent,
            "leader_value": value,
            "chosen": incumbent if has_chosen else None,
        }
    )

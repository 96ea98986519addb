"""A plan as JSON and back: what the store keeps and MLflow shows. Pure.

Version 2 holds any number of hypotheses. Version 1, which had no number and one hypothesis, is still read.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from agent.planner.calibration import calibration
from agent.planner.hypothesis import FINAL, Hypothesis, Prediction, Status
from agent.planner.plan import Phase, Plan

VERSION = 2


class UnknownPlanVersion(ValueError):
    """The plan was written by a newer nightlab."""


def plan_to_json(plan: Plan) -> str:
    """The plan with its version; `brier` and `calibration` are derived and there for the reader alone."""
    data = asdict(plan)
    for written, hypothesis in zip(data["hypotheses"], plan.hypotheses, strict=True):
        written["brier"] = hypothesis.brier
    return json.dumps({"version": VERSION, **data, "calibration": asdict(calibration(plan.hypotheses))}, indent=2)


def plan_from_json(text: str) -> Plan:
    """Raises UnknownPlanVersion when it is newer than this code."""
    data: dict[str, Any] = json.loads(text)
    match data.pop("version", 1):
        case 1:
            return _first_version(data)
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


def _first_version(data: dict[str, Any]) -> Plan:
    """One hypothesis, judged at one look; its error rate is that of one side of its interval.

    The choice was not part of the plan: where the search had ended it was the incumbent.
    """
    old = data.pop("hypothesis")
    incumbent, value = data.pop("incumbent"), data.pop("incumbent_value")
    alpha = (1 - old["confidence"]) / 2
    claim = Hypothesis(
        hypothesis_id=FINAL,
        statement=old["statement"],
        prediction=Prediction(probability=0.5, effect=None, made_by="nobody"),
        acceptance=old["acceptance"],
        alpha=alpha,
        reference="default",
        configuration=None,
        budget_share=1.0,
        opened_at=1,
    )
    has_chosen = data["phase"] != Phase.SEARCH
    return _plan(
        {
            **data,
            "hypotheses": (claim,),
            "error_budget": 2 * alpha,
            "leader": incumbent,
            "leader_value": value,
            "chosen": incumbent if has_chosen else None,
        }
    )

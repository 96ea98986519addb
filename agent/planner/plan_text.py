"""A plan as JSON and back: what the store keeps and MLflow shows. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from agent.planner.plan import Hypothesis, Phase, Plan


def plan_to_json(plan: Plan) -> str:
    return json.dumps(asdict(plan), indent=2)


def plan_from_json(text: str) -> Plan:
    data: dict[str, Any] = json.loads(text)
    return Plan(
        **{
            **data,
            "phase": Phase(data["phase"]),
            "hypothesis": Hypothesis(**data["hypothesis"]),
            "next_trials": tuple(data["next_trials"]),
        }
    )

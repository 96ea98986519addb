"""Questions of tests: a shape of answer, a prompt, a menu, a clock that is set."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from agent.llm.chat import Outcome
from agent.llm.menu import MenuItem
from prompts import Rendered


class Pick(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    lr: float = Field(gt=0, lt=1, allow_inf_nan=False)
    why: str = Field(default="", max_length=50)


class Picks(BaseModel):
    """What to try next."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trials: list[Pick] = Field(default_factory=list, max_length=3)
    title: str = ""


PROMPT = Rendered(name="suggest", version="abc", system="You suggest.", user="What next?")
GOOD = json.dumps({"trials": [{"lr": 0.1, "why": "bold"}]})
GOOD_VALUE = Picks(trials=[Pick(lr=0.1, why="bold")])
MENU = [MenuItem(text=f"lr = {lr}", gives={"trials": [{"lr": lr}]}) for lr in (0.01, 0.02, 0.03, 0.04, 0.05)]


@dataclass
class Clock:
    at: float = 1000.0

    def __call__(self) -> float:
        return self.at


@dataclass
class Accounts:
    """Implements `Judged`."""

    judged: list[tuple[int, Outcome, str | None]] = field(default_factory=list)

    def judge(self, call_id: int, outcome: Outcome, note: str | None = None) -> None:
        self.judged.append((call_id, outcome, note))

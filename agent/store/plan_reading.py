"""The revisions of a plan as a page shows them: the newest as a whole, the others without their data."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from agent.store import rows
from agent.store.store import AgentStore
from agent.store.tables import plan_revisions
from agent.store.views import PlanView


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionTold:
    revision: int
    at: float
    phase: str
    reason: str


def newest_plan(store: AgentStore, session_id: str) -> PlanView | None:
    """None: there is none yet."""
    query = (
        sa.select(plan_revisions)
        .where(plan_revisions.c.session_id == session_id)
        .order_by(plan_revisions.c.revision.desc())
        .limit(1)
    )
    with store.engine.connect() as connection:
        row = connection.execute(query).mappings().first()
    return None if row is None else rows.plan_view(row)


def newest_revisions(store: AgentStore, session_id: str, limit: int) -> list[RevisionTold]:
    """At most `limit`, the newest first."""
    columns = (plan_revisions.c.revision, plan_revisions.c.at, plan_revisions.c.phase, plan_revisions.c.reason)
    query = (
        sa.select(*columns)
        .where(plan_revisions.c.session_id == session_id)
        .order_by(plan_revisions.c.revision.desc())
        .limit(limit)
    )
    with store.engine.connect() as connection:
        return [RevisionTold(**row) for row in connection.execute(query).mappings()]

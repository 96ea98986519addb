"""`Shelf`: proposals that were made ahead, as rows. A row goes when it is dropped; one that became a trial stays.

Most are new configurations; a row with purpose `replicate` is a wish to see a known one again.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from agent.planner.backlog import Thought
from agent.planner.history import Proposal
from agent.store import rows as stored
from agent.store.fenced import FencedWriter, Line
from agent.store.tables import thoughts
from agent.store.views import Purpose


class Shelf:
    """Kept in memory as well: the holder of the newest fence is the only writer, so the copy is exact."""

    def __init__(self, writer: FencedWriter) -> None:
        self._writer = writer
        query = sa.select(thoughts).where(thoughts.c.session_id == writer.session_id).order_by(thoughts.c.thought_id)
        with writer.store.engine.connect() as connection:
            self._thoughts = [_thought(row) for row in connection.execute(query).mappings()]

    def thoughts(self, suggested_by: str) -> list[Thought]:
        """In the order in which they were thought."""
        return [thought for thought in self._thoughts if thought.proposal.suggested_by == suggested_by]

    def put(self, suggested_by: str, proposals: Sequence[Proposal], *, premise: str | None, took_s: float) -> None:
        """Keep what one call gave."""
        if not proposals:
            return
        rows = [
            {
                "session_id": self._writer.session_id,
                "at": self._writer.store.clock(),
                "suggested_by": suggested_by,
                "configuration": proposal.configuration,
                "params": dict(proposal.params),
                "seed": proposal.seed,
                "why": proposal.why,
                "hypothesis": proposal.hypothesis,
                "premise": premise,
                "took_s": took_s,
                "purpose": proposal.purpose.value,
                "origin": stored.origin_to_json(proposal.facts),
            }
            for proposal in proposals
        ]
        with self._writer.writing() as connection:
            insert = sa.insert(thoughts).returning(thoughts, sort_by_parameter_order=True)
            made = [_thought(row) for row in connection.execute(insert, rows).mappings()]
        self._thoughts.extend(made)

    def drop(self, unwanted: Sequence[Thought]) -> None:
        """Forget thoughts whose premise has fallen."""
        if not unwanted:
            return
        ids = {thought.thought_id for thought in unwanted}
        text = f"{len(ids)} proposals made ahead are dropped: another configuration leads since, and newer ones wait"
        with self._writer.writing() as connection:
            connection.execute(sa.delete(thoughts).where(thoughts.c.thought_id.in_(ids)))
            self._writer.say(connection, [Line(step="propose", text=text)])
        self._thoughts = [thought for thought in self._thoughts if thought.thought_id not in ids]


def _thought(row: sa.RowMapping) -> Thought:
    return Thought(
        thought_id=row["thought_id"],
        proposal=Proposal(
            params=row["params"],
            configuration=row["configuration"],
            seed=row["seed"],
            purpose=Purpose(row["purpose"]),
            suggested_by=row["suggested_by"],
            why=row["why"],
            hypothesis=row["hypothesis"],
            facts=stored.facts_from_json(row["origin"] or {}),
        ),
        premise=row["premise"],
        took_s=row["took_s"],
    )

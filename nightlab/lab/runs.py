"""The runs of a lab: what a session writes to the tracking server, kept in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime_client.errors import NotFound
from runtime_client.models import NewRun, RunUpdate, RunView


@dataclass(slots=True, kw_only=True)
class Runs:
    by_id: dict[str, RunView] = field(default_factory=dict)
    by_token: dict[str, str] = field(default_factory=dict)
    artifacts: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """By run and path."""

    def create(self, run: NewRun) -> RunView:
        known = self.by_token.get(run.idempotency_token)
        if known is not None:
            return self.by_id[known]
        view = RunView(
            run_id=f"f{len(self.by_id) + 1:031x}",
            experiment_name=run.experiment_name,
            run_name=run.run_name,
            parent_run_id=run.parent_run_id,
            status="RUNNING",
            tags=run.tags,
        )
        self.by_id[view.run_id] = view
        self.by_token[run.idempotency_token] = view.run_id
        return view

    def get(self, run_id: str) -> RunView:
        """
        Raises:
            NotFound: there is no such run.
        """
        if run_id not in self.by_id:
            raise NotFound(f"no run {run_id!r}", code="run_not_found")
        return self.by_id[run_id]

    def update(self, run_id: str, update: RunUpdate) -> RunView:
        before = self.get(run_id)
        after = before.model_copy(
            update={
                "params": {**before.params, **update.params},
                "tags": {**before.tags, **update.tags},
                "latest": {**before.latest, **update.metrics},
                "status": update.status or before.status,
            }
        )
        self.by_id[run_id] = after
        return after

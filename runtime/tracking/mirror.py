"""The mirror: tells MLflow, in order and at least once, what the outbox holds. One task, started by the server.

An outage is waited out with growing pauses and loses nothing. A row that MLflow refuses is tried a few times alone,
then parked with its error, and the rest goes on. Runs are created exactly once: a creation that may have happened is
looked for by its tag before it is asked for again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import httpx
import sqlalchemy as sa

from runtime.store import records
from runtime.store.writer import StoreFailed

from . import queries
from .delivery import Delivery, plan
from .ports import Store
from .reconcile import Reconciliation, reconcile
from .rest import MlflowAway, MlflowFailed, MlflowRefused, MlflowRest, MlflowTrouble, open_http
from .sending import NotYet, Sender
from .spool import Spool

START_S = 120.0
"""How long a tracking server may take to come up before it counts as unreachable."""
START_PAUSE_S = 2.0
"""Longest pause between two looks while it comes up."""
REFUSALS = 3
"""Tries of a row that MLflow refuses (4xx)."""
FAILURES = 20
"""Tries of a row at which MLflow fails (500) while it is up."""
ROWS = 400
"""Rows of one run in one go."""
IDLE_S = 2.0
"""Between two looks into the outbox when nobody calls `wake`."""
LOOK_S = 20.0
"""Between two looks at an idle tracking server."""


class Mirror:
    def __init__(
        self,
        *,
        store: Store,
        url: str,
        spool: Spool,
        monotonic: Callable[[], float] = time.monotonic,
        linger_s: float = 0.7,
        first_pause_s: float = 0.5,
        backoff_cap_s: float = 15.0,
    ) -> None:
        """`linger_s` is the pause between two rounds, so that metrics of a moment travel together.

        Pauses after trouble double from `first_pause_s` to `backoff_cap_s`.
        """
        self.url = url
        self.http: httpx.AsyncClient = open_http(url)
        self.rest = MlflowRest(self.http)
        self._store = store
        self._sender = Sender(store=store, rest=self.rest, spool=spool)
        self._monotonic = monotonic
        self._linger_s = linger_s
        self._first_pause_s = first_pause_s
        self._cap_s = backoff_cap_s
        self._started_s = monotonic()
        self._contact_s: float | None = None
        self._trouble: str | None = None
        self._pause_s = first_pause_s
        self._blocked: dict[str, tuple[float, float]] = {}
        """Run id: not before, pause. Runs that wait alone because of a row of theirs."""
        self._urgent: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._has_more = False
        self._round_done = asyncio.Condition()

    @property
    def state(self) -> str:
        """`up`, `starting`, or `unreachable: ...`."""
        if self._trouble is None and self._contact_s is not None:
            return "up"
        if self._contact_s is None and self._monotonic() - self._started_s < START_S:
            return "starting"
        return f"unreachable: {self._trouble or 'no answer yet'}"

    @property
    def is_up(self) -> bool:
        return self.state == "up"

    def wake(self) -> None:
        """Call it on the event loop after a commit that added outbox rows."""
        self._wake.set()

    async def run(self) -> None:
        """Mirror until cancelled."""
        try:
            await self._unpark()
            while True:
                self._wake.clear()
                await self._round()
                async with self._round_done:
                    self._round_done.notify_all()
                await self._rest_a_while()
        finally:
            await self.http.aclose()

    async def _unpark(self) -> None:
        """Give what an earlier run of the server parked a new chance: MLflow may be another version now."""
        while True:
            try:
                await self._store.write(queries.unpark_all)
            except StoreFailed as failed:
                self._trouble = f"the runtime's own store: {failed}"[:200]
                await asyncio.sleep(self._cap_s)
            else:
                return

    async def flush(self, run_id: str, timeout_s: float) -> bool:
        """Wait until MLflow has all of a run and of its parents; False: it is away, or it took too long."""
        lineage = await self._store.read(lambda connection: _lineage(connection, run_id))
        if await self._store.read(lambda connection: queries.n_waiting(connection, lineage)) == 0:
            return self.is_up
        for each in lineage:
            self._urgent[each] = self._urgent.get(each, 0) + 1
        self._hurry.set()
        try:
            async with asyncio.timeout(timeout_s):
                while self.is_up:
                    self._wake.set()
                    async with self._round_done:
                        await self._round_done.wait()
                    if await self._store.read(lambda connection: queries.n_waiting(connection, lineage)) == 0:
                        return True
        except TimeoutError:
            return False
        finally:
            for each in lineage:
                self._urgent[each] -= 1
                if not self._urgent[each]:
                    del self._urgent[each]
            if not self._urgent:
                self._hurry.clear()
        return False

    async def artifact_root(self, mlflow_run_id: str) -> str:
        """Where the artifacts of a run of MLflow's lie. Raises `MlflowTrouble`."""
        return await self._sender.artifact_root(mlflow_run_id)

    async def notices(self) -> tuple[str, ...]:
        """What an operator should know now: MLflow away, records that it will not take."""
        found = []
        if not self.is_up and self.state != "starting":
            found.append(f"The tracking server {self.url} is {self.state}. Nothing is lost; it is sent later.")
        n_parked = await self._store.read(queries.count_parked)
        if n_parked:
            newest = await self._store.read(lambda connection: queries.parked_rows(connection, limit=1))
            error = newest[0].error if newest else ""
            records_ = "record" if n_parked == 1 else "records"
            found.append(
                f"MLflow refuses {n_parked} {records_} (the newest: {error}). They are kept, and tried again after "
                "the next start of the server."
            )
        return tuple(found)

    async def reconcile(self, *, limit: int = 100) -> Reconciliation:
        """Compare ended runs with MLflow's record; see `reconcile`. Raises `MlflowTrouble`."""
        return await reconcile(self._store, self.rest, limit=limit)

    async def _rest_a_while(self) -> None:
        """Until there is something to do: at once for a flush, after the pause in an outage."""
        if self._trouble is not None or self._contact_s is None:
            await asyncio.sleep(self._pause_s)
            cap_s = min(self._cap_s, START_PAUSE_S) if self.state == "starting" else self._cap_s
            self._pause_s = min(self._pause_s * 2, cap_s)
            return
        if self._has_more:
            return
        timeout_s = IDLE_S
        if self._blocked:
            soonest = min(not_before for not_before, _ in self._blocked.values())
            timeout_s = max(0.05, min(timeout_s, soonest - self._monotonic()))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), timeout_s)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), self._linger_s)

    async def _round(self) -> None:
        """Deliver what waits, each run in order, those first that somebody waits for."""
        self._has_more = False
        try:
            waiting = await self._store.read(queries.waiting_runs)
            waiting.sort(key=lambda run_id: run_id not in self._urgent)
            if self._needs_look():
                await self._look()
            for run_id in waiting:
                await self._deliver_run(run_id)
        except MlflowAway as away:
            self._trouble = str(away)[:200]
        except StoreFailed as failed:  # what was delivered but not noted is delivered again; that changes nothing
            self._trouble = f"the runtime's own store: {failed}"[:200]

    def _needs_look(self) -> bool:
        if self._trouble is not None or self._contact_s is None:
            return True
        return self._monotonic() - self._contact_s > LOOK_S

    async def _look(self) -> None:
        if not await self.rest.is_healthy():
            raise MlflowAway(f"{self.url} does not answer")
        self._contact()

    def _contact(self) -> None:
        self._contact_s = self._monotonic()
        self._trouble = None
        self._pause_s = self._first_pause_s

    async def _deliver_run(self, run_id: str) -> None:
        if self._blocked.get(run_id, (0.0, 0.0))[0] > self._monotonic():
            return
        rows = await self._store.read(lambda connection: queries.waiting_rows(connection, run_id, limit=ROWS))
        for delivery in plan(rows):
            if not await self._deliver(run_id, delivery):
                return
        self._blocked.pop(run_id, None)
        self._has_more = self._has_more or len(rows) == ROWS

    async def _deliver(self, run_id: str, delivery: Delivery) -> bool:
        """Whether the run may go on to its next delivery.

        Raises:
            MlflowAway: for all runs.
        """
        trouble = await self._try(run_id, delivery)
        if trouble is None:
            return True
        return await self._count(run_id, delivery, trouble)

    async def _try(self, run_id: str, delivery: Delivery) -> MlflowTrouble | None:
        try:
            await self._sender.send(run_id, delivery)
        except MlflowAway as away:
            if not await self.rest.is_healthy():
                raise
            return MlflowFailed(f"no answer to this request: {away}")
        except MlflowTrouble as trouble:
            return trouble
        self._contact()
        return None

    async def _count(self, run_id: str, delivery: Delivery, trouble: MlflowTrouble) -> bool:
        """Count a failed try: park the rows after enough of them, else let their run wait.

        Rows that failed together are tried alone from then on (`plan`), so only the bad one is parked.
        """
        self._contact()
        if isinstance(trouble, NotYet):
            self._blocked[run_id] = (self._monotonic() + 0.2, 0.2)
            return False
        limit = REFUSALS if isinstance(trouble, MlflowRefused) else FAILURES
        error, ids = str(trouble)[:2000], [row.id for row in delivery.rows]
        n_tries = await self._store.write(lambda connection: _fail(connection, ids, error, limit))
        if n_tries >= limit:
            return True
        _, pause_s = self._blocked.get(run_id, (0.0, self._first_pause_s / 2))
        pause_s = min(pause_s * 2, self._cap_s)
        self._blocked[run_id] = (self._monotonic() + pause_s, pause_s)
        return False


def _fail(connection: sa.Connection, ids: list[int], error: str, limit: int) -> int:
    """Count a try on rows; park them at the limit. Returns the tries of the worst."""
    worst = 0
    for row_id in ids:
        records.fail_outbox(connection, row_id, error)
        worst = max(worst, queries.tries_of(connection, row_id))
    if worst >= limit:
        queries.park_rows(connection, ids, error=error)
    return worst


def _lineage(connection: sa.Connection, run_id: str) -> list[str]:
    """A run and its parents, the run first."""
    chain: list[str] = []
    row = records.get_run(connection, run_id)
    while row is not None and row.run_id not in chain:
        chain.append(row.run_id)
        row = None if row.parent_run_id is None else records.get_run(connection, row.parent_run_id)
    return chain or [run_id]

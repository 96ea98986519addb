"""Puts a server together and takes it apart again: store, engine, recovered state, loop, mirror."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from importlib.resources import files

import sqlalchemy as sa

from runtime.engines.contract import AttemptKey, Engine, NodeReport
from runtime.model.evidence import parse_patterns
from runtime.model.nouns import Node
from runtime.store import journal
from runtime.store.engine import open_engine
from runtime.store.migrate import migrate
from runtime.store.sql_writer import SqlWriter
from runtime.tracking.mirror import Mirror
from runtime.tracking.queries import spooled_files
from runtime.tracking.spool import Spool
from runtime_client.models import EventView

from .catalog import JobCatalog
from .commit import unit_of
from .config import ServerConfig
from .disk import DiskWatch
from .dispatch import Dispatcher
from .draft import Actor, Draft
from .garbage import GarbageCollector
from .hang_watch import HangWatch
from .hub import EventHub
from .inbox import Inbox
from .keys import Keys
from .log_artifacts import LogArtifacts
from .loop import Loop, LoopBroken
from .metrics_intake import MetricsIntake
from .orders import Orders, stops_of
from .reactor import Rules, events_from_departure, events_from_registration, nodes_left
from .recovery import Recovered, recover
from .services import Services
from .sse import Journal, JournalSpan
from .steady_clock import SteadyClock
from .views import event_view

log = logging.getLogger(__name__)

NODE = Actor(name="server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a server is made of, besides its configuration."""

    config: ServerConfig
    keys: Keys
    engine: Engine
    clock: Callable[[], float]
    on_broken: Callable[[], None]
    """Called when the loop has given up: the process should end."""
    on_parted: Callable[[], None]
    """Called when the server was asked to part with its jobs and the last attempt is gone: the process should end."""


@asynccontextmanager
async def open_services(parts: Parts) -> AsyncIterator[Services]:
    """A running server without its HTTP door.

    Raises:
        StoreFailed: the database can not be used.
        Exception: what the engine raises when it can not open.
    """
    config = parts.config
    async with AsyncExitStack() as stack:
        store = await _open_store(config, stack)
        early: list[NodeReport] = []
        sink = _Sink(early.append)
        nodes = await parts.engine.open(sink)
        stack.push_async_callback(parts.engine.close)
        loop = await _recovered_loop(parts, store, sink)
        loop.on_parted = parts.on_parted
        loop.orders.dispatcher.is_held = loop.is_held
        await _register(loop, nodes)
        for report in early:
            loop.report(report)
        sink.target = loop.report
        await _adopt(loop, parts.engine)

        spool = Spool(config.spool_dir)
        spool.sweep(keep=await store.read(spooled_files))
        mirror = None if config.mlflow_url is None else Mirror(store=store, url=config.mlflow_url, spool=spool)
        keep_stacks: Callable[[AttemptKey, str], object] = _leave_on_disk
        if mirror is not None:
            await _spawn(stack, _keep_going("the mirror to MLflow", mirror.run))
            loop.after_commit = mirror.wake
            artifacts = LogArtifacts(engine=parts.engine, store=store, spool=spool, wake=mirror.wake)
            await _spawn(stack, _keep_going("keeping output as artifacts", artifacts.run))
            loop.on_ended, keep_stacks = artifacts.ended, artifacts.stacks
        watch = HangWatch(loop=loop, engine=parts.engine, period_s=config.hang_look_s, keep=keep_stacks)
        loop.hub.on_event = watch.note
        await _spawn(stack, _keep_going("the watch for hangs", watch.run))
        garbage = GarbageCollector(config=config, store=store, clock=parts.clock)
        if config.policy.gc_every_hours:
            await _spawn(stack, _keep_going("freeing disk space", garbage.run))
        running = asyncio.create_task(_watched(loop, parts.on_broken))
        stack.push_async_callback(_end_loop, loop, running)
        yield Services(
            config=config,
            clock=parts.clock,
            started_at=parts.clock(),
            store=store,
            engine=parts.engine,
            loop=loop,
            hub=loop.hub,
            disk=loop.disk,
            journal=_journal(store),
            spool=spool,
            mirror=mirror,
            garbage=garbage,
        )


@dataclass(slots=True)
class _Sink:
    """Where reports go; changes once, when the loop is there."""

    target: Callable[[NodeReport], None]

    def __call__(self, report: NodeReport) -> None:
        self.target(report)


async def _open_store(config: ServerConfig, stack: AsyncExitStack) -> SqlWriter:
    engine = open_engine(config.store_url)
    stack.callback(engine.dispose)
    await asyncio.to_thread(migrate, engine)
    store = SqlWriter(engine)
    store.start()
    stack.push_async_callback(asyncio.to_thread, store.close)
    return store


async def _recovered_loop(parts: Parts, store: SqlWriter, report: Callable[[NodeReport], None]) -> Loop:
    config, clock = parts.config, parts.clock
    found: Recovered = await store.read(recover)
    if isinstance(clock, SteadyClock):
        clock.not_before(found.state.clock_s)
    catalog, hub = JobCatalog(store), EventHub()
    host = "127.0.0.1" if config.host in ("", "0.0.0.0", "::") else config.host
    orders = Orders(
        catalog=catalog,
        dispatcher=Dispatcher(parts.engine, report),
        keys=parts.keys,
        tracking_url=f"http://{host}:{config.port}",
        clock=clock,
        user=_user(),
    )
    return Loop(
        config=config,
        store=store,
        catalog=catalog,
        orders=orders,
        metrics=MetricsIntake(store=store, catalog=catalog, hub=hub, clock=clock),
        hub=hub,
        disk=DiskWatch(
            home=config.home, low_bytes=config.low_disk_bytes, attempts_free=parts.engine.free_bytes, clock=clock
        ),
        rules=Rules(
            retry=config.policy,
            patterns=parse_patterns(files("runtime.model").joinpath("exit_patterns.toml").read_text()),
        ),
        clock=clock,
        state=found.state,
        next_number=found.next_number,
        snapshot_seq=found.snapshot_seq,
        committed_seq=found.state.last_seq,
        inbox=Inbox(),
    )


async def _register(loop: Loop, nodes: Sequence[Node]) -> None:
    """Record the nodes that are there now, under a new generation, and what was lost with those that are not."""
    state = loop.state
    draft = Draft(state=state, at_s=max(loop.clock(), state.clock_s))
    generation = 1 + max((node.generation for node in state.nodes.values()), default=0)
    for node_id in nodes_left(state, nodes):
        draft.add_all(
            events_from_departure(
                state, node_id, f"node {node_id} is not there any more", now_s=draft.at_s, rules=loop.rules
            ),
            NODE,
        )
    for node in nodes:
        registered = replace(node, generation=generation)
        draft.add_all(events_from_registration(state, registered, now_s=draft.at_s, rules=loop.rules), NODE)
    facts = await loop.catalog.of(draft.rows.run_status)
    run_ids = {job_id: fact.run_id for job_id, fact in facts.items()}
    await loop.store.write(unit_of(draft, specs={}, run_ids=run_ids, user=loop.orders.user, snapshot=None))
    loop.committed_seq = state.last_seq


async def _adopt(loop: Loop, engine: Engine) -> None:
    """Take over what runs; what was ordered and never launched is launched now. Then repeat the stop orders."""
    state = loop.state
    generation = max((node.generation for node in state.nodes.values()), default=0)
    await engine.adopt(await loop.orders.held(state), generation)
    loop.orders.send(state, (), stops_of(state, loop.clock()))


def _journal(store: SqlWriter) -> Journal:
    async def span() -> JournalSpan:
        def read(connection: sa.Connection) -> JournalSpan:
            return JournalSpan(oldest_seq=journal.first_seq(connection), last_seq=journal.last_seq(connection))

        return await store.read(read)

    async def page(since: int, limit: int) -> list[EventView]:
        def read(connection: sa.Connection) -> list[EventView]:
            return [event_view(stored) for stored in journal.read_events(connection, since=since, limit=limit)]

        return await store.read(read)

    return Journal(span=span, page=page)


async def _watched(loop: Loop, on_broken: Callable[[], None]) -> None:
    try:
        await loop.run()
    except LoopBroken as error:
        log.critical("the loop gave up: %s", error)
        loop.is_closing = True
        on_broken()


async def _end_loop(loop: Loop, running: asyncio.Task[None]) -> None:
    loop.close()
    await running
    await loop.orders.dispatcher.drain()
    loop.hub.close()


async def _spawn(stack: AsyncExitStack, work: object) -> None:
    assert asyncio.iscoroutine(work)
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(end)


async def _keep_going(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """A named firewall: whatever happens to work beside the loop, jobs go on; it begins again after a pause."""
    while True:
        try:
            await work()
        except Exception as error:
            log.error("%s stumbled; it begins again in 5 s", name, exc_info=error)
        await asyncio.sleep(5.0)


def _leave_on_disk(_key: AttemptKey, _stacks: str) -> None:
    """Without a tracking server the stacks are in the attempt's folder alone."""


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None

"""The fork servers of this node: which one an attempt can start from, and why from none.

A fork server is a launcher that runs in the jobs' own Python with their imports done (`runtime.node.warm`). One is
prepared beside the work, at the second start of its kind (at the first where somebody asked for it), while attempts
start cold. It outlives the engine as the launcher does, and the next engine finds it by its socket.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runtime.engines.launcher_link import LauncherLink, LauncherUnavailable, root_folder
from runtime.engines.warm_plan import WarmPlan
from runtime.node.processes import MARKER_VARIABLE
from runtime.node.warm_launcher import BOOT
from runtime_client.models import LaunchMode

PREPARE_S = 90.0
"""From the start of a fork server until it is ready; one that takes longer is given up."""
WAIT_S = 20.0
"""How long `launch: warm` waits for one that is being prepared."""
MOST_SERVERS = 3
"""They hold some hundred megabytes each; the one that was not used for the longest time goes first."""
MOST_LAUNCHES = 500
"""Of one server; then a fresh one takes its place."""
UNUSED_S = 900.0
TRY_AGAIN_S = 600.0
"""After a server could not be prepared."""
_PADDING = " " * 1024
"""Room on the command line, where each fork shows its own."""


@dataclass(slots=True, kw_only=True)
class _Server:
    link: LauncherLink
    facts_path: Path
    used_at: float
    preparation: asyncio.Task[None] | None = None
    failure: str | None = None
    failed_at: float = 0.0
    modules: frozenset[str] = frozenset()
    """Names that are imported already, and hide what a script has under the same name."""
    watched: Mapping[str, list[int]] = field(default_factory=dict)
    n_launches: int = 0

    @property
    def is_ready(self) -> bool:
        return self.failure is None and (self.preparation is None or self.preparation.done())

    def read_facts(self) -> None:
        """Raises OSError, ValueError, KeyError."""
        facts = json.loads(self.facts_path.read_bytes())
        self.modules, self.watched = frozenset(facts["modules"]), facts["watched"]

    def changed(self) -> str | None:
        """A file or folder of the environment that is not as it was when it was imported."""
        for path, (mtime_ns, size) in self.watched.items():
            try:
                status = os.stat(path)
            except OSError:
                return path
            if (status.st_mtime_ns, status.st_size) != (mtime_ns, size):
                return path
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    server_key: str | None
    """None: a cold start."""
    why: str


class WarmStarts:
    """All methods belong to one event loop."""

    def __init__(self, *, sockets: Path, log: Path) -> None:
        self._sockets = sockets
        self._log = log
        self._servers: dict[str, _Server] = {}
        self._seen: dict[str, float] = {}
        """Keys of starts that had no server, and when."""

    async def choose(self, plan: WarmPlan | str) -> Choice:
        """Whether this start can be a warm one. May wait, when the job asks for it."""
        if isinstance(plan, str):
            return Choice(server_key=None, why=plan)
        key = plan.key
        server = self._servers.get(key) or await self._find(plan)
        if server is None:
            return await self._begin(plan)
        server.used_at = time.monotonic()
        if plan.mode is LaunchMode.WARM:
            await self._await_ready(server)
        return self._judge(key, plan, server)

    async def launch(self, choice: Choice, folder: Path) -> None:
        """Start the attempt from the chosen server. Raises LauncherUnavailable; then the server is given up."""
        assert choice.server_key is not None
        server = self._servers[choice.server_key]
        try:
            server.n_launches = await server.link.launch(folder)
        except LauncherUnavailable:
            self._servers.pop(choice.server_key, None)
            raise

    async def expire(self) -> None:
        """Let go of servers that nobody has used for a while."""
        now = time.monotonic()
        for key in [key for key, server in self._servers.items() if now - server.used_at > UNUSED_S]:
            await self._let_go(key)

    async def close(self) -> None:
        for key in list(self._servers):
            await self._let_go(key)

    def _judge(self, key: str, plan: WarmPlan, server: _Server) -> Choice:
        if server.failure is not None:
            if time.monotonic() - server.failed_at > TRY_AGAIN_S:
                self._prepare(plan)
            return Choice(server_key=None, why=server.failure)
        if not server.is_ready:
            return Choice(server_key=None, why="a fork server for its environment is still being prepared")
        changed = server.changed()
        if changed is not None:
            self._replace(plan)
            return Choice(server_key=None, why=f"{changed} has changed; a fresh fork server is being prepared")
        if server.n_launches >= MOST_LAUNCHES:
            self._replace(plan)
            return Choice(server_key=None, why=f"the fork server is renewed after {server.n_launches} starts")
        hidden = self._hidden(plan, server)
        if hidden is not None:
            return Choice(server_key=None, why=f"{hidden!r} beside the script has the name of an imported module")
        return Choice(server_key=key, why=f"fork of a process with {', '.join(_shown(plan))} imported")

    def _hidden(self, plan: WarmPlan, server: _Server) -> str | None:
        try:
            names = {name.partition(".")[0] for name in os.listdir(plan.script_folder)}
        except OSError:
            return None
        return min(names & server.modules, default=None)

    async def _find(self, plan: WarmPlan) -> _Server | None:
        """One that an earlier engine has prepared."""
        server = self._server(plan)
        if not await server.link.find():
            return None
        try:
            server.read_facts()
        except (OSError, ValueError, KeyError):
            await server.link.close()
            return None
        self._servers[plan.key] = server
        await self._make_room()
        return server

    async def _begin(self, plan: WarmPlan) -> Choice:
        is_second = plan.key in self._seen
        self._seen[plan.key] = time.monotonic()
        if not is_second and not plan.is_eager:
            return Choice(server_key=None, why="the first start of its kind; a second one has a fork server prepared")
        server = self._prepare(plan)
        await self._make_room()
        if plan.mode is LaunchMode.WARM:
            await self._await_ready(server)
        return self._judge(plan.key, plan, server)

    def _prepare(self, plan: WarmPlan) -> _Server:
        server = self._servers[plan.key] = self._server(plan)
        server.preparation = asyncio.get_running_loop().create_task(_prepared(server))
        return server

    def _replace(self, plan: WarmPlan) -> None:
        self._servers[plan.key].link.leave()
        self._prepare(plan)

    async def _await_ready(self, server: _Server) -> None:
        if server.preparation is not None:
            await asyncio.wait((server.preparation,), timeout=WAIT_S)

    async def _make_room(self) -> None:
        while len(self._servers) > MOST_SERVERS:
            await self._let_go(min(self._servers, key=lambda key: self._servers[key].used_at))

    async def _let_go(self, key: str) -> None:
        server = self._servers.pop(key)
        if server.preparation is not None and not server.preparation.done():
            server.preparation.cancel()
            await asyncio.wait((server.preparation,))
        await server.link.close()

    def _server(self, plan: WarmPlan) -> _Server:
        path = self._sockets / f"w{plan.key}.sock"
        facts_path = path.with_suffix(".json")
        names = ",".join(plan.preload)
        command = [plan.entry.program, "-c", BOOT, root_folder(), str(path), str(self._log), str(facts_path), names]
        link = LauncherLink(
            path=str(path),
            log=str(self._log),
            command=[*command, _PADDING],
            environ={**plan.environment, MARKER_VARIABLE: "0" * 32},
            start_s=PREPARE_S,
        )
        return _Server(link=link, facts_path=facts_path, used_at=time.monotonic())


async def _prepared(server: _Server) -> None:
    try:
        await server.link.open()
        server.read_facts()
    except (LauncherUnavailable, TimeoutError, OSError, ValueError, KeyError) as problem:
        server.failure = f"no fork server for its environment: {problem}"
        server.failed_at = time.monotonic()


def _shown(plan: WarmPlan) -> list[str]:
    return list(dict.fromkeys(name.lstrip("?").partition(".")[0] for name in plan.preload))

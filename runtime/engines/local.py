"""The engine for this machine: attempts are process trees, each under a supervisor of its own.

The engine prepares attempt folders, asks the launcher for supervisors, and reads in the folders what became of them:
at once when a supervisor pokes it, and once a second in any case. It can be closed, or killed, at any moment: all
state is in the folders, and a new engine adopts what it finds there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from runtime.engines import provenance
from runtime.engines.contract import (
    MAIN_STREAM,
    AttemptKey,
    Checkpointed,
    Exited,
    LaunchOrder,
    LogPiece,
    NodeReport,
    NotLaunched,
    StopAttempt,
)
from runtime.engines.core_shares import core_shares
from runtime.engines.device_watch import DeviceWatch, Looks
from runtime.engines.launcher_link import LauncherUnavailable, plain_launcher
from runtime.engines.preparation import (
    NodeFacts,
    Prepared,
    attempt_folder,
    continue_from,
    devices_on,
    has_snapshot,
    marker_of,
    place_code,
    prepare,
    spec_of,
    write_order,
)
from runtime.engines.sealing import sealing_here
from runtime.engines.strangers import end_strangers
from runtime.engines.tree_end import end_lost_tree
from runtime.engines.warm_starts import WarmStarts
from runtime.engines.watched import (
    Watched,
    ending_reports,
    is_of_earlier_boot,
    is_supervised,
    keep_positions,
    lost_record,
    metrics_report,
    newest_checkpoint,
    not_launched,
    started_report,
    write_stacks,
)
from runtime.model.nouns import Node
from runtime.model.states import ExitReason
from runtime.node import output, processes, records
from runtime.node.device_locks import device_locks_for
from runtime.node.device_probe import DeviceProbe, probe_for
from runtime.node.devices import find_devices, memory_mb, usable_cores
from runtime.node.launch_errors import CannotLaunch
from runtime.node.mounts import check_answers, places_of
from runtime.node.pinning import is_pinned, pin
from runtime.node.sockets import socket_folder
from runtime_client.home import CODE_FOLDER

_log = logging.getLogger(__name__)

NODE_ID = "local"
CLAIM_S = 5.0
"""A supervisor that was asked for must have claimed its attempt by then."""
MOST_LAUNCHES = 2


class LocalEngine:
    """Implements `Engine`. All methods belong to one event loop."""

    def __init__(
        self,
        *,
        home: Path,
        attempts_dir: Path,
        devices: str,
        environ: Mapping[str, str],
        sweep_s: float = 1.0,
        overdue_s: float = 10.0,
        log_cap_bytes: int = output.CAP_BYTES,
        looks: Looks | None = None,
        probe: DeviceProbe | None = None,
    ) -> None:
        """`devices` as in `find_devices`; `environ` is the server's, of which jobs get an allow-listed part.

        `probe` looks at the devices as `looks` says; None: the one that fits them.

        `overdue_s` after the grace of a stop order, the engine does itself what the supervisor should have done.
        """
        self._home = home
        self._attempts_dir = attempts_dir
        self._devices = devices
        self._environ = environ
        self._sweep_s = sweep_s
        self._overdue_s = overdue_s
        self._log_cap_bytes = log_cap_bytes
        self._looks = looks or Looks()
        self._probe = probe
        self._is_watching_devices = False
        self._watched: dict[AttemptKey, Watched] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, report: Callable[[NodeReport], None]) -> Sequence[Node]:
        """Raises ValueError for `devices` that are none, OSError, LauncherUnavailable."""
        self._report = report
        self._boot_id = processes.boot_id()
        devices = find_devices(self._devices, self._environ)
        self._attempts_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        sockets = socket_folder(self._home)
        self._locks = device_locks_for(devices, self._environ)
        self._cores = core_shares((d.index for d in devices), os.sched_getaffinity(0), usable_cores())
        has_real = any(d.kind != "cpu" and not d.is_fake for d in devices)
        self._facts = NodeFacts(
            node_id=NODE_ID,
            attempts_dir=self._attempts_dir,
            code_dir=self._home / CODE_FOLDER,
            cores_per_slot=None if has_real else max(1, usable_cores() // len(devices)),
            poke=str(sockets / "engine.sock"),
            environ=self._environ,
            log_cap_bytes=self._log_cap_bytes,
            uuids={device.index: device.uuid for device in devices},
            use_locks=self._locks.use_paths,
        )
        log = self._home / "run" / "launcher.log"
        self._link = plain_launcher(sockets=sockets, log=log, environ=self._environ)
        self._warm = WarmStarts(sockets=sockets, log=log)
        self._devices_watch = DeviceWatch(
            node_id=NODE_ID,
            devices=devices,
            probe=self._probe or probe_for(devices, self._environ),
            locks=self._locks,
            attempts=lambda: list(self._watched.values()),
            say=report,
            looks=self._looks,
        )
        await self._link.open()
        self._listen()
        self._spawn(self._sweep_for_ever())
        sealing = await asyncio.to_thread(sealing_here)
        return [
            Node(
                node_id=NODE_ID,
                generation=0,
                boot_id=self._boot_id,
                hostname=socket.gethostname(),
                cpus=usable_cores(),
                memory_mb=memory_mb(),
                devices=devices,
                sealed_by=sealing.how,
                why_not_sealed=sealing.why_not,
            )
        ]

    async def adopt(self, running: Sequence[LaunchOrder], generation: int) -> None:
        named = {attempt_folder(self._attempts_dir, o.key.job_id, o.key.attempt) for o in running}
        await end_strangers(self._attempts_dir, named, self._boot_id)
        for order in running:
            await self.start(order, generation)
        await self._devices_watch.look()  # Before anything is placed.
        if not self._is_watching_devices:
            self._is_watching_devices = True
            self._spawn(self._watch_devices_for_ever())

    async def start(self, order: LaunchOrder, generation: int) -> None:
        known = self._watched.get(order.key)
        if known is not None:
            known.generation = generation
            return
        watched = await self._prepare(order, generation)
        if watched is None:
            return
        if order.key in self._watched:
            return  # Ordered twice, and prepared meanwhile.
        self._watched[order.key] = watched
        is_exclusive = spec_of(order).compute.exclusive
        self._cores.add(order, NODE_ID, is_exclusive=is_exclusive)
        if watched.find_supervisor() is not None:
            self._look(watched)
            return
        if is_exclusive:
            await self._pin_all()  # Before it starts, everybody else is off its cores.
        watched.launch_asked_at = time.monotonic()
        refusal = await self._devices_watch.refusal(watched)
        if refusal is None:
            await self._launch(watched)
        else:
            self._give_up_launch(watched, ExitReason.DEVICE_UNAVAILABLE, refusal)

    async def stop(self, order: StopAttempt, generation: int) -> None:
        watched = self._watched.get(order.key)
        if watched is None:
            self._answer_for_unknown(order.key, generation)
            return
        watched.generation = generation
        kill_at = time.monotonic() + order.grace_s + self._overdue_s
        watched.kill_at = kill_at if watched.kill_at is None else min(watched.kill_at, kill_at)
        record = {"cause": order.cause, "reason": order.reason, "grace_s": order.grace_s, "ordered_at": time.time()}
        poke = signal.SIGUSR1
        try:
            records.write(str(watched.prepared.folder / records.STOP), record, is_durable=False)
        except OSError:
            poke = signal.SIGUSR2  # The disk is full: the grace of the job's own spec has to do.
        supervisor = watched.find_supervisor()
        if supervisor is not None and is_supervised(supervisor, self._boot_id):
            processes.send_exactly(supervisor["pid"], supervisor["start_ticks"], poke)

    async def read_log(self, key: AttemptKey, offset: int, limit: int, stream: str = MAIN_STREAM) -> LogPiece:
        folder = str(attempt_folder(self._attempts_dir, key.job_id, key.attempt))
        path = os.path.join(folder, records.LOG) if stream == MAIN_STREAM else output.streams(folder).get(stream)
        if path is None:
            return LogPiece(start=0, content=b"", size=0)
        try:
            found = output.read_piece(path, offset, limit, folder=folder)
        except FileNotFoundError:
            return LogPiece(start=0, content=b"", size=0)
        return LogPiece(start=found.start, content=found.content, size=found.size, n_cut=found.n_cut)

    async def log_streams(self, key: AttemptKey) -> Sequence[str]:
        return tuple(output.streams(str(attempt_folder(self._attempts_dir, key.job_id, key.attempt))))

    async def signs_of_life(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, int]:
        folders = {key: str(self._watched[key].prepared.folder) for key in keys if key in self._watched}

        def look() -> dict[AttemptKey, int]:
            return {key: output.written(folder) for key, folder in folders.items()}

        return await asyncio.to_thread(look)

    async def dump_stacks(self, key: AttemptKey) -> str | None:
        watched = self._watched.get(key)
        supervisor = None if watched is None else watched.find_supervisor()
        if watched is None or supervisor is None or not is_supervised(supervisor, self._boot_id):
            return None
        return await asyncio.to_thread(write_stacks, watched.prepared.folder, supervisor)

    async def free_bytes(self) -> int:
        return shutil.disk_usage(self._attempts_dir).free

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        asyncio.get_running_loop().remove_reader(self._poked)
        self._poked.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._facts.poke)
        for watched in self._watched.values():
            keep_positions(watched)
        await self._warm.close()
        self._locks.release()
        await self._link.close()

    async def _prepare(self, order: LaunchOrder, generation: int) -> Watched | None:
        """None: it can not be launched, and that was reported."""
        try:
            spec = spec_of(order)
            await check_answers(places_of(spec))
            if has_snapshot(spec):
                await asyncio.to_thread(place_code, order.key.job_id, spec, self._facts)
            if spec.continues is not None:
                await asyncio.to_thread(continue_from, order.key.job_id, spec, self._facts)
            prepared = prepare(order, spec, self._facts)
            devices = devices_on(order, NODE_ID)
            return Watched(key=order.key, generation=generation, prepared=prepared, devices=devices)
        except CannotLaunch as problem:
            reason, evidence = problem.exit_reason, problem.evidence
            self._report(NotLaunched(key=order.key, generation=generation, exit_reason=reason, evidence=evidence))
        except OSError as error:
            folder = attempt_folder(self._attempts_dir, order.key.job_id, order.key.attempt)
            empty = Prepared(folder=folder, checkpoint_dir=folder, marker=marker_of(order.attempt_token), readers=[])
            text = f"{error.strerror or error}: {error.filename or folder}"
            self._report(not_launched(Watched(key=order.key, generation=generation, prepared=empty), error.errno, text))
        return None

    async def _launch(self, watched: Watched) -> None:
        watched.launch_asked_at = math.inf
        watched.n_launches += 1
        try:
            is_warm = await self._launch_warm(watched)
            watched.launch_asked_at = time.monotonic()
            if not is_warm:
                await self._link.launch(watched.prepared.folder)
            self._record_provenance(watched.prepared)
        except LauncherUnavailable as error:
            self._give_up_launch(watched, ExitReason.LAUNCHER_UNAVAILABLE, str(error))
        except OSError as error:
            problem = not_launched(watched, error.errno, f"{error.strerror or error}: {error.filename or 'its order'}")
            self._give_up_launch(watched, problem.exit_reason, problem.evidence)

    def _record_provenance(self, prepared: Prepared) -> None:
        """After the launch, which does not wait for it; nor does it fail when there is no room."""
        if prepared.record is not None:
            with contextlib.suppress(OSError):
                provenance.write(
                    prepared.folder,
                    prepared.record,
                    snapshot_id=prepared.snapshot_id,
                    device_kinds=prepared.device_kinds,
                )

    async def _launch_warm(self, watched: Watched) -> bool:
        """Start it from a fork server, if one fits. False: it is to be started cold; its order says why."""
        prepared = watched.prepared
        if prepared.record is not None:
            prepared.record["cores"] = sorted(self._cores.of(watched.key))
        if prepared.record is None or watched.n_launches > 1:
            return False  # Its order is written, and says all that a launcher needs.
        choice = await self._warm.choose(prepared.warm)
        write_order(prepared, why=choice.why)
        if choice.server_key is None:
            return False
        try:
            await self._warm.launch(choice, prepared.folder)
        except LauncherUnavailable as problem:
            # It may have been launched before the answer was lost: then the second supervisor finds the claim.
            write_order(prepared, why=f"the fork server failed: {problem}")
            return False
        return True

    def _give_up_launch(self, watched: Watched, reason: ExitReason, evidence: str) -> None:
        """Report that it never ran, after making sure that it never will."""
        void = {"void": True, "exit_reason": reason, "evidence": evidence}
        try:
            if not records.claim(str(watched.prepared.folder / records.SUPERVISOR), void):
                return  # Launched after all.
        except OSError:
            pass  # No room for the claim: neither was there for a supervisor's.
        self._forget(watched)
        self._report(NotLaunched(key=watched.key, generation=watched.generation, exit_reason=reason, evidence=evidence))

    def _look(self, watched: Watched) -> None:
        """See what became of one attempt, and report what is new; what can not be read now is read at the next look."""
        try:
            self._see(watched)
        except OSError:
            _log.exception("looking at %s failed; it is looked at again in %g s", watched.key, self._sweep_s)

    def _see(self, watched: Watched) -> None:
        if watched.is_ending:
            return
        ending = watched.record(records.EXIT)
        is_known = watched.supervisor is not None
        supervisor = watched.find_supervisor()
        if supervisor is not None and not is_known:
            self._spawn(self._pin(watched))  # Its cores may have been given away while it came up.
        if ending is None and supervisor is not None and not is_supervised(supervisor, self._boot_id):
            ending = watched.record(records.EXIT)  # It may have been written since.
            if ending is None:
                self._end_without_supervisor(watched)
                return
        if ending is not None:
            self._end(watched, ending)
        elif supervisor is None:
            self._look_for_claim(watched)
        else:
            self._say(started_report(watched))
            if watched.kill_at is not None and time.monotonic() > watched.kill_at:
                processes.send_exactly(supervisor["pid"], supervisor["start_ticks"], signal.SIGKILL)
                self._end_without_supervisor(watched)

    def _look_for_claim(self, watched: Watched) -> None:
        if time.monotonic() - watched.launch_asked_at < CLAIM_S:
            return
        if watched.n_launches < MOST_LAUNCHES:
            self._spawn(self._launch(watched))
        else:
            evidence = f"no supervisor came up within {CLAIM_S:g} s, {MOST_LAUNCHES} times"
            self._give_up_launch(watched, ExitReason.LAUNCHER_UNAVAILABLE, evidence)

    def _end_without_supervisor(self, watched: Watched) -> None:
        supervisor = watched.find_supervisor() or {}
        watched.is_ending = True
        if supervisor.get("void"):
            self._forget(watched)
            reason, evidence = ExitReason(supervisor["exit_reason"]), supervisor["evidence"]
            self._report(
                NotLaunched(key=watched.key, generation=watched.generation, exit_reason=reason, evidence=evidence)
            )
        else:
            self._spawn(self._end_lost(watched))

    async def _end_lost(self, watched: Watched) -> None:
        """The supervisor is gone and has left no exit record: kill the tree, then say so."""
        was_killed = await end_lost_tree(watched.prepared.folder, watched.prepared.marker)
        supervisor = watched.find_supervisor() or {}
        ending = lost_record(was_killed, is_of_earlier_boot=is_of_earlier_boot(supervisor, self._boot_id))
        with contextlib.suppress(OSError):
            records.write(str(watched.prepared.folder / records.EXIT), ending)
        await self._end_when_empty(watched, ending)

    def _end(self, watched: Watched, ending: dict[str, Any]) -> None:
        """Say that it ended: at once on CPU slots, else when its devices are empty, or known not to be."""
        if self._devices_watch.is_watching(watched.devices):
            watched.is_ending = True
            self._spawn(self._end_when_empty(watched, ending))
            return
        reports = ending_reports(watched, ending)
        self._forget(watched)
        self._say(reports)

    async def _end_when_empty(self, watched: Watched, ending: dict[str, Any]) -> None:
        fault = await self._devices_watch.until_empty(watched)
        reports = ending_reports(watched, ending)
        self._forget(watched)
        self._say([replace(r, device_fault=fault) if isinstance(r, Exited) else r for r in reports])

    async def _watch_devices_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._looks.every_s)
            await self._devices_watch.look()

    def _answer_for_unknown(self, key: AttemptKey, generation: int) -> None:
        """A stop order for an attempt that is not here: it ended before, and that was said; or it never came."""
        if not attempt_folder(self._attempts_dir, key.job_id, key.attempt).exists():
            reason, evidence = ExitReason.LAUNCHER_UNAVAILABLE, "it was never started on this node"
            self._report(NotLaunched(key=key, generation=generation, exit_reason=reason, evidence=evidence))

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_s)
            await self._warm.expire()
            await self._pin_all()
            for watched in list(self._watched.values()):
                try:
                    self._sweep(watched)
                except OSError:
                    _log.exception("looking at %s failed; it is looked at again in %g s", watched.key, self._sweep_s)

    def _sweep(self, watched: Watched) -> None:
        keep_positions(watched)
        self._look(watched)
        if watched.key in self._watched and watched.is_started and not watched.is_ending:
            self._say(metrics_report(watched))
            self._look_for_checkpoint(watched)

    def _look_for_checkpoint(self, watched: Watched) -> None:
        step = newest_checkpoint(watched)
        if step is not None and (watched.checkpoint_step is None or step > watched.checkpoint_step):
            watched.checkpoint_step = step
            self._report(Checkpointed(key=watched.key, generation=watched.generation, step=step))

    def _listen(self) -> None:
        self._poked = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._facts.poke)
        self._poked.bind(self._facts.poke)
        asyncio.get_running_loop().add_reader(self._poked, self._read_pokes)

    def _read_pokes(self) -> None:
        while True:
            try:
                message = json.loads(self._poked.recv(4096))
                key = AttemptKey(job_id=message["job_id"], attempt=message["attempt"])
            except BlockingIOError:
                return
            except (ValueError, KeyError, TypeError):
                continue  # Not from a supervisor of ours.
            watched = self._watched.get(key)
            if watched is not None and "unclaimed" in message:
                problem = not_launched(watched, message["unclaimed"], os.strerror(message["unclaimed"]))
                self._give_up_launch(watched, problem.exit_reason, problem.evidence)
            elif watched is not None:
                self._look(watched)

    def _say(self, reports: Sequence[NodeReport]) -> None:
        for one in reports:
            self._report(one)

    async def _pin_all(self) -> None:
        """Move attempts whose cores are others now: an exclusive one came, or has left."""
        for watched in list(self._watched.values()):
            with contextlib.suppress(OSError):  # What can not be read now is read at the next look.
                watched.find_supervisor()
            await self._pin(watched)

    async def _pin(self, watched: Watched) -> None:
        pid, cores = watched.supervisor_pid, self._cores.of(watched.key)
        if pid is not None and not watched.is_ending and not is_pinned(pid, cores):
            await asyncio.to_thread(pin, pid, cores)

    def _forget(self, watched: Watched) -> None:
        self._watched.pop(watched.key, None)
        self._cores.drop(watched.key)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A bug in background work must not go unheard: the loop's exception handler is told at once."""
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            context = {"message": f"{task.get_name()} of the local engine failed", "exception": problem, "task": task}
            task.get_loop().call_exception_handler(context)

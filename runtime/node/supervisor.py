"""Supervise one attempt: start its leader, carry out stop orders, prove its end, record it.

A supervisor is forked by the launcher and outlives the server. It is the subreaper of everything that the command
starts, so "no child left" proves that nothing of the attempt is left. The leader dies with it. It waits for
signals and a slow poll; it uses no processor time while the job runs. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import time

from runtime.node import box, cgroups, machine_locks, memory, output, ports, processes, records
from runtime.node.duty import Duty
from runtime.sandbox import disk, groups, kernel, levels, walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POLL_S = 5.0
"""A stop order whose poke was lost is found after this long."""
POKE_S = 0.2
"""How long a busy server is waited for."""
ENCLOSE_S = 0.05
"""After the start, when the attempt's tree is moved into its control group."""
LEFTOVER_GRACE_S = 0.1
"""For helpers of the leader that end by themselves right after it (they unlink shared memory, say)."""
EXIT_WRITE_TRIES = 120
"""Once a second, should the exit record not be writable."""

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_WAITED_FOR = frozenset({signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2})
# The others are blocked as well: a machine that shuts down must not end the supervisor before the job.
_BLOCKED = _WAITED_FOR | {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}

_libc = ctypes.CDLL(None, use_errno=True)


class ScriptLeader(BaseException):
    """Raised in the leader of an attempt that is started warm: it is to become the script. Nothing may catch it."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__()
        self.order = order


def supervise(folder: str, *, is_warm: bool = False) -> None:
    """Run the attempt in `folder` to its end, unless another supervisor has claimed it.

    Raises ScriptLeader in the leader of a warm start, which has no command to execute.
    """
    order = records.read(os.path.join(folder, records.ORDER))
    if order is None:
        return
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, _BLOCKED)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    name_process(f"nl {order['job_id']}.{order['attempt']}")
    if order.get("cores"):
        with contextlib.suppress(OSError):  # They were taken away meanwhile; the engine will see.
            os.sched_setaffinity(0, order["cores"])
    order["cgroup"] = cgroups.make(order["marker"])
    try:
        is_ours = _claim(folder, order)
    except OSError as error:
        _leave_group(order["cgroup"])
        _poke(order, unclaimed=error.errno)
        return
    if is_ours:
        order["is_warm"] = is_warm
        _Attempt(folder, order).run()


def name_process(name: str) -> None:
    """What `ps -o comm` and `top` show for this process; the kernel keeps 15 bytes."""
    _libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def _claim(folder: str, order: dict[str, Any]) -> bool:
    own = processes.look_up(os.getpid())
    record = {
        "pid": os.getpid(),
        "start_ticks": own.start_ticks if own else 0,
        "boot_id": processes.boot_id(),
        "marker": order["marker"],
        "cgroup": order["cgroup"],
    }
    reserved = [os.path.join(folder, name) for name in (records.STARTED, records.EXIT)]
    is_ours = False
    try:
        for path in reserved:
            records.reserve(path)
        is_ours = records.claim(os.path.join(folder, records.SUPERVISOR), record)
    finally:
        if not is_ours:
            for path in reserved:
                records.release(path)
    return is_ours


def _poke(order: dict[str, Any], **news: Any) -> None:
    """Tell the server, if it listens, to look at this attempt now. It may be lost: the server also looks by itself."""
    message = {"job_id": order["job_id"], "attempt": order["attempt"], **news}
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(POKE_S)
            sender.sendto(json.dumps(message).encode(), order["poke"])
    except OSError:
        return


class _Attempt:
    def __init__(self, folder: str, order: dict[str, Any]) -> None:
        self._folder = folder
        self._order = order
        self._group: str | None = order["cgroup"]
        self._leader = 0
        self._began_at = 0.0
        """When the command started, on the monotonic clock."""
        self._cpu_s = 0.0
        """Of processes that have ended, with those that they had waited for."""
        self._duty = Duty()
        self._box_report = -1
        """Where the first process of a sealed attempt's box says how its command ended; -1: it is not sealed."""
        self._disk = disk.Watch(order.get("sandbox", levels.NONE), time.monotonic())
        self._stop_seen = b""
        self._kill_at: float | None = None
        """On the monotonic clock; None: nobody asked it to stop."""
        self._was_killed = False
        self._oom_kills = 0
        self._enclose_at: float | None = time.monotonic() + ENCLOSE_S
        """On the monotonic clock; None: it was done."""
        self._keeper = output.Keeper(folder, int(order.get("log_cap_bytes", output.CAP_BYTES)))
        self._kept_at = time.monotonic()
        self._next_look_s = 0.0
        self._peak = memory.Peak(time.monotonic())

    def run(self) -> None:
        failure = self._start()
        if failure is not None:
            self._leave_box()
            self._record_exit({"launch_error": failure, "ended_at": time.time()})
            return
        self._read_stop_order()
        self._wait()
        self._end_leftovers()
        self._keeper.look(0.0, POLL_S)
        ending = self._ending()
        self._leave_box()
        self._record_exit(ending)

    def _leave_box(self) -> None:
        _leave_group(self._group)
        sandbox = self._order.get("sandbox", levels.NONE)
        groups.remove(sandbox.get("groups", []))
        for folder in sandbox.get("emptied", []):
            disk.empty(folder)

    def _start(self) -> dict[str, Any] | None:
        """Start the leader and record it. Returns what went wrong, if the command never ran."""
        try:
            _share_locks(self._order["locks"])
            port = self._hold_port()
            self._leader, self._box_report, failure = _spawn(self._folder, self._order, port)
        except OSError as error:
            return {"errno": error.errno, "text": f"{error.strerror}: {error.filename or 'starting a process'}"}
        if failure is not None:
            return failure
        self._began_at = time.monotonic()
        self._duty.begin(self._leader)
        leader = processes.look_up(self._leader)
        started = {
            "pid": self._leader,
            "start_ticks": leader.start_ticks if leader else 0,
            "at": time.time(),
            "launch": "warm" if self._order["is_warm"] else "cold",
            "launch_why": self._order.get("launch_why", ""),
            "sandbox": levels.reached(self._order.get("sandbox", levels.NONE)),
        }
        try:
            records.write_reserved(os.path.join(self._folder, records.STARTED), started, is_durable=False)
            _poke(self._order)
            # Only now, so that nobody waits for it. After a power cut the boot id tells that the attempt is over.
            records.sync(os.path.join(self._folder, records.SUPERVISOR))
            records.sync(os.path.join(self._folder, records.STARTED))
            records.sync_folder(self._folder)
        except OSError:
            _poke(self._order)  # The claim stands and the job may go on: its folder is broken or gone, not the job.
        self._oom_kills = processes.oom_kills()
        return None

    def _enclose(self) -> None:
        """Move the leader into its group, and what it has started meanwhile; later ones are born there.

        Moving takes as long as starting, so nobody waits for it, and what ends at once is not moved at all. The group
        is the second line only: the supervisor finds its tree without it.
        """
        self._enclose_at = None
        if self._group is None:
            return
        moved: set[int] = set()
        found = {self._leader}
        while found - moved:
            for pid in found - moved:
                with contextlib.suppress(OSError):
                    cgroups.enter(self._group, pid)
            moved |= found
            found = processes.descendants([os.getpid()], processes.table())

    def _hold_port(self) -> ports.Port | None:
        """The attempt's rendezvous port, unless the user named one. Its lock is ours until we end."""
        environment = self._order["env"]
        if records.PORT_VARIABLE in environment:
            return None
        port = ports.hold(int(self._order["marker"][:8], 16))
        environment.update(dict.fromkeys((records.PORT_VARIABLE, records.TORCHRUN_PORT_VARIABLE), str(port.number)))
        return port

    def _wait(self) -> None:
        """Until every awaited process is gone, or the grace of a stop order is over."""
        while True:
            self._reap()
            if not self._duty.awaited:
                return
            wait_s = min(self._keep_output(), self._measure(), self._disk.wait_s(time.monotonic()))
            if self._disk.is_passed(time.monotonic()):
                self._was_killed = True
                self._say(self._disk.words())
                return
            if self._enclose_at is not None:
                wait_s = min(wait_s, self._enclose_at - time.monotonic())
                if wait_s <= 0:
                    self._enclose()
                    continue
            if self._kill_at is not None:
                wait_s = min(wait_s, self._kill_at - time.monotonic())
                if wait_s <= 0:
                    self._was_killed = True
                    return
            received = signal.sigtimedwait(_WAITED_FOR, wait_s)
            if received is not None and received.si_signo == signal.SIGUSR2:
                self._begin_stop(float(self._order["grace_s"]))
            elif received is None or received.si_signo == signal.SIGUSR1:
                self._read_stop_order()

    def _keep_output(self) -> float:
        """Keep the output within its bound; how long to wait for the next look."""
        passed_s = time.monotonic() - self._kept_at
        if passed_s >= self._next_look_s:
            self._next_look_s = self._keeper.look(passed_s, POLL_S)
            self._kept_at = time.monotonic()
            return self._next_look_s
        return self._next_look_s - passed_s

    def _measure(self) -> float:
        """Look at the memory that the attempt holds, if that is due; how long to wait for the next look."""
        left_s = self._peak.look_at - time.monotonic()
        if left_s > 0:
            return left_s
        self._peak.look(self._members)
        return self._peak.look_at - time.monotonic()

    def _members(self) -> set[int]:
        if self._group is not None and self._enclose_at is None:
            return cgroups.members(self._group)
        return processes.below(os.getpid())

    def _read_stop_order(self) -> None:
        try:
            with os.fdopen(records.open_plain(os.path.join(self._folder, records.STOP)), "rb") as file:
                body = file.read()
            if body == self._stop_seen:
                return
            grace_s = float(json.loads(body)["grace_s"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        self._stop_seen = body
        self._begin_stop(grace_s)

    def _begin_stop(self, grace_s: float) -> None:
        """Give notice once; a later order can only shorten the grace."""
        is_first = self._kill_at is None
        kill_at = time.monotonic() + max(0.0, grace_s)
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        if grace_s <= 0:
            return
        if not is_first:
            self._give_notice(max(0.0, self._kill_at - time.monotonic()))
            return
        self._duty.notice()
        self._give_notice(grace_s)
        self._duty.ask_to_leave()

    def _give_notice(self, grace_s: float) -> None:
        """The notice holds the time of the kill, in seconds since the epoch; it is there whole or not at all."""
        sandbox = self._order.get("sandbox", levels.NONE)
        path = os.path.join(sandbox.get("notices", self._folder), records.NOTICE)
        try:
            text = f"{time.time() + grace_s:.3f}\n"
            records.write_text(path, text, owner=sandbox.get("uid"))
        except OSError:
            with contextlib.suppress(OSError), open(path, "ab"):  # On a full disk the name alone, or the signal.
                pass

    def _reap(self) -> bool:
        """Collect everything that has ended. False: no process of the attempt is left, dead or alive."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self._peak.ended(usage.ru_maxrss)
            self._cpu_s += usage.ru_utime + usage.ru_stime
            self._duty.ended(pid, self._told(pid, os.waitstatus_to_exitcode(status)))

    def _told(self, pid: int, code: int) -> int:
        """The exit code; for the first process of a box, that of the command in it."""
        if pid != self._leader or self._box_report < 0:
            return code
        with os.fdopen(self._box_report, "rb") as file:
            body = file.read()
        self._box_report = -1
        if not body:
            return code  # It was killed, and all in the box with it.
        told = json.loads(body)
        self._was_killed = self._was_killed or bool(told["was_killed"])
        return code if told["exit_code"] is None else int(told["exit_code"])

    def _say(self, text: str) -> None:
        """To the job's output."""
        with contextlib.suppress(OSError), open(os.path.join(self._folder, records.LOG), "ab") as file:
            file.write(f"nightlab: {text}\n".encode())

    def _end_leftovers(self) -> None:
        """Kill what is left, again and again until nothing is. A process in an uninterruptible call is waited for."""
        if not self._was_killed:
            self._settle(time.monotonic() + LEFTOVER_GRACE_S)
        pause_s = 0.002
        while self._reap() or self._has_members():
            self._was_killed = True
            if self._group is not None:
                cgroups.kill(self._group)
            processes.kill(processes.descendants([os.getpid()], processes.table()))
            signal.sigtimedwait({signal.SIGCHLD}, pause_s)
            pause_s = min(pause_s * 2, 1.0)

    def _has_members(self) -> bool:
        return self._group is not None and bool(cgroups.members(self._group))

    def _settle(self, until: float) -> None:
        while self._reap() or self._has_members():
            left_s = until - time.monotonic()
            if left_s <= 0:
                return
            signal.sigtimedwait({signal.SIGCHLD}, left_s)

    def _ending(self) -> dict[str, Any]:
        exit_code = self._duty.exit_code()
        return {
            "exit_code": exit_code,
            "was_killed": self._was_killed,
            "oom_killed": exit_code != 0 and self._lost_one_for_memory(exit_code),
            "ended_at": time.time(),
            "run_s": time.monotonic() - self._began_at,
            "cpu_s": self._cpu_s,
            "peak_memory_mb": self._peak.mb,
        }

    def _lost_one_for_memory(self, exit_code: int | None) -> bool:
        """Whether the kernel killed one of its processes for memory: any one, where its group counts them.

        Else the leader alone is judged: killed, by nobody here, while the machine ran out of memory.
        """
        if groups.has_killed(self._order.get("sandbox", levels.NONE).get("groups", [])):
            return True
        counted = None if self._group is None else cgroups.oom_kills(self._group)
        if counted is not None:
            return counted > 0
        is_foreign_kill = exit_code == -signal.SIGKILL and self._kill_at is None
        return is_foreign_kill and processes.oom_kills() > self._oom_kills

    def _record_exit(self, record: dict[str, Any]) -> None:
        path = os.path.join(self._folder, records.EXIT)
        for _ in range(EXIT_WRITE_TRIES):
            try:
                records.write_reserved(path, record, is_durable=True)
                break
            except FileNotFoundError:
                return  # The attempt's folder was removed: nobody wants the record.
            except OSError:
                time.sleep(1.0)
        _poke(self._order)


def _spawn(folder: str, order: dict[str, Any], port: ports.Port | None) -> tuple[int, int, dict[str, Any] | None]:
    """Fork the leader. Returns its pid, where a box reports (or -1), and why it could not become the command."""
    log = os.open(os.path.join(folder, records.LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    reader, writer = os.pipe2(os.O_CLOEXEC)
    ending, report = -1, -1
    if _level(order) == "sealed":
        try:
            _prepare_box(order, log)
        except OSError as error:
            return 0, -1, {"errno": error.errno, "text": f"sandbox: {error.strerror}", "is_sandbox": True}
        ending, report = os.pipe2(os.O_CLOEXEC)
    own_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_command(order, log, writer, own_pid, report)
    if port is not None:
        port.let_go()  # The child has it too, until the very moment at which it becomes the command.
    for descriptor in (writer, log, *([report] if report >= 0 else [])):
        os.close(descriptor)
    with os.fdopen(reader, "rb") as answer:
        body = answer.read()
    if not body:
        return pid, ending, None
    os.waitpid(pid, 0)
    failure: dict[str, Any] = json.loads(body)
    return pid, -1, failure


def _prepare_box(order: dict[str, Any], log: int) -> None:
    """Its bounds, its output, and what makes the next child the first process of its box. Raises OSError."""
    sandbox = order["sandbox"]
    os.fchown(log, sandbox["uid"], -1)  # It may open its own output by name (/dev/stdout).
    sandbox["groups"] = groups.make(f"nightlab-{order['marker']}", sandbox["bounds"])
    if not any("memory" in path for path in sandbox["groups"]):
        sandbox["rlimits"]["RLIMIT_DATA"] = sandbox["bounds"]["memory"]
    if sandbox["how"] == walls.USER_NAMESPACE:
        kernel.become_own_namespace_of_users()
    if sandbox["how"] != walls.LANDLOCK:
        kernel.unshare(kernel.CLONE_NEWPID, "pid")


def _become_command(order: dict[str, Any], log: int, writer: int, supervisor: int, report: int) -> None:
    """In the child: never returns."""
    stage = "preparing the process"
    try:
        os.setsid()
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        is_sealed = _level(order) == "sealed"
        if not is_sealed and os.getppid() != supervisor:
            os._exit(1)
        os.dup2(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        # Python ignores these two; a command expects the defaults.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        stage = "sandbox"
        if is_sealed:
            box.enter(order["sandbox"], report)
        else:
            levels.restrain(_level(order))
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        stage = f"working directory {order['cwd']!r}"
        os.chdir(order["cwd"])
        if order["is_warm"]:
            # What the launcher and the supervisor had open; the supervisor reads from this that the start succeeded.
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            # As Python itself does when it starts.
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            raise ScriptLeader(order)
        stage = f"command {order['argv'][0]!r}"
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        failure = {
            "errno": error.errno,
            "text": f"{stage}: {error.strerror}",
            "is_sandbox": stage == "sandbox",
        }
        os.write(writer, json.dumps(failure).encode())
        os._exit(127)


def _level(order: dict[str, Any]) -> str:
    """An order without one is of an older engine."""
    return str(order.get("sandbox", levels.NONE)["level"])


def _leave_group(path: str | None) -> None:
    if path is not None:
        cgroups.remove(path)


def _share_locks(paths: list[str]) -> None:
    """Hold the attempt's devices on this machine until we end, whatever becomes of the server.

    The server that ordered it has these devices; one that has them no more is told by its next look.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            machine_locks.take(path, is_shared=True)

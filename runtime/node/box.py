"""The first process of a sealed attempt's box: it builds the box, starts the command in it, and tells how that ended.

To the kernel it is the init of a pid namespace: when it ends, nothing in the box is left. It stays in the machine's
network, may signal what is in the box, has no other right, and carries what the job says to the metrics gateway across.
Without namespaces it is a process as any other that answers what the job may not do by itself; what is left of the job
when it ends, the supervisor ends.
Standard library only: the supervisors import this.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
import time

from runtime.node import processes
from runtime.node.duty import Duty
from runtime.sandbox import fence, groups, kernel, walls
from runtime.sandbox.doorman import Doorman

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEFTOVER_GRACE_S = 0.1
"""For helpers of the leader that end by themselves right after it."""
MOST_CONNECTIONS = 64
_PIECE = 64 * 1024


class NotSealed(OSError):
    """The machine does not let us."""


def enter(box: dict[str, Any], report: int) -> None:
    """In the first process of a new pid namespace. Returns in its child, which is to become the command, sealed.

    `report` is where the end is written to. Raises NotSealed in either of them.
    """
    try:
        kernel.show_memory_to_its_user(False)
        groups.enter(box["groups"])
        if box["how"] != walls.LANDLOCK:
            walls.enclose(box)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        own = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _seal(box, ours, theirs, own, report)
            return
    except OSError as error:
        raise NotSealed(error.errno, error.strerror or str(error)) from error
    theirs.close()
    _watch(box, pid, ours, report)


def _seal(box: dict[str, Any], ours: socket.socket, theirs: socket.socket, init: int, report: int) -> None:
    ours.close()
    os.close(report)
    if box["how"] == walls.LANDLOCK:
        asking = fence.shut(box)
        socket.send_fds(theirs, [b"+"], [asking])
        os.close(asking)
        theirs.close()
    else:
        _wall_in(box, theirs)
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != init:
        os._exit(1)


def _wall_in(box: dict[str, Any], theirs: socket.socket) -> None:
    if box["network"] == "none":
        listener = walls.shut_network(box["gateway"][1])
        socket.send_fds(theirs, [b"+"], [listener.fileno()])
        listener.close()
    theirs.close()
    walls.shed(box)


def _watch(box: dict[str, Any], leader: int, channel: socket.socket, report: int) -> None:
    """Never returns."""
    status = 1
    try:
        _let_go_of_all_but(channel.fileno(), report)
        listener = _received(channel)
        kernel.forbid_new_rights()
        if box["how"] == walls.LANDLOCK:
            kernel.drop_capabilities()
            kernel.adopt_orphans()
        else:
            kernel.drop_bounding()
            kernel.drop_capabilities(but=kernel.CAP_KILL)
        kernel.die_with_parent(signal.SIGKILL)
        waited = {signal.SIGCHLD, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        if listener is not None and box["how"] == walls.LANDLOCK:
            Doorman(listener, box, _members).begin()
        elif listener is not None:
            threading.Thread(
                target=_carry, args=(socket.socket(fileno=listener), tuple(box["gateway"])), daemon=True
            ).start()
        told = _until_over(leader, waited)
        os.write(report, json.dumps(told).encode())
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _let_go_of_all_but(*kept: int) -> None:
    """What the supervisor reads to the end must not be held open by us, and the job's output is the job's."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for number in (0, 1, 2):
        os.dup2(null, number)
    last = 2
    for number in sorted(kept):
        os.closerange(last + 1, number)
        last = number
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))


def _received(channel: socket.socket) -> int | None:
    """The socket inside that stands for the gateway, or where the fence asks.

    None: the network is open, or the job is not to start.
    """
    _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    channel.close()
    return descriptors[0] if descriptors else None


def _members() -> set[int]:
    return processes.below(os.getpid())


def _until_over(leader: int, waited: set[signal.Signals]) -> dict[str, Any]:
    duty = Duty()
    duty.begin(leader)
    while duty.awaited:
        if not _reap(duty):
            break
        if not duty.awaited:
            break
        received = signal.sigwaitinfo(waited)
        if received.si_signo == signal.SIGTERM:
            duty.notice()
            duty.ask_to_leave()
    until = time.monotonic() + LEFTOVER_GRACE_S
    while (has_more := _reap(duty)) and (left_s := until - time.monotonic()) > 0:
        signal.sigtimedwait({signal.SIGCHLD}, left_s)
    return {"exit_code": duty.exit_code(), "was_killed": has_more}


def _reap(duty: Duty) -> bool:
    """False: nothing in the box is left but us."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        duty.ended(pid, os.waitstatus_to_exitcode(status))


def _carry(listener: socket.socket, gateway: tuple[str, int]) -> None:
    room = threading.BoundedSemaphore(MOST_CONNECTIONS)
    while True:
        room.acquire()
        connection, _ = listener.accept()
        threading.Thread(target=_carry_one, args=(connection, gateway, room), daemon=True).start()


def _carry_one(inside: socket.socket, gateway: tuple[str, int], room: threading.BoundedSemaphore) -> None:
    try:
        with inside, socket.create_connection(gateway, timeout=10.0) as outside:
            outside.settimeout(None)
            _copy_both_ways(inside, outside)
    except OSError:
        return  # The job sees its connection closed, as from a gateway that is gone.
    finally:
        room.release()


def _copy_both_ways(inside: socket.socket, outside: socket.socket) -> None:
    """Until both sides have said all."""
    other = {inside: outside, outside: inside}
    talking = [inside, outside]
    while talking:
        ready, _, _ = select.select(talking, [], [])
        for one in ready:
            piece = one.recv(_PIECE)
            if piece:
                other[one].sendall(piece)
            else:
                talking.remove(one)
                other[one].shutdown(socket.SHUT_WR)

"""Fork a supervisor per attempt, on request. One small single-threaded process per home folder.

It has paid for the start of Python already, so that an attempt does not. It outlives the server, and ends by itself
when it has neither attempts nor a server for a while. Requests and answers are JSON lines on a Unix socket:
`hello`, `launch` (an attempt folder), `retire` (end as soon as there is nothing to do). Standard library only; run it
with `python -I -S` (see `runtime.engines.launcher_link`).
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import traceback

from runtime.node import cgroups, records
from runtime.node.supervisor import ScriptLeader, name_process, supervise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 2
"""Of the protocol and of the records. A server that meets another one retires it and starts its own."""
PROCESS_NAME = "nl launcher"
IDLE_S = 60.0
_LOOK_S = 5.0
_LONGEST_REQUEST = 64 * 1024


class _Launcher:
    def __init__(self, path: str, listener: socket.socket, lock: int, *, is_warm: bool) -> None:
        self._is_warm = is_warm
        self._n_launches = 0
        self._path = path
        self._identity = _identity(path)
        self._listener = listener
        self._lock = lock
        self._connections: dict[int, socket.socket] = {}
        self._unread: dict[int, bytes] = {}
        self._supervisors: set[int] = set()
        self._is_retiring = False
        self._idle_looks = 0

    def serve(self) -> None:
        wake_reader, wake_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poller = select.poll()
        poller.register(self._listener, select.POLLIN)
        poller.register(wake_reader, select.POLLIN)
        while not self._is_over():
            ready = poller.poll(_LOOK_S * 1000)
            self._idle_looks = 0 if ready else self._idle_looks + 1
            for descriptor, _ in ready:
                if descriptor == self._listener.fileno():
                    connection, _ = self._listener.accept()
                    self._connections[connection.fileno()] = connection
                    poller.register(connection, select.POLLIN)
                elif descriptor == wake_reader:
                    os.read(wake_reader, 4096)
                elif not self._serve_connection(descriptor):
                    poller.unregister(descriptor)
                    self._connections.pop(descriptor).close()
                    self._unread.pop(descriptor, None)
            self._reap()

    def has_socket(self) -> bool:
        return _identity(self._path) == self._identity

    def _is_over(self) -> bool:
        if not self.has_socket():
            return True  # Somebody removed or replaced the socket: nobody can reach us any more.
        if self._supervisors or self._connections:
            return False
        return self._is_retiring or self._idle_looks * _LOOK_S >= IDLE_S

    def _reap(self) -> None:
        while self._supervisors:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._supervisors.discard(pid)

    def _serve_connection(self, descriptor: int) -> bool:
        """Answer what has arrived. False: the connection is over."""
        connection = self._connections[descriptor]
        try:
            received = connection.recv(65536)
            if not received:
                return False
            *lines, rest = (self._unread.get(descriptor, b"") + received).split(b"\n")
            self._unread[descriptor] = rest
            for line in lines:
                connection.sendall(json.dumps(self._answer(line)).encode() + b"\n")
        except OSError:
            return False
        return len(rest) <= _LONGEST_REQUEST

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            operation = request["op"]
            if operation == "launch":
                self._launch(str(request["folder"]))
            elif operation == "retire":
                self._is_retiring = True
            elif operation == "hello":
                self._is_retiring = False
        except (ValueError, KeyError, TypeError, OSError) as error:
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}
        return {
            "ok": True,
            "version": VERSION,
            "pid": os.getpid(),
            "n_attempts": len(self._supervisors),
            "n_launches": self._n_launches,
        }

    def _launch(self, folder: str) -> None:
        self._n_launches += 1
        pid = os.fork()
        if pid:
            self._supervisors.add(pid)
            return
        status: int | None = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for connection in (self._listener, *self._connections.values()):
                connection.detach()  # Else it would close, when it is collected, what has its number by then.
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            supervise(folder, is_warm=self._is_warm)
            status = 0
        except ScriptLeader:
            status = None
            raise
        except BaseException:  # noqa: BLE001 - the supervisor's firewall: the leader dies with it, the engine sees it
            traceback.print_exc()
        finally:
            if status is not None:
                os._exit(status)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def main(path: str, log_path: str, *, name: str = PROCESS_NAME, is_warm: bool = False) -> None:
    """Listen at `path`; returns at once in the caller's process, while a child of it serves.

    The socket exists when the first process has ended with status 0. Does nothing if a launcher serves there already.
    Raises ScriptLeader in each leader of a warm start.
    """
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    records.remove(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.bind(path)
    listener.listen(64)
    if os.fork():
        return
    os.setsid()
    os.chdir("/")
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    name_process(name)
    cgroups.root()  # Found once, for all that is forked.
    gc.freeze()
    launcher = _Launcher(path, listener, lock, is_warm=is_warm)
    launcher.serve()
    if launcher.has_socket():  # Else another launcher listens there by now.
        records.remove(path)
    sys.stderr.flush()
    os._exit(0)

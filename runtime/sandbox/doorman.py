"""What a fenced job asks of the first process of its box, since the kernel's filter sees no paths and no addresses.

The doorman makes the call itself, on what it has looked at itself, and never lets one go on: whatever the job changes
meanwhile, what was looked at is what is done. It gives no more than: connections to the metrics gateway and to local
sockets in the job's own folders, modes and times of files in them, and, where Landlock does not hold back signals,
signals to the job's own processes. Standard library only: the supervisors import this.

Source: seccomp_unotify(2).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
import sys
import threading

from runtime.sandbox import fence_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

N_THREADS = 4
CONNECT_S = 10.0
_RECEIVE, _SEND, _IS_VALID, _ADD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_QUESTION, _ANSWER, _ADDED = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI"), struct.Struct("=QIIII")
_AT_THAT_NUMBER = 1
_HERE = -100
"""AT_FDCWD."""
_EMPTY_PATH, _NO_FOLLOW = 0x1000, 0x100
_MOST_PATH = 4096
_PAGE = 4096
_LOCAL_PATH_AT, _INTERNET_BYTES = 2, 8
_CLOSE_ON_EXEC = 0o2000000

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(OSError):
    """With the number that the job is told."""


class Doorman:
    """Of one box; stateless but for what it was told at the start."""

    def __init__(self, listener: int, fence: dict[str, Any], members: Callable[[], set[int]]) -> None:
        """`members`: the processes of the job now. `fence`: the part of the order that says how it is fenced."""
        self._listener = listener
        self._members = members
        host, port = fence["gateway"]
        self._gateway = (str(host), int(port))
        self._asked_for = socket.inet_aton("127.0.0.1"), int(port)
        self._own = [os.path.realpath(path) for path in fence["writable"]]
        names = {number: name for name, number in fence_filter.NUMBERS[os.uname().machine].items()}
        acts: dict[str, Callable[..., int | None]] = {
            "socket": self._socket, "connect": self._connect, "chmod": self._chmod, "fchmod": self._fchmod,
            "fchmodat": self._fchmodat, "fchmodat2": self._fchmodat, "utimensat": self._utimensat,
            "kill": self._kill, "tgkill": self._tgkill,
        }  # fmt: skip
        self._acts = {number: acts[name] for number, name in names.items() if name in acts}

    def begin(self) -> None:
        """On threads of its own, until this process ends."""
        for _ in range(N_THREADS):
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            question = bytearray(_QUESTION.size)
            try:
                fcntl.ioctl(self._listener, _RECEIVE, question, True)
            except InterruptedError:
                continue
            except OSError as error:
                if error.errno == errno.ENOENT:  # Who asked has ended.
                    continue
                return
            self._answer(bytes(question))

    def _answer(self, question: bytes) -> None:
        told, pid, _, call, _, _, *arguments = _QUESTION.unpack(question)
        value, number = 0, 0
        try:
            value = self._acts[call](told, pid, *arguments) or 0
        except (OSError, ValueError, LookupError, OverflowError, struct.error) as error:  # All is the job's choice.
            number = getattr(error, "errno", None) or errno.EPERM
        try:
            self._tell(_SEND, _ANSWER.pack(told, value, -number, 0))
        except OSError:
            return  # Who asked has ended.

    def _socket(self, told: int, _: int, family: int, kind: int, *__: int) -> int:
        """One that reaches, and is reached from, this machine alone, whatever it is bound to."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
            made.setblocking(not kind & socket.SOCK_NONBLOCK)
            flags = _CLOSE_ON_EXEC if kind & socket.SOCK_CLOEXEC else 0
            return self._tell(_ADD, _ADDED.pack(told, 0, made.fileno(), 0, flags))

    def _connect(self, told: int, pid: int, number: int, address: int, n_bytes: int, *_: int) -> None:
        """Put a connected socket in the place of the job's."""
        body = _memory(pid, address, min(n_bytes, 128))
        self._check_still(told)
        family = int.from_bytes(body[:2], sys.byteorder)
        with self._to_gateway(body) if family == socket.AF_INET else self._to_local(pid, body) as made:
            flags = _flags_of(pid, number)
            made.setblocking(not flags & os.O_NONBLOCK)
            added = _ADDED.pack(told, _AT_THAT_NUMBER, made.fileno(), _number(number), flags & _CLOSE_ON_EXEC)
            self._tell(_ADD, added)

    def _to_gateway(self, body: bytes) -> socket.socket:
        if len(body) < _INTERNET_BYTES:
            raise Refused(errno.EINVAL, "no address")
        if (body[4:8], int.from_bytes(body[2:4], "big")) != self._asked_for:
            raise Refused(errno.ENETUNREACH, "not the gateway")
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.settimeout(CONNECT_S)
            made.connect(self._gateway)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            made.close()
            raise Refused(errno.ECONNREFUSED, "no gateway") from error
        return made

    def _to_local(self, pid: int, body: bytes) -> socket.socket:
        path = body[_LOCAL_PATH_AT:].partition(b"\0")[0]
        if int.from_bytes(body[:2], sys.byteorder) != socket.AF_UNIX or not path:
            raise Refused(errno.EPERM, "another family, or an abstract name")
        place = self._place(pid, _HERE, path, is_followed=True)
        try:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.settimeout(CONNECT_S)
            try:
                made.connect(f"/proc/self/fd/{place}")
            except OSError:
                made.close()
                raise
            return made
        finally:
            os.close(place)

    def _chmod(self, told: int, pid: int, path: int, mode: int, *_: int) -> None:
        self._set_mode(told, pid, _HERE, _text(pid, path), mode, 0)

    def _fchmod(self, told: int, pid: int, number: int, mode: int, *_: int) -> None:
        self._set_mode(told, pid, number, b"", mode, _EMPTY_PATH)

    def _fchmodat(self, told: int, pid: int, folder: int, path: int, mode: int, flags: int, *_: int) -> None:
        self._set_mode(told, pid, folder, _text(pid, path), mode, flags)

    def _set_mode(self, told: int, pid: int, folder: int, path: bytes, mode: int, flags: int) -> None:
        if mode & (stat.S_ISUID | stat.S_ISGID):
            raise Refused(errno.EPERM, "rights for whoever starts it")
        place = self._place(pid, folder, path, is_followed=True)
        try:
            self._check_still(told)
            os.chmod(f"/proc/self/fd/{place}", mode & 0o1777)
        finally:
            os.close(place)

    def _utimensat(self, told: int, pid: int, folder: int, path: int, times: int, flags: int, *_: int) -> None:
        name = _text(pid, path) if path else b""
        place = self._place(pid, folder, name, is_followed=not flags & _NO_FOLLOW)
        try:
            both = _memory(pid, times, 32) if times else None
            self._check_still(told)
            target = f"/proc/self/fd/{place}".encode()
            if _libc.utimensat(ctypes.c_int(_HERE), target, both, ctypes.c_int(0)) < 0:
                raise OSError(ctypes.get_errno(), "utimensat")
        finally:
            os.close(place)

    def _kill(self, told: int, pid: int, target: int, number: int, *_: int) -> None:
        target = _number(target)
        members = self._members()
        self._check_still(told)
        if target > 0:
            _check_in(target, members)
            os.kill(target, number)
            return
        if target == -1:
            raise Refused(errno.EPERM, "all processes")
        # A group has one session, and none of the job's goes beyond the job: one member of it tells for all.
        group = -target or os.getpgid(pid)
        _check_in(group, {_group_of(member) for member in members})
        os.killpg(group, number)

    def _tgkill(self, told: int, _: int, target: int, thread: int, number: int, *__: int) -> None:
        _check_in(_number(target), self._members())
        self._check_still(told)
        call = ctypes.c_long(fence_filter.NUMBERS[os.uname().machine]["tgkill"])
        if _libc.syscall(call, *(ctypes.c_int(_number(value)) for value in (target, thread, number))) < 0:
            raise OSError(ctypes.get_errno(), "tgkill")

    def _place(self, pid: int, folder: int, path: bytes, *, is_followed: bool) -> int:
        """What lies there, as a descriptor of ours, if it is in a folder of the job's own."""
        base = f"/proc/{pid}/cwd" if _number(folder) == _HERE else f"/proc/{pid}/fd/{_number(folder)}"
        if path.startswith(b"/proc/self/"):
            path = f"/proc/{pid}/".encode() + path.removeprefix(b"/proc/self/")
        whole = os.path.join(os.fsencode(base), path) if path else os.fsencode(base)
        place = os.open(whole, os.O_PATH | os.O_CLOEXEC | (0 if is_followed else os.O_NOFOLLOW))
        real = os.readlink(f"/proc/self/fd/{place}")
        if any(real == own or real.startswith(own + "/") for own in self._own):
            return place
        os.close(place)
        raise Refused(errno.EPERM, "not in a folder of its own")

    def _check_still(self, told: int) -> None:
        """That the one whose memory was read is the one who asks: else its number is another's by now."""
        self._tell(_IS_VALID, struct.pack("Q", told))

    def _tell(self, request: int, body: bytes) -> int:
        return int(fcntl.ioctl(self._listener, request, bytearray(body), True))


def _memory(pid: int, address: int, n_bytes: int) -> bytes:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, n_bytes, address)
    finally:
        os.close(memory)


def _text(pid: int, address: int) -> bytes:
    """The path at that address, to its end; what lies behind the next page may not be there."""
    found = b""
    while len(found) < _MOST_PATH:
        piece = _memory(pid, address + len(found), _PAGE - (address + len(found)) % _PAGE)
        text, end, _ = piece.partition(b"\0")
        found += text
        if end or not piece:
            return found
    raise Refused(errno.ENAMETOOLONG, "a path without end")


def _flags_of(pid: int, number: int) -> int:
    with open(f"/proc/{pid}/fdinfo/{_number(number)}", "rb") as file:
        return next(int(line.split()[1], 8) for line in file if line.startswith(b"flags:"))


def _number(value: int) -> int:
    """An argument as the kernel reads an int."""
    return ctypes.c_int(value & 0xFFFFFFFF).value


def _group_of(pid: int) -> int:
    """0: it has ended."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _check_in(asked: int, allowed: set[int]) -> None:
    if asked <= 0 or asked not in allowed:
        raise Refused(errno.EPERM, "a process that is not the job's")

"""Landlock: what this process may still do with files, TCP ports and other processes, as the kernel holds it to it.

For good, for it and all that it starts; no right is needed. Standard library only, and quick to import: the scorer and
the supervisors use it. Source: landlock(7), linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_AND_MAKE = 0x1FF0
"""Remove folders and files; make folders, files, sockets, pipes, links, and device nodes, which take a right anyway."""
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _REMOVE_AND_MAKE | _REFER | _TRUNCATE
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_SINCE = {1: 0x1FFF, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
"""The version of Landlock that first knew a right on files."""
NETWORK_SINCE, SIGNALS_SINCE = 4, 6
_BIND_AND_CONNECT_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version that the kernel offers, which tells what it can hold back (3: all of files); 0: none."""
    found = int(_libc.syscall(ctypes.c_long(_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION)))
    return max(0, found)


def restrict(
    *,
    read: Iterable[str] = (),
    write: Iterable[str] = (),
    execute: Iterable[str] = (),
    devices: Iterable[str] = (),
    unlisted: Iterable[str] = (),
    listed: Iterable[str] = (),
    no_tcp: bool = False,
    no_signals: bool = False,
) -> None:
    """Leave this thread these paths, with all below them, and no other file; a path that does not exist is left out.

    `write` and `execute` are read as well; `devices` are read, written and controlled; `unlisted` are folders to write
    in whose files only those can use who know their names; of `listed` ones the names can be listed alone. `no_tcp`
    takes TCP alone: of UDP Landlock knows nothing. `no_signals` takes signals to processes outside, and their abstract
    sockets. Whatever is open stays open, and neither looking at names and attributes (stat) nor changing attributes
    (chmod, utime) is held back, nor connecting to a local socket by its path. Processes outside can not be traced from
    then on.

    Raises:
        OSError: the kernel has no Landlock, or one that does not know what is asked for; nothing was restricted.
    """
    version = abi()
    for is_asked, what, since in ((no_tcp, "TCP", NETWORK_SINCE), (no_signals, "signals", SIGNALS_SINCE)):
        if is_asked and version < since:
            raise OSError(errno.EOPNOTSUPP, f"Landlock can not hold back {what}: it has version {version}, not {since}")
    handled = sum(rights for since, rights in _SINCE.items() if since <= version)
    fields = [handled, _BIND_AND_CONNECT_TCP if no_tcp else 0, _ABSTRACT_SOCKETS_AND_SIGNALS if no_signals else 0]
    known = fields[: 3 if version >= SIGNALS_SINCE else 2 if version >= NETWORK_SINCE else 1]
    request = struct.pack(f"{len(known)}Q", *known)
    rules = _check(_libc.syscall(ctypes.c_long(_CREATE), request, ctypes.c_size_t(len(request)), ctypes.c_uint(0)))
    try:
        granted = ((read, _READ), (write, _WRITE), (execute, _READ | _EXECUTE), (devices, _DEVICE))
        for paths, rights in (*granted, (unlisted, _WRITE & ~_READ_DIR), (listed, _READ_DIR)):
            for path in paths:
                _grant(rules, path, rights & handled)
        forbid_new_rights()
        _check(_libc.syscall(ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(rules), ctypes.c_uint(0)))
    finally:
        os.close(rules)


def forbid_new_rights() -> None:
    """From here on, no program that is executed has more rights than this process: else it may not be restricted."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, *(ctypes.c_ulong(value) for value in (1, 0, 0, 0))))


def _grant(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & _OF_A_FILE
        rule = struct.pack("=Qi", allowed, place)
        arguments = (ctypes.c_int(rules), ctypes.c_int(_BENEATH), rule, ctypes.c_uint(0))
        _check(_libc.syscall(ctypes.c_long(_ADD_RULE), *arguments))
    finally:
        os.close(place)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result

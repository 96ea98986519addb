"""Run inside a sealed job: tries to get out, and prints one JSON line per attempt: its name, and how it was stopped.

`escaped` means that nothing stopped it. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
LIBC_MOUNT, UNSHARE, SETNS = libc.mount, libc.unshare, libc.setns
secret, other_job, server_pid, outside_port, attempt = sys.argv[1:6]


def call(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")


def number(x86: int, arm: int) -> int:
    return x86 if os.uname().machine == "x86_64" else arm


def touch(path: str, mode: str = "r") -> None:
    with open(path, mode):
        pass


def connect(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=2.0)


def through_a_link() -> None:
    os.symlink(secret, "link")
    open("link").close()


def setuid_program() -> None:
    os.setuid(0)


def kernel_setting() -> None:
    with open("/proc/sys/kernel/core_pattern", "w") as file:
        file.write("|/tmp/x")


def write_init_memory() -> None:
    open("/proc/1/mem", "r+b").close()


def list_own_records() -> None:
    open(os.path.join(attempt, "order.json")).close()


def write_own_end() -> None:
    open(os.path.join(attempt, "exit.json"), "w").close()


def kill_init() -> None:
    os.kill(1, signal.SIGKILL)  # Of the same user it may; of its own namespace's first process the kernel ignores it.
    time.sleep(0.05)
    raise OSError("we still run, so the init does")


def more_memory_of_init() -> None:
    os.listdir("/proc/1/fd")


ATTEMPTS: dict[str, Callable[[], object]] = {
    "read /etc/shadow": lambda: touch("/etc/shadow"),
    "read a private file": lambda: touch(secret),
    "read another job's file": lambda: touch(other_job),
    "read a private file through a link": through_a_link,
    "read it through the init's root": lambda: touch(f"/proc/1/root{secret}"),
    "read its own order": list_own_records,
    "forge its own end": write_own_end,
    "write to the system": lambda: touch("/usr/lib/x", "w"),
    "write to the root": lambda: touch("/x", "w"),
    "write to its Python": lambda: touch(os.path.join(sys.prefix, "x"), "w"),
    "set what the kernel does": kernel_setting,
    "make a device node": lambda: call(libc.mknod(b"/tmp/sda", 0o60600, 0xFE00)),
    "open a disk": lambda: touch("/dev/vda", "rb"),
    "read the machine's memory": lambda: touch("/dev/mem", "rb"),
    "reach a server on the machine": lambda: connect("127.0.0.1", int(outside_port)),
    "reach the internet": lambda: connect("192.0.2.1", 80),
    "open a raw packet socket": lambda: socket.socket(17, socket.SOCK_RAW, 0),
    "open a vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "trace the init": lambda: call(libc.ptrace(16, 1, 0, 0)),
    "write the init's memory": write_init_memory,
    "see the init's files": more_memory_of_init,
    "signal the init": kill_init,
    "signal the server": lambda: os.kill(int(server_pid), signal.SIGTERM),
    "become root": setuid_program,
    "mount": lambda: call(LIBC_MOUNT(b"tmpfs", b"/tmp", b"tmpfs", 0, None)),
    "change the root": lambda: os.chroot("/tmp"),
    "make a user namespace": lambda: call(UNSHARE(0x10000000)),
    "enter the init's namespace": lambda: call(SETNS(0, 0)),
    "load a program into the kernel": lambda: call(libc.syscall(number(321, 280), 0, 0, 0)),
    "use io_uring": lambda: call(libc.syscall(425, 1, 0)),
}
"""Thirty. What is stopped by which layer is in test_escapes.py."""

for name, attempt_it in ATTEMPTS.items():
    try:
        attempt_it()
        told = "escaped"
    except OSError as error:
        told = type(error).__name__ if error.errno is None else f"errno {error.errno}"
    print(json.dumps([name, told]), flush=True)

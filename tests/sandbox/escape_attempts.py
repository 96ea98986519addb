"""Run inside a sealed job: tries to get out, and prints one JSON line per attempt: its name, and how it was stopped.

`escaped` means that nothing stopped it. What there is outside, and which are to be tried, is told by `outside.json`,
beside it. Standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
with open(os.path.join(os.path.dirname(__file__), "outside.json")) as told_outside:
    outside: dict[str, Any] = json.load(told_outside)
secret, server, port = outside["secret"], int(outside["server"]), int(outside["port"])
FAR = ("192.0.2.1", 8080)
init = os.getppid()
own_folder = tempfile.gettempdir()


def call(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def number(x86: int, arm: int) -> int:
    return x86 if os.uname().machine == "x86_64" else arm


def touch(path: str, mode: str = "r") -> None:
    with open(path, mode):
        pass


def make(path: str) -> None:
    touch(path, "w")
    os.remove(path)


def connect(host: str, number: int) -> None:
    with socket.socket() as asker:
        asker.settimeout(2.0)
        asker.connect((host, number))


def through_a_link() -> None:
    os.symlink(secret, "link")
    touch("link")


def modes_through_a_link() -> None:
    os.symlink(secret, "link to modes")
    os.chmod("link to modes", 0o600)


def ask_through_a_link() -> None:
    os.symlink(outside["socket"], "link to a socket")
    local("link to a socket")


def with_the_first_bytes() -> None:
    with socket.socket() as asker:
        asker.sendto(b"x", 0x20000000, ("127.0.0.1", port))


def without_a_connection() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.sendto(b"x", FAR)


def local(address: str, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(socket.AF_UNIX, kind) as asker:
        asker.connect(address)


def local_by_a_pair() -> None:
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"x", outside["datagrams"])


def watch() -> None:
    folder = os.path.dirname(secret).encode()
    call(libc.inotify_add_watch(call(libc.inotify_init()), folder, 0x100))


def kernel_setting() -> None:
    with open("/proc/sys/kernel/core_pattern", "r+") as file:
        was = file.read()
        file.seek(0)
        file.write(was)


def device_node() -> None:
    path = os.path.join(own_folder, "nightlab-disk")
    call(libc.mknod(path.encode(), 0o60600, 0xFE00))
    os.remove(path)


def kill_init() -> None:
    os.kill(
        init, signal.SIGKILL
    )  # Of the same user it may; of its own namespace's first process the kernel ignores it.
    time.sleep(0.05)
    raise OSError("we still run, so the init does")


def signal_by_a_socket() -> None:
    """Whoever owns it is told by a signal that something came, which ends who does not expect it."""
    ours, theirs = socket.socketpair()
    fcntl.fcntl(ours, fcntl.F_SETOWN, server)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    theirs.send(b"x")
    time.sleep(0.05)
    with open(f"/proc/{server}/stat") as file:
        if file.read().rpartition(")")[2].split()[0] != "Z":
            raise OSError("it still runs")


def bounds_of_another() -> None:
    resource.prlimit(server, resource.RLIMIT_CORE, resource.prlimit(server, resource.RLIMIT_CORE))


def become_root() -> None:
    os.setuid(0)
    with open("/proc/self/status") as file:
        if not any(line.startswith("CapEff") and int(line.split()[1], 16) for line in file):
            raise OSError(1, "without root's rights")


def rights_by_a_program() -> None:
    if b"euid=0" not in subprocess.run([outside["program"]], capture_output=True, check=True).stdout:
        raise OSError("it has none")


def shared_memory() -> None:
    found = call(libc.shmget(int(outside["memory"]), 0, 0))
    if libc.shmat(found, None, 0o10000) == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "")


def find_shared_file() -> None:
    if outside["shared_file"] not in os.listdir("/dev/shm"):
        raise OSError("it is not there")


def beyond_its_bound() -> None:
    with open("large", "wb") as file:
        file.truncate(int(outside["file_bound"]) + 1)
    os.remove("large")


def load_a_program() -> None:
    """An array of one entry, which a program could use."""
    wanted = (ctypes.c_uint32 * 16)(2, 4, 4, 1)
    call(libc.syscall(number(321, 280), 0, wanted, ctypes.sizeof(wanted)))


def use_io_uring() -> None:
    call(libc.syscall(425, 1, (ctypes.c_uint32 * 30)()))


def mount() -> None:
    call(libc.mount(b"tmpfs", own_folder.encode(), b"tmpfs", ctypes.c_ulong(0), None))
    call(libc.umount2(own_folder.encode(), 2))


def own_name() -> None:
    name = socket.gethostname().encode()
    call(libc.sethostname(name, len(name)))
    if os.readlink("/proc/self/ns/uts") != outside["names"]:
        raise OSError("it is named for itself alone")


def more_memory() -> None:
    in_a_child(lambda: bytearray(2 * int(outside["memory_bound"])))


def more_processes() -> None:
    children = []
    try:
        for _ in range(int(outside["process_bound"]) + 1):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def in_a_child(act: Callable[[], object]) -> None:
    """What changes the process that does it for good."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except OSError as error:
            os._exit(error.errno or 255)
        except MemoryError:
            os._exit(12)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code != 0:
        raise OSError(code, "")


ATTEMPTS: dict[str, Callable[[], object]] = {
    "read /etc/shadow": lambda: touch("/etc/shadow"),
    "read a private file": lambda: touch(secret),
    "read another job's file": lambda: touch(outside["other_job"]),
    "read a private file through a link": through_a_link,
    "read it through the init's root": lambda: touch(f"/proc/{init}/root{secret}"),
    "read its own order": lambda: touch(os.path.join(outside["attempt"], "order.json")),
    "list a private folder": lambda: os.listdir(os.path.dirname(secret)),
    "watch a private folder": watch,
    "cut a private file": lambda: os.truncate(secret, 3),
    "change a private file's modes": lambda: os.chmod(secret, 0o600),
    "change its modes through a link": modes_through_a_link,
    "change a private file's times": lambda: os.utime(secret),
    "give a private file an attribute": lambda: os.setxattr(secret, "user.nightlab", b"x"),
    "forge its own end": lambda: touch(os.path.join(outside["attempt"], "exit.json"), "a"),
    "write to the system": lambda: make("/usr/lib/nightlab-escape"),
    "write to the root": lambda: make("/nightlab-escape"),
    "write to its Python": lambda: make(os.path.join(sys.prefix, "nightlab-escape")),
    "set what the kernel does": kernel_setting,
    "make a device node": device_node,
    "open a disk": lambda: os.open(outside["disk"], os.O_RDONLY),
    "read the kernel's log": lambda: os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK),
    "find others' shared memory": find_shared_file,
    "attach others' shared memory": shared_memory,
    "reach a server on the machine": lambda: connect("127.0.0.1", port),
    "reach it with the first bytes": with_the_first_bytes,
    "reach the internet": lambda: connect(*FAR),
    "reach it without a connection": without_a_connection,
    "ask a server of its user": lambda: local(outside["socket"]),
    "ask it through a link": ask_through_a_link,
    "ask one by an abstract name": lambda: local("\0" + outside["abstract"]),
    "write to a server of its user": lambda: local(outside["datagrams"], socket.SOCK_DGRAM),
    "write to one from a pair": local_by_a_pair,
    "open a raw packet socket": lambda: socket.socket(17, socket.SOCK_RAW, 0),
    "open a vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "read the server's environment": lambda: touch(f"/proc/{server}/environ"),
    "trace the init": lambda: in_a_child(lambda: call(libc.ptrace(0x4206, init, 0, 0))),
    "write the init's memory": lambda: touch(f"/proc/{init}/mem", "r+b"),
    "see the init's files": lambda: [os.readlink(f"/proc/{init}/fd/{n}") for n in os.listdir(f"/proc/{init}/fd")],
    "signal the server": lambda: os.kill(server, signal.SIGCONT),
    "lower the server's bounds": bounds_of_another,
    "take cores from the server": lambda: os.sched_setaffinity(server, os.sched_getaffinity(server)),
    "become root": lambda: in_a_child(become_root),
    "gain rights by a program": rights_by_a_program,
    "mount": mount,
    "change the root": lambda: in_a_child(lambda: os.chroot(own_folder)),
    "set the machine's name": own_name,
    "make a user namespace": lambda: in_a_child(lambda: call(libc.unshare(0x10000000))),
    "enter the init's network": lambda: in_a_child(
        lambda: call(libc.setns(os.open(f"/proc/{init}/ns/net", os.O_RDONLY), 0))
    ),
    "load a program into the kernel": load_a_program,
    "use io_uring": use_io_uring,
    "make a file beyond its bound": beyond_its_bound,
    "hold more memory than its bound": more_memory,
    "start more processes than its bound": more_processes,
    "signal the server by a socket": signal_by_a_socket,
    "end the init": kill_init,
}
"""The last ones leave nothing to try. What is stopped by which layer is in escape_layers.py."""

if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for name, attempt_it in ATTEMPTS.items():
        if outside["attempts"] is not None and name not in outside["attempts"]:
            continue
        print(json.dumps([name, "escaped"]), end="\r", flush=True)
        try:
            attempt_it()
            told = "escaped"
        except OSError as error:
            told = type(error).__name__ if error.errno is None else f"errno {error.errno}"
        print(json.dumps([name, told]), flush=True)

"""A candidate that tries whatever a candidate may try; and some that are merely broken."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy

print("imported")
LIBC = ctypes.CDLL(None, use_errno=True)


def double(value):
    return value * 2


def same(value):
    return value


def tried(secret: str, scorer: int) -> dict[str, str]:
    """What came of each attempt: `errno N`, or `escaped`."""
    path = Path(secret)
    attempts: dict[str, Callable[[], object]] = {
        "read a private file": path.read_bytes,
        "read it through a link in its own folder": Path("linked").read_bytes,
        "read it below the scorer's root": Path(f"/proc/{scorer}/root{secret}").read_bytes,
        "list the private folder": lambda: os.listdir(path.parent),
        "read the scorer's memory": lambda: os.open(f"/proc/{scorer}/mem", os.O_RDONLY),
        "read the scorer's environment": Path(f"/proc/{scorer}/environ").read_bytes,
        "list the scorer's open files": lambda: os.listdir(f"/proc/{scorer}/fd"),
        "read the scorer's command": Path(f"/proc/{scorer}/cmdline").read_bytes,
        "copy the scorer's memory": lambda: _call("process_vm_readv", 310, 270, scorer, 0, 0, 0, 0, 0),
        "trace the scorer": lambda: _call("ptrace", 101, 117, 16, scorer, 0, 0),
        "signal the scorer": lambda: os.kill(scorer, 0),
        "signal a thread of the scorer": lambda: _call("tkill", 200, 130, scorer, 0),
        "bound the scorer": lambda: _call("prlimit64", 302, 261, scorer, 7, 0, 0),
        "write the private file": lambda: path.write_bytes(b""),
        "delete the private file": path.unlink,
        "change the private file's mode": lambda: path.chmod(0o777),
        "write into its own folder": lambda: Path("made").write_bytes(b""),
        "write beside its scratch folder": lambda: Path(os.environ["TMPDIR"], "..", "made").write_bytes(b""),
        "start a process": os.fork,
        "execute a program": lambda: subprocess.run(["/bin/true"], check=True),
        "open a network socket": socket.socket,
        "open a local socket": lambda: socket.socket(socket.AF_UNIX),
        "share memory by number": lambda: _call("shmget", 29, 194, 7, 4096, 0o1600),
    }
    return {name: _how(attempt) for name, attempt in attempts.items()}


def _how(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return f"errno {error.errno}"
    return "escaped"


def _call(name: str, x86_64: int, aarch64: int, *arguments: int) -> None:
    number = {"x86_64": x86_64, "aarch64": aarch64}[os.uname().machine]
    if LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(value) for value in arguments)) < 0:
        raise OSError(ctypes.get_errno(), name)


def allowed(weights: str) -> list[object]:
    """What every honest model does."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append("thread"))
    thread.start()
    thread.join()
    scratch = Path(os.environ["TMPDIR"], "cache")
    scratch.write_text("scratch")
    os.kill(os.getpid(), 0)
    return [*found, scratch.read_text(), Path(weights).read_text(), os.urandom(4) != os.urandom(4), time.tzname != ()]


def environment() -> dict[str, str]:
    return dict(os.environ)


def print_much() -> int:
    print("noise " * 200_000)
    return 1


def hang() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


def leave() -> None:
    print("leaving")
    os._exit(3)


def exit_politely() -> None:
    sys.exit("done")


def crash() -> None:
    ctypes.string_at(0)


def answer_an_object() -> object:
    return object()


def say(hexadecimal: str) -> None:
    """These bytes in the place of an answer, and no more."""
    os.write(json.loads(sys.argv[1])["answers"], bytes.fromhex(hexadecimal))
    hang()


def say_more() -> int:
    os.write(json.loads(sys.argv[1])["answers"], b"more")
    return 1


def announce(n_bytes: int) -> None:
    say(struct.pack("<4sIQ", b"nlc1", 2, n_bytes).hex())


def flood(shape: list[int]) -> object:
    return numpy.zeros(shape)


def nan() -> object:
    return {"loss": [1.0, float("nan")]}


def pid() -> int:
    return os.getpid()

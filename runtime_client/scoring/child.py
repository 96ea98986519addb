"""The process of a candidate: it shuts itself off, then imports the module and answers until it is asked no more.

Started by `candidate` alone, isolated (`-I`): its interpreter has read the installation and nothing of the candidate
before `confine` has returned. From the import of the module on, nothing that this process says is to be believed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import IO, Any

from runtime_client import landlock

from . import calls, frames

CONFINED, READY, ANSWER, RAISED, REFUSED = "confined", "ready", "answer", "raised", "refused"
"""What a message of this process is about, its first item. CONFINED and REFUSED come before code of the candidate."""
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER = 2
_TOLD_CHARACTERS = 4000
SYSTEM = (
    "/usr", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    "/etc/nsswitch.conf", "/etc/alternatives", "/sys/devices/system/cpu", "/sys/devices/system/node",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems",
    "/proc/sys/vm", "/proc/sys/kernel/cap_last_cap", "/proc/driver/nvidia",
    "/dev/zero", "/dev/random", "/dev/urandom",
)  # fmt: skip
_DEVICES = ("null", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")


def main() -> None:
    order: dict[str, Any] = json.loads(sys.argv[1])
    requests = os.fdopen(order["requests"], "rb")
    answers = os.fdopen(order["answers"], "wb")
    try:
        layers = confine(order)
    except (OSError, KeyError) as error:
        _say(answers, [REFUSED, str(error)])
        return
    _say(answers, [CONFINED, layers])
    try:
        module = _loaded(order["folder"], order["module"])
    except BaseException as error:  # noqa: BLE001 - it is the candidate's, and its scorer is told
        _say(answers, [RAISED, _words(error)])
        return
    _say(answers, [READY])
    while head := requests.read(frames.HEAD.size):
        n_json, n_arrays = frames.sizes(head, sys.maxsize)
        name, *arguments = frames.decode(requests.read(n_json + n_arrays), n_json)
        _write(answers, _answer(module, name, arguments))


def confine(order: dict[str, Any]) -> list[str]:
    """Shut this process off for good; the layers that hold it.

    Raises:
        OSError: the kernel does not let it; KeyError: a kind of machine whose system calls are not known.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _prctl(libc, _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order["parent"]:
        raise OSError("the scorer has ended")
    for kind, bound in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, order["file_bytes"])):
        resource.setrlimit(kind, (bound, bound))
    if order["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (order["memory_bytes"], order["memory_bytes"]))
    _prctl(libc, _PR_SET_NO_NEW_PRIVS, 1)
    layers = []
    if order["level"] == "landlock":
        landlock.restrict(
            read=(*SYSTEM, *_installation(), *order["readable"]),
            write=(order["scratch"],),
            devices=[f"/dev/{name}" for name in (*_DEVICES, *(f"nvidia{index}" for index in range(64)))],
            no_signals=landlock.abi() >= landlock.SIGNALS_SINCE,  # Of older ones the filter keeps them alone.
        )
        layers.append("landlock")
    program = calls.program(os.uname().machine, os.getpid())
    instructions = ctypes.create_string_buffer(program, len(program))
    request = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions)))
    _prctl(libc, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(request))
    return [*layers, "seccomp", "rlimit"]


def _prctl(libc: ctypes.CDLL, option: int, *arguments: int) -> None:
    values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    if libc.prctl(option, *values) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def _installation() -> list[str]:
    """This Python's own folders; what lies elsewhere, an editable installation say, has to be named in `readable`."""
    return sorted({sys.prefix, sys.base_prefix, sys.exec_prefix} - {"/"})


def _loaded(folder: str, name: str) -> ModuleType:
    """The module of that name in the folder, and nowhere else; what it imports is looked for there first."""
    import numpy  # noqa: F401  # The installed one, whatever lies in the folder.

    sys.path.insert(0, folder)
    os.chdir(folder)
    path = os.path.join(folder, *name.split("."))
    found = f"{path}.py" if os.path.isfile(f"{path}.py") else os.path.join(path, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, found)
    if spec is None or spec.loader is None or not os.path.isfile(found):
        raise ImportError(f"there is no {name.replace('.', '/')}.py in {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _answer(module: ModuleType, name: str, arguments: list[object]) -> bytes:
    try:
        function: Callable[..., object] = getattr(module, name)
        return frames.encode([ANSWER, function(*arguments)])
    except BaseException as error:  # noqa: BLE001 - it is the candidate's, a call to exit too, and its scorer is told
        return frames.encode([RAISED, _words(error)])


def _words(error: BaseException) -> str:
    """The end of the traceback without this process's own part of it."""
    return "".join(traceback.format_exception(error))[-_TOLD_CHARACTERS:]


def _say(answers: IO[bytes], value: list[object]) -> None:
    _write(answers, frames.encode(value))


def _write(answers: IO[bytes], message: bytes) -> None:
    answers.write(message)
    answers.flush()


if __name__ == "__main__":
    main()

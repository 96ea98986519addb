"""What the box of a sealed attempt holds: from a job's spec and its node to the record for its supervisor."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import runtime_client
from runtime.engines.sealing import sealing_here
from runtime.model.states import ExitReason
from runtime.node import records
from runtime.node.launch_errors import CannotLaunch
from runtime.sandbox import folders, walls
from runtime_client import landlock
from runtime_client.models import JobSpec, Network

FIRST_UID = 0x70000000
N_UIDS = 2**24
"""Each job has a user of its own, from a range that neither systemd nor container engines give out."""
HOME = "/tmp/home"
PRIVATE, NOTICES = ("home", "tmp"), "told"
"""Folders of a fenced job's box."""
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "hosts", "host.conf", "protocols", "services",
    "localtime", "timezone", "ssl/certs", "ca-certificates", "alternatives", "mime.types", "locale.alias",
)  # fmt: skip
_OF_A_PREFIX = ("bin", "lib", "lib64", "libexec", "include", "share", "etc", "ssl", "pyvenv.cfg", "conda-meta")
_MOST_LINKS = 40
_WORD = re.compile(r"(?<![^\s'\"=;&|(])/[^\s'\"=;&|()<>]+")
"""An absolute path in a command, in shell text too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxFacts:
    """Of one attempt."""

    job_id: str
    folder: Path
    working_folder: Path
    is_own_folder: bool
    """The working folder is the job's own, not one of the user's."""
    checkpoint_dir: Path
    left: Sequence[Path]
    """Folders of the jobs that it waited for."""
    argv: Sequence[str]
    tracking_url: str
    devices: Sequence[int]
    is_accelerator: bool
    n_cores: int
    memory_bytes: int
    """Of the machine."""


def uid_of(job_id: str) -> int:
    """The same for all attempts of a job, so that a resumed one owns what an earlier one wrote."""
    number = int(job_id[1:]) if re.fullmatch(r"j\d{1,18}", job_id) else zlib.crc32(job_id.encode())
    return FIRST_UID + number % N_UIDS


def box_record(spec: JobSpec, facts: BoxFacts, variables: dict[str, str]) -> dict[str, Any]:
    """The part of the order; `variables` are changed to what holds inside.

    Raises:
        CannotLaunch: (SANDBOX_UNAVAILABLE) it can not be had here; (BAD_COMMAND) something `readable` does not exist.
    """
    sealing = sealing_here()
    if sealing.how is None:
        raise CannotLaunch(ExitReason.SANDBOX_UNAVAILABLE, str(sealing.why_not))
    has_own_user, is_fenced = sealing.how == walls.ROOT, sealing.how == walls.LANDLOCK
    named = [("readable", path) for path in spec.readable]
    named += [] if facts.is_own_folder else [("code_source.root_path", str(facts.working_folder))]
    for name, path in named:
        _check_readable(name, path, has_own_user=has_own_user)
        if not has_own_user:
            _check_apart(name, path, facts.folder)
    memory = _memory(spec, facts)
    root = facts.folder / "box"
    root.mkdir(exist_ok=True, mode=0o711 if is_fenced else 0o700)
    home = str(root / "home") if is_fenced else HOME
    writable = [facts.folder / "ranks", facts.checkpoint_dir]
    writable += [facts.working_folder] if facts.is_own_folder else []
    seen = [*_libraries(), *_programs(facts.argv, variables), *runtime_client.__path__, *spec.readable]
    seen += [] if facts.is_own_folder else [str(facts.working_folder)]
    if is_fenced:
        writable += _own_folders(root)
        seen += [str(root / NOTICES), str(facts.folder / records.HYPERPARAMETERS), "/etc/passwd", "/etc/group"]
    else:
        seen.append(str(facts.folder))
    left = [str(folder) for folder in facts.left if folder.is_dir() and not folder.is_symlink()]
    uid = uid_of(facts.job_id) if has_own_user else os.geteuid()
    gid = uid if has_own_user else os.getegid()
    if has_own_user:
        for folder in writable:
            give(folder, uid)
        _show_attempt(facts.folder, uid)
        for path in left:
            show(Path(path))
    gateway = _inside(spec, facts, variables, home)
    if is_fenced:
        _lead_to_own_folders(spec, root, variables)
    return {
        "level": "sealed",
        "how": sealing.how,
        "abi": landlock.abi(),
        "uid": uid,
        "gid": gid,
        "has_own_user": has_own_user,
        "notices": str(root / NOTICES if is_fenced else facts.folder),
        "emptied": [str(root / name) for name in PRIVATE] if is_fenced else [],
        # Where Python looks for our own package: it asks for names before it opens any.
        "listed": [os.path.dirname(path) for path in runtime_client.__path__] if is_fenced else [],
        "own_output": str(facts.folder / records.LOG),
        "hidden": [] if has_own_user else [str(facts.folder / records.ORDER)],
        "root": str(root),
        "home": home,
        "binds": sorted([[path, False] for path in {*seen, *left}] + [[str(path), True] for path in writable]),
        "without_links": left,
        "writable": [str(path) for path in writable],
        "links": [[f"/{name}", os.readlink(f"/{name}")] for name in _SYSTEM if os.path.islink(f"/{name}")],
        "files": [
            ["/etc/passwd", f"root:x:0:0::/:/bin/false\njob:x:{uid}:{gid}::{HOME}:/bin/sh\n"],
            ["/etc/group", f"root:x:0:\njob:x:{gid}:\n"],
        ],
        "devices": _device_nodes(facts),
        "tmp_bytes": min(spec.limits.disk_bytes, memory // 2),
        "disk_bytes": spec.limits.disk_bytes,
        "network": spec.network.value,
        "gateway": gateway,
        "bounds": {"memory": memory, "pids": spec.limits.processes, "cpu": max(1, facts.n_cores)},
        "rlimits": {
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": spec.limits.open_files,
            "RLIMIT_FSIZE": spec.limits.disk_bytes,
            "RLIMIT_NPROC": spec.limits.processes,
        },
    }


def _check_readable(name: str, path: str, *, has_own_user: bool) -> None:
    """A user of its own is another one than we are. What lies deeper, the job says itself."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise CannotLaunch(ExitReason.BAD_COMMAND, f"{name}: {path!r}: {error.strerror}") from error
    if not has_own_user:
        if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(status.st_mode) else 0)):
            told = f"{name}: {path!r} can not be read by this server's user: let it (chmod u+rX, or for its group)"
            raise CannotLaunch(ExitReason.BAD_COMMAND, told)
        return
    wanted = 0o005 if stat.S_ISDIR(status.st_mode) else 0o004
    if status.st_mode & wanted != wanted:
        advice = "a sealed job runs as a user of its own: let others read it (chmod -R o+rX)"
        raise CannotLaunch(ExitReason.BAD_COMMAND, f"{name}: {path!r} is for its owner alone, and {advice}")


def _check_apart(name: str, path: str, attempt: Path) -> None:
    """Of the same user, a job could read our own tokens and records, where these are below what it is shown."""
    if Path(os.path.realpath(attempt)).is_relative_to(os.path.realpath(path)):
        told = f"{name}: {path!r} holds nightlab's own folder, with its tokens, which a sealed job is not to see"
        advice = "name a folder beside it, or let a snapshot be taken (code_source.snapshot: auto)"
        raise CannotLaunch(ExitReason.BAD_COMMAND, f"{told}: {advice}")


def give(folder: Path, uid: int) -> None:
    """Make a folder of ours the job's, with all that is in it, unless it is already. Nothing of the job runs now.

    Files with further names (of another job's checkpoint, say) are copied: else that one would lose them.
    """
    if folder.lstat().st_uid == uid:
        return
    for place, names in folders.walk(str(folder)):
        for name in names:
            path = Path(place, name)
            status = path.lstat()
            if status.st_nlink > 1 and not path.is_symlink():
                copy = path.with_name(f".{name}.own")
                shutil.copy2(path, copy)
                copy.replace(path)
            os.chown(path, uid, uid, follow_symlinks=False)
        os.chown(place, uid, uid)
    folder.chmod(0o755)


def show(folder: Path) -> None:
    """Let the users of other jobs read what an ended job left, however it made it. Links stay what they are."""
    with contextlib.suppress(folders.TooDeep):  # What no path names is not read either.
        for place, names in folders.walk(str(folder)):
            _let_read(place, 0o555)
            for name in names:
                _let_read(os.path.join(place, name), 0o444)


def _let_read(path: str, mode: int) -> None:
    status = os.lstat(path)
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if is_plain and status.st_mode & mode != mode:
        os.chmod(path, stat.S_IMODE(status.st_mode) | mode)


def _show_attempt(folder: Path, uid: int) -> None:
    """The job may pass through its attempt's folder, which it can not list, to the files that are for it."""
    os.chown(folder, 0, uid)
    folder.chmod(0o710)
    hyperparameters = folder / records.HYPERPARAMETERS
    os.chown(hyperparameters, 0, uid)
    hyperparameters.chmod(0o640)


def _own_folders(box: Path) -> list[Path]:
    """Where a fenced job has no view of its own: what is its home and `/tmp` elsewhere. They are emptied at its end."""
    for name in (*PRIVATE, NOTICES):
        (box / name).mkdir(exist_ok=True, mode=0o755 if name == NOTICES else 0o700)
    return [box / name for name in PRIVATE]


def _lead_to_own_folders(spec: JobSpec, box: Path, variables: dict[str, str]) -> None:
    own = {"TMPDIR": str(box / "tmp"), "NIGHTLAB_PREEMPT_FILE": str(box / NOTICES / records.NOTICE)}
    variables.update({name: value for name, value in own.items() if name not in spec.env_variables})


def _inside(spec: JobSpec, facts: BoxFacts, variables: dict[str, str], home: str) -> list[Any]:
    """Set what is otherwise inside; the gateway's (host, port) outside."""
    own = {"HOME": home, "USER": "job", "LOGNAME": "job"}
    variables.update({name: value for name, value in own.items() if name not in spec.env_variables})
    if "TMPDIR" not in spec.env_variables:
        variables.pop("TMPDIR", None)
    url = urlsplit(facts.tracking_url)
    gateway = [url.hostname or "127.0.0.1", url.port or 80]
    if spec.network is Network.NONE:
        variables["MLFLOW_TRACKING_URI"] = urlunsplit(url._replace(netloc=f"127.0.0.1:{gateway[1]}"))
    return gateway


def _memory(spec: JobSpec, facts: BoxFacts) -> int:
    if spec.limits.memory_bytes is not None:
        return spec.limits.memory_bytes
    if spec.compute.memory_gb is not None:
        return int(spec.compute.memory_gb * 10**9 * max(1, len(facts.devices)))
    return facts.memory_bytes * 3 // 4


def _libraries() -> list[str]:
    found = ["/usr", "/sys/devices/system/cpu", "/sys/devices/system/node", *(f"/etc/{name}" for name in _ETC)]
    return [*found, *(f"/{name}" for name in _SYSTEM if not os.path.islink(f"/{name}"))]


def _programs(argv: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The installations that the job's programs are of: each link on the way to an interpreter may be in another.

    Its programs are what the command begins with, those that it names by their whole path, and `python`.
    """
    found: list[str] = []
    named = [word for part in argv for word in _WORD.findall(part)]
    for name in (argv[0], *named, "python", "python3"):
        path = shutil.which(name, path=variables["PATH"])
        for _ in range(_MOST_LINKS):
            if path is None or not os.path.isfile(path):  # A socket may be as executable as a program.
                break
            found += _installation(Path(path))
            path = os.path.join(os.path.dirname(path), os.readlink(path)) if os.path.islink(path) else None
    return found


def _installation(program: Path) -> list[str]:
    """The parts of the folder above `bin` that belong to a Python; of another program, its file alone."""
    prefix = Path(os.path.normpath(program)).parent.parent
    if prefix.is_relative_to("/usr") or str(prefix) == "/":
        return []
    is_python = (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir()
    if not is_python and not any((prefix / "lib").glob("python3*")):
        return [os.path.normpath(program)]
    return [str(prefix / name) for name in _OF_A_PREFIX if (prefix / name).exists()]


def _device_nodes(facts: BoxFacts) -> list[str]:
    """Below /dev; those of the attempt's own cards alone."""
    if not facts.is_accelerator:
        return []
    return [*(f"nvidia{index}" for index in facts.devices), "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]

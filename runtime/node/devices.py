"""What this machine has to offer: accelerators, CPU slots, or pretend devices for trying and testing."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

from runtime.model.nouns import Device

ALLOWED = "'auto', 'cpu:N' (such as cpu:4), 'fake:NxKIND' (such as fake:8xH100 or fake:2xH100+2xA100)"
_MOST = 4096
_FAKE_MEMORY_MB = 80 * 1024
_NOISE = re.compile(
    r"\b(NVIDIA|Tesla|GeForce|Quadro|SXM\d*|PCIe|NVL\d*|HBM\d*e?|\d+ ?GB|Graphics|Device|Generation|Ada)\b",
    re.IGNORECASE,
)


def find_devices(text: str, environ: Mapping[str, str]) -> tuple[Device, ...]:
    """The devices that `text` asks for.

    `auto`: the NVIDIA devices (those in CUDA_VISIBLE_DEVICES of `environ`, where it is set), else one CPU slot per
    usable core. Raises ValueError with what is allowed.
    """
    kind, _, amount = text.strip().partition(":")
    if kind == "auto" and not amount:
        return _nvidia_devices(environ) or _cpu_slots(usable_cores())
    if kind == "cpu":
        return _cpu_slots(_count(amount, text))
    if kind == "fake" and amount:
        return _fake_devices(amount, text)
    raise ValueError(f"devices {text!r} are not known: use {ALLOWED}")


def accelerator_name(product: str) -> str:
    """The short model name: `NVIDIA H100 80GB HBM3` is `H100`, `NVIDIA A100-SXM4-40GB` is `A100`."""
    words = _NOISE.sub(" ", product.replace("-", " ")).split()
    return "".join(words) or product.strip()


def usable_cores() -> int:
    """Cores that this process may use: its affinity, bounded by the quota of its control group."""
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup_quota()
    return max(1, min(cores, math.floor(quota))) if quota is not None else cores


def memory_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1024 * 1024)


def _count(amount: str, text: str) -> int:
    count = int(amount) if amount.isascii() and amount.isdigit() else 0
    if not 1 <= count <= _MOST:
        raise ValueError(f"devices {text!r}: {amount!r} is no number of devices from 1 to {_MOST}; use {ALLOWED}")
    return count


def _cpu_slots(count: int) -> tuple[Device, ...]:
    return tuple(Device(index=i, kind="cpu", uuid=f"cpu-{i}") for i in range(count))


def _fake_devices(amount: str, text: str) -> tuple[Device, ...]:
    kinds: list[str] = []
    for part in amount.split("+"):
        match = re.fullmatch(r"(\d+)x([A-Za-z][A-Za-z0-9_.\-]*)", part.strip())
        if match is None or match[2].lower() == "cpu":
            raise ValueError(f"devices {text!r}: {part!r} is not of the form 8xH100; use {ALLOWED}")
        kinds += [match[2]] * _count(match[1], text)
    _count(str(len(kinds)), text)
    return tuple(
        Device(index=i, kind=kind, uuid=f"fake-{i}", memory_mb=_FAKE_MEMORY_MB, is_fake=True)
        for i, kind in enumerate(kinds)
    )


def _nvidia_devices(environ: Mapping[str, str]) -> tuple[Device, ...]:
    """Through NVML; none when there is no driver."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # An old distribution of the same module says that it is old.
        import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        found: list[Device] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            found.append(
                Device(
                    index=index,
                    kind=accelerator_name(_text(pynvml.nvmlDeviceGetName(handle))),
                    uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                    memory_mb=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total) // (1024 * 1024),
                )
            )
    finally:
        pynvml.nvmlShutdown()
    return visible(tuple(found), environ.get("CUDA_VISIBLE_DEVICES"))


def visible(devices: tuple[Device, ...], wanted: str | None) -> tuple[Device, ...]:
    """Those that CUDA_VISIBLE_DEVICES names, by index or uuid; all when it is not set."""
    if wanted is None:
        return devices
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    return tuple(
        d for d in devices if any(name == str(d.index) or (len(name) > 4 and d.uuid.startswith(name)) for name in names)
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _cgroup_quota() -> float | None:
    """Cores by the control group's quota (version 2, then 1); None: no limit, or not told."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass  # Not version 2.
    try:
        limit_us = int(Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").read_text())
        period_us = int(Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return limit_us / period_us if limit_us > 0 and period_us > 0 else None

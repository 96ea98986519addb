"""Device texts, accelerator names, and what this machine tells."""

from __future__ import annotations

import pytest

from runtime.model.nouns import Device
from runtime.node.devices import accelerator_name, find_devices, memory_mb, usable_cores, visible


def test_cpu_slots_are_counted() -> None:
    assert [(d.index, d.kind, d.is_fake) for d in find_devices("cpu:3", {})] == [(i, "cpu", False) for i in range(3)]


def test_fake_devices_can_be_of_several_kinds() -> None:
    found = find_devices("fake:2xH100+1xA100", {})
    assert [(d.index, d.kind, d.is_fake) for d in found] == [(0, "H100", True), (1, "H100", True), (2, "A100", True)]
    assert len({d.uuid for d in found}) == 3


@pytest.mark.parametrize(
    "text",
    [
        *("", "gpu", "cpu", "cpu:0", "cpu:-1", "cpu:x", "cpu:5000", "cpu:²", "auto:2", "nvidia:1"),
        *("fake:", "fake:8", "fake:xH100", "fake:0xH100", "fake:1xcpu", "fake:1xH100+", "fake:3000xA+3000xB"),
    ],
)
def test_other_texts_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="fake:8xH100") as caught:
        find_devices(text, {})
    assert repr(text) in str(caught.value)


def test_auto_finds_something() -> None:
    found = find_devices("auto", {})
    assert found
    assert [d.index for d in found] == sorted({d.index for d in found})


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA H200", "H200"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla T4", "T4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX6000"),
        ("NVIDIA H100 NVL", "H100"),
        ("NVIDIA GH200 480GB", "GH200"),
    ],
)
def test_accelerator_names_are_short(product: str, name: str) -> None:
    assert accelerator_name(product) == name


def test_cuda_visible_devices_limits_what_is_offered() -> None:
    devices = tuple(Device(index=i, kind="H100", uuid=f"GPU-{i}aaaa") for i in range(4))
    assert visible(devices, None) == devices
    assert [d.index for d in visible(devices, "2, 0")] == [0, 2]
    assert [d.index for d in visible(devices, "GPU-3aa")] == [3]
    assert visible(devices, "") == ()


def test_machine_has_cores_and_memory() -> None:
    assert usable_cores() >= 1
    assert memory_mb() > 100

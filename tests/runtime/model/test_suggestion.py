"""What is proposed after running out of memory."""

from __future__ import annotations

import pytest

from runtime.model.states import ExitReason
from runtime.model.suggestion import suggest

DEVICE, HOST = ExitReason.OUT_OF_MEMORY_DEVICE, ExitReason.OUT_OF_MEMORY_HOST


@pytest.mark.parametrize(
    ("reason", "parameters", "change"),
    [
        (DEVICE, {"lr": 0.1, "batch_size": 64}, ("batch_size", 64, 32)),
        (DEVICE, {"per_device_train_batch_size": 3}, ("per_device_train_batch_size", 3, 1)),
        (DEVICE, {"data": {"bs": 8}}, ("data.bs", 8, 4)),
        (DEVICE, {"max_seq_len": 4096, "lr": 1}, ("max_seq_len", 4096, 2048)),
        (DEVICE, {"max_seq_len": 4096, "batch_size": 2}, ("batch_size", 2, 1)),
        (DEVICE, {"max_seq_len": 4096, "batch_size": 1}, ("max_seq_len", 4096, 2048)),
        (HOST, {"batch_size": 64, "num_workers": 8}, ("num_workers", 8, 4)),
        (HOST, {"batch_size": 64}, ("batch_size", 64, 32)),
    ],
)
def test_the_gentlest_change_that_looks_like_memory_is_proposed(
    reason: ExitReason, parameters: dict[str, object], change: tuple[str, int, int]
) -> None:
    found = suggest(reason, parameters)
    assert found is not None
    assert (found.change, found.old, found.new) == change
    assert found.factor == 0.5


@pytest.mark.parametrize(
    ("reason", "parameters"),
    [
        (DEVICE, {"lr": 0.1}),
        (DEVICE, {"batch_size": True}),
        (DEVICE, {"batch_size": "large"}),
        (DEVICE, {"batch_size": 1}),
        (DEVICE, {"minibatches_seen": 100}),
        (ExitReason.CODE_ERROR, {"batch_size": 64}),
        (None, {"batch_size": 64}),
    ],
)
def test_nothing_is_proposed_where_nothing_looks_like_it(
    reason: ExitReason | None, parameters: dict[str, object]
) -> None:
    assert suggest(reason, parameters) is None

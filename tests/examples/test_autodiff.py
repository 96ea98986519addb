"""Derivatives of the examples' tensors, against differences of small steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from code_tasks import CODE

STEP = 1e-5


@pytest.fixture(scope="module")
def autodiff() -> Any:
    with pytest.MonkeyPatch.context() as here:
        here.syspath_prepend(str(CODE))
        import autodiff

        yield autodiff
    for name in [name for name in sys.modules if name.split(".")[0] == "autodiff"]:
        del sys.modules[name]


A, B, ROW, SQUARE = (3, 4), (4, 2), (4,), (2, 3, 3)
FUNCTIONS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "sum of products, broadcast": ((A, ROW), lambda a, row: (a * row + row - a).sum()),
    "a number on the left": ((A,), lambda a: (2.0 - 1.0 / a + 3.0 * a).sum()),
    "quotient": ((A, (3, 1)), lambda a, column: (a / column).sum()),
    "matrices": ((A, B), lambda a, b: ((a @ b) ** 2).sum()),
    "batches of matrices": ((SQUARE, SQUARE), lambda a, b: ((a @ b) ** 3).sum()),
    "batch and one matrix": (((2, 3, 4), B), lambda a, b: ((a @ b) ** 2).sum()),
    "mean over a dimension": ((A,), lambda a: (a.mean(0) ** 2).sum()),
    "mean that keeps it": ((A,), lambda a: (a * a.mean(-1, keepdim=True)).sum()),
    "highest": ((A,), lambda a: (a.amax(-1) ** 2).sum() + (a.amax(0, keepdim=True) * a).sum()),
    "curves": ((A,), lambda a: (a.tanh() * a.sigmoid() + a.exp() * a.log() + a.sqrt()).sum()),
    "relu": ((A,), lambda a: ((a - 1.0).relu() ** 2).sum()),
    "softmax": ((A, A), lambda a, b: (a.softmax(-1) * b).sum() + (a.log_softmax(0) * b).sum()),
    "picked rows, twice": ((A,), lambda a: (a[np.array([0, 2, 0])] ** 2).sum()),
    "picked from each row": ((A,), lambda a: (a[np.arange(3), np.array([1, 3, 1])] ** 2).sum()),
    "reshaped and turned": ((A, A), lambda a, b: (a.reshape(4, 3).transpose(0, 1) * b**2).sum()),
    "masked": ((A,), lambda a: (a.masked_fill(a.new_tensor(np.tri(3, 4)) > 0, -5.0).softmax(-1) ** 2).sum()),
    "used twice": ((A,), lambda a: (a * a + a).mean() * a.sum()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_small_differences(autodiff: Any, name: str) -> None:
    shapes, function = FUNCTIONS[name]
    random = np.random.default_rng(len(name))
    arrays = [random.uniform(0.5, 1.5, shape) for shape in shapes]
    tensors = [autodiff.Tensor(array.copy(), requires_grad=True) for array in arrays]
    function(*tensors).backward()
    for i, array in enumerate(arrays):
        for place in np.ndindex(array.shape):
            around = []
            for change in (STEP, -STEP):
                moved = [a.copy() for a in arrays]
                moved[i][place] += change
                around.append(function(*map(autodiff.Tensor, moved)).item())
            assert tensors[i].grad[place] == pytest.approx((around[0] - around[1]) / (2 * STEP), rel=1e-4, abs=1e-7)


def test_parts_of_a_joined_tensor_get_their_own_derivatives(autodiff: Any) -> None:
    first, second = (autodiff.Tensor(np.ones((2, n)), requires_grad=True) for n in (1, 2))
    (autodiff.cat([first, second], -1) * autodiff.Tensor([[1.0, 2.0, 3.0]] * 2)).sum().backward()
    assert first.grad.tolist() == [[1.0]] * 2
    assert second.grad.tolist() == [[2.0, 3.0]] * 2


def test_constants_get_no_derivative_and_floats_stay_as_narrow_as_they_were(autodiff: Any) -> None:
    weight = autodiff.Tensor(np.ones(3, np.float32), requires_grad=True)
    constant = weight.new_tensor([1, 2, 3])
    result = (weight * constant * 0.5 + 1.0).mean()
    result.backward()
    assert constant.grad is None
    assert result.data.dtype == weight.grad.dtype == np.float32

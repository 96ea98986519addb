"""The code tasks on torch: the same files, the same derivatives, and training that works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from code_tasks import CODE, Copy
from test_autodiff import FUNCTIONS

from agent.task_file import load_task

torch = pytest.importorskip("torch", reason="torch is not installed")
QUICK = {
    "charlm": ("--steps", "100"),
    "sft": ("--steps", "100"),
    "preference": ("--steps", "20"),
    "policy": ("--updates", "20"),
}


@pytest.fixture(scope="module")
def numpy_tensor() -> Any:
    with pytest.MonkeyPatch.context() as here:
        here.syspath_prepend(str(CODE))
        import autodiff

        yield autodiff.Tensor


@pytest.mark.training
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_those_of_torch(numpy_tensor: Any, name: str) -> None:
    shapes, function = FUNCTIONS[name]
    random = np.random.default_rng(7)
    arrays = [random.uniform(0.5, 1.5, shape) for shape in shapes]
    ours = [numpy_tensor(array.copy(), requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    results = (function(*ours), function(*theirs))
    for result in results:
        result.backward()
    assert results[0].item() == pytest.approx(results[1].item())
    for one, other in zip(ours, theirs, strict=True):
        assert np.allclose(one.grad, other.grad.numpy())


def weights_of(folder: Path, task: str, device: str) -> dict[str, np.ndarray]:
    copy = Copy(folder)
    copy.train(task, 3, "--device", device, *QUICK[task])
    with np.load(copy.folder / "model.npz") as left:
        return {name: left[name] for name in left.files}


@pytest.mark.training
@pytest.mark.parametrize("task", QUICK)
def test_torch_comes_to_the_weights_that_numpy_comes_to(task: str, tmp_path: Path) -> None:
    ours, theirs = (weights_of(tmp_path / device, task, device) for device in ("numpy", "cpu"))
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert np.allclose(array, theirs[name], atol=0.02), name


def options(task: str) -> list[str]:
    """As the task of the GPU gives them, with its fidelity left at that of the training's own."""
    parameters = load_task(CODE / f"{task}.gpu.yaml").job.parameters
    return [word for name, value in parameters.items() for word in (f"--{name}", str(value))]


@pytest.mark.gpu
def test_tasks_train_on_a_gpu_and_are_scored(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU here")
    for task in QUICK:
        objective = load_task(CODE / f"{task}.gpu.yaml").objective
        copy = Copy(tmp_path / task)
        copy.train(task, 3, *options(task), *QUICK[task])
        value = copy.score(task, objective.metric)
        assert objective.valid.low is not None
        assert objective.valid.high is not None
        assert objective.valid.low <= value <= objective.valid.high

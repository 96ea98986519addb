"""Where tensors live: numpy, which everyone has, or torch on a CPU or a GPU. All else is the tensors' own methods."""

from typing import Protocol

import numpy as np

from autodiff.tensor import Tensor


class Backend(Protocol):
    def tensor(self, array, requires_grad=False):
        """Of 32-bit floats."""

    def integers(self, array):
        """What tensors of this backend can be indexed with."""

    def array(self, tensor) -> np.ndarray:
        """The values of a tensor, or of its `data`."""


class NumpyBackend:
    def tensor(self, array, requires_grad=False):
        return Tensor(np.array(array, np.float32), requires_grad)

    def integers(self, array):
        return np.asarray(array, np.int64)

    def array(self, tensor):
        return tensor.data if isinstance(tensor, Tensor) else np.asarray(tensor)


class TorchBackend:
    def __init__(self, device):
        import torch

        self._torch, self._device = torch, torch.device(device)

    def tensor(self, array, requires_grad=False):
        made = self._torch.tensor(np.asarray(array, np.float32), device=self._device)
        return made.requires_grad_(requires_grad)

    def integers(self, array):
        return self._torch.tensor(np.asarray(array, np.int64), device=self._device)

    def array(self, tensor):
        return tensor.detach().cpu().numpy()


def open_backend(device: str) -> Backend:
    """`numpy`; or, with torch, one of its devices: `cpu`, `cuda`, `cuda:1`."""
    return NumpyBackend() if device == "numpy" else TorchBackend(device)

"""Gradients for small models: tensors on numpy that know their derivatives, and the door to the same on torch.

Model code is written against a few methods that have the same names and meaning in torch, so it runs on both:

    + - * / ** @ > <   x[index]   sum mean amax (dim, keepdim)   exp log sqrt tanh relu sigmoid
    softmax(dim) log_softmax(dim)   reshape(*shape) transpose(a, b)   masked_fill(mask, value)
    new_tensor(array) (a constant)   detach() item() backward() grad data shape   and cat(tensors, dim)
"""

from autodiff.backends import Backend, NumpyBackend, open_backend
from autodiff.tensor import Tensor, cat

__all__ = ["Backend", "NumpyBackend", "Tensor", "cat", "open_backend"]

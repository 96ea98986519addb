"""A tensor on numpy with reverse-mode derivatives: every result remembers what it came from, and how a change of it
reaches there. Only what the examples need, under torch's names."""

import numpy as np


def _fit(gradient, shape):
    """The gradient of a broadcast value, summed to the shape that it was broadcast from."""
    if gradient.shape == shape:
        return gradient
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=stretched, keepdims=True) if stretched else gradient


class Tensor:
    """`data` is an array; `grad` is None until `backward()` of a result that depends on it."""

    __array_priority__ = 1000  # array + tensor is ours
    __slots__ = ("_sources", "data", "grad", "requires_grad")

    def __init__(self, data, requires_grad=False, sources=()):
        self.data = np.asarray(data)
        self.grad = None
        self._sources = tuple(s for s in sources if s[0].requires_grad)
        self.requires_grad = requires_grad or bool(self._sources)

    @property
    def shape(self):
        return self.data.shape

    def item(self):
        return self.data.item()

    def detach(self):
        return Tensor(self.data)

    def new_tensor(self, data):
        return Tensor(np.asarray(data, self.data.dtype))

    def backward(self):
        """Fill in `grad` of all that this single number depends on and that requires it."""
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            tensor, is_done = stack.pop()
            if is_done:
                order.append(tensor)
            elif id(tensor) not in seen:
                seen.add(id(tensor))
                stack.append((tensor, True))
                stack.extend((source, False) for source, _ in tensor._sources)
        gradients = {id(self): np.ones_like(self.data)}
        for tensor in reversed(order):
            gradient = gradients.pop(id(tensor))
            if not tensor._sources:
                tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient
            for source, carry in tensor._sources:
                carried = _fit(carry(gradient), source.shape)
                gradients[id(source)] = gradients[id(source)] + carried if id(source) in gradients else carried

    def _other(self, value):
        return value if isinstance(value, Tensor) else self.new_tensor(value)

    def __add__(self, other):
        other = self._other(other)
        return Tensor(self.data + other.data, sources=[(self, lambda g: g), (other, lambda g: g)])

    def __sub__(self, other):
        other = self._other(other)
        return Tensor(self.data - other.data, sources=[(self, lambda g: g), (other, lambda g: -g)])

    def __mul__(self, other):
        other = self._other(other)
        return Tensor(
            self.data * other.data, sources=[(self, lambda g: g * other.data), (other, lambda g: g * self.data)]
        )

    def __truediv__(self, other):
        other = self._other(other)
        result = self.data / other.data
        return Tensor(result, sources=[(self, lambda g: g / other.data), (other, lambda g: -g * result / other.data)])

    def __pow__(self, power):
        return Tensor(self.data**power, sources=[(self, lambda g: g * power * self.data ** (power - 1))])

    def __gt__(self, other):
        return Tensor(self.data > self._other(other).data)

    def __lt__(self, other):
        return Tensor(self.data < self._other(other).data)

    def __matmul__(self, other):
        other = self._other(other)
        return Tensor(
            self.data @ other.data,
            sources=[
                (self, lambda g: g @ other.data.swapaxes(-1, -2)),
                (other, lambda g: _product_with_transposed(self.data, g, other.data.ndim)),
            ],
        )

    def __neg__(self):
        return self * -1.0

    def __rsub__(self, other):
        return self._other(other) - self

    def __rtruediv__(self, other):
        return self._other(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, index):
        def carry(g):
            whole = np.zeros_like(self.data)
            np.add.at(whole, index, g)
            return whole

        return Tensor(self.data[index], sources=[(self, carry)])

    def sum(self, dim=None, keepdim=False):
        def carry(g):
            return np.broadcast_to(g if dim is None or keepdim else np.expand_dims(g, dim), self.shape)

        return Tensor(self.data.sum(axis=dim, keepdims=keepdim and dim is not None), sources=[(self, carry)])

    def mean(self, dim=None, keepdim=False):
        total = self.sum(dim, keepdim)
        return total * (total.data.size / self.data.size)

    def amax(self, dim, keepdim=False):
        highest = self.data.max(axis=dim, keepdims=True)
        is_highest = self.data == highest
        share = is_highest / is_highest.sum(axis=dim, keepdims=True, dtype=self.data.dtype)

        def carry(g):
            return share * (g if keepdim else np.expand_dims(g, dim))

        return Tensor(highest if keepdim else np.squeeze(highest, dim), sources=[(self, carry)])

    def exp(self):
        result = np.exp(self.data)
        return Tensor(result, sources=[(self, lambda g: g * result)])

    def log(self):
        return Tensor(np.log(self.data), sources=[(self, lambda g: g / self.data)])

    def sqrt(self):
        return self**0.5

    def tanh(self):
        result = np.tanh(self.data)
        return Tensor(result, sources=[(self, lambda g: g * (1 - result * result))])

    def relu(self):
        is_on = self.data > 0
        return Tensor(self.data * is_on, sources=[(self, lambda g: g * is_on)])

    def sigmoid(self):
        result = 0.5 + 0.5 * np.tanh(0.5 * self.data)
        return Tensor(result, sources=[(self, lambda g: g * result * (1 - result))])

    def log_softmax(self, dim):
        shifted = self.data - self.data.max(axis=dim, keepdims=True)
        result = shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))
        return Tensor(result, sources=[(self, lambda g: g - np.exp(result) * g.sum(axis=dim, keepdims=True))])

    def softmax(self, dim):
        return self.log_softmax(dim).exp()

    def reshape(self, *shape):
        return Tensor(self.data.reshape(*shape), sources=[(self, lambda g: g.reshape(self.shape))])

    def transpose(self, first, second):
        return Tensor(self.data.swapaxes(first, second), sources=[(self, lambda g: g.swapaxes(first, second))])

    def masked_fill(self, mask, value):
        filled = np.where(mask.data, np.asarray(value, self.data.dtype), self.data)
        return Tensor(filled, sources=[(self, lambda g: np.where(mask.data, np.zeros_like(g), g))])


def _product_with_transposed(left, gradient, n_dimensions):
    """left^T @ gradient; where the right side of the product was a plain matrix, over all rows in one go."""
    if n_dimensions == 2:
        return left.reshape(-1, left.shape[-1]).T @ gradient.reshape(-1, gradient.shape[-1])
    return left.swapaxes(-1, -2) @ gradient


def cat(tensors, dim):
    """Tensors of numpy, or of torch, one after another along a dimension."""
    tensors = list(tensors)
    if not isinstance(tensors[0], Tensor):
        import torch

        return torch.cat(tensors, dim)
    ends = np.cumsum([t.shape[dim] for t in tensors])

    def part(i):
        return lambda g: np.take(g, range(ends[i] - tensors[i].shape[dim], ends[i]), axis=dim)

    whole = np.concatenate([t.data for t in tensors], axis=dim)
    return Tensor(whole, sources=[(tensor, part(i)) for i, tensor in enumerate(tensors)])

"""Gradients in NumPy: as much of them as the ports of these tests need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Value:
    """An array, and how its gradient goes back to what it was made of."""

    __array_priority__ = 100  # NumPy leaves operators to this class

    def __init__(self, array: Any, parents: Any = ()) -> None:
        self.array = np.asarray(array, np.float64)
        self.parents: list[tuple[Value, Callable[[Any], Any]]] = list(parents)
        self.shape = self.array.shape

    def __add__(self, other: Any) -> Value:
        other = value(other)
        return Value(
            self.array + other.array,
            [
                (self, lambda g: _summed(g, self.shape)),
                (other, lambda g: _summed(g, other.shape)),
            ],
        )

    def __mul__(self, other: Any) -> Value:
        other = value(other)
        return Value(
            self.array * other.array,
            [
                (self, lambda g: _summed(g * other.array, self.shape)),
                (other, lambda g: _summed(g * self.array, other.shape)),
            ],
        )

    def __matmul__(self, other: Any) -> Value:
        other = value(other)

        def to_other(g: Any) -> Any:
            flat = self.array.reshape(-1, self.shape[-1])
            return flat.T @ g.reshape(-1, g.shape[-1])

        return Value(
            self.array @ other.array,
            [(self, lambda g: g @ other.array.T), (other, to_other)],
        )

    def __getitem__(self, key: Any) -> Value:
        def back(g: Any) -> Any:
            whole = np.zeros(self.shape)
            np.add.at(whole, key, g)
            return whole

        return Value(self.array[key], [(self, back)])

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Value:
        return self * -1.0

    def __sub__(self, other: Any) -> Value:
        return self + value(other) * -1.0

    def __rsub__(self, other: Any) -> Value:
        return value(other) + self * -1.0

    def __truediv__(self, other: Any) -> Value:
        return self * function(value(other), lambda x: 1 / x, lambda x, y: -y * y)


def value(x: Any) -> Value:
    return x if isinstance(x, Value) else Value(x)


def _summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of what was broadcast."""
    more = gradient.ndim - len(shape)
    gradient = gradient.sum(tuple(range(more)))
    axes = tuple(n for n, size in enumerate(shape) if size == 1)
    return gradient.sum(axes, keepdims=True).reshape(shape)


def function(x: Any, f: Any, derivative: Any) -> Value:
    x = value(x)
    y = f(x.array)
    return Value(y, [(x, lambda g: g * derivative(x.array, y))])


def gradients(loss: Value, of: dict[str, Value]) -> dict[str, Any]:
    order: list[Value] = []
    visited: set[int] = set()

    def visit(node: Value) -> None:
        if id(node) not in visited:
            visited.add(id(node))
            for parent, _ in node.parents:
                visit(parent)
            order.append(node)

    visit(loss)
    found: dict[int, Any] = {id(loss): np.ones(loss.shape)}
    for node in reversed(order):
        for parent, back in node.parents:
            part = back(found[id(node)])
            found[id(parent)] = found.get(id(parent), 0.0) + part
    return {n: found.get(id(v), np.zeros(v.shape)) for n, v in of.items()}


class NumPy:
    """What a port calls of its framework."""

    name = "numpy"

    def array(self, x: Any) -> Value:
        return Value(x)

    def relu(self, x: Value) -> Value:
        return self.leaky(x, 0.0)

    def leaky(self, x: Value, slope: float) -> Value:
        return function(
            x,
            lambda a: np.where(a > 0, a, slope * a),
            lambda a, _: np.where(a > 0, 1.0, slope),
        )

    def tanh(self, x: Value) -> Value:
        return function(x, np.tanh, lambda _, y: 1 - y * y)

    def sigmoid(self, x: Value) -> Value:
        return function(x, lambda a: 1 / (1 + np.exp(-a)), lambda _, y: y * (1 - y))

    def log(self, x: Value) -> Value:
        return function(x, np.log, lambda a, _: 1 / a)

    def exp(self, x: Value) -> Value:
        return function(x, np.exp, lambda _, y: y)

    def sqrt(self, x: Value) -> Value:
        return function(x, np.sqrt, lambda _, y: 0.5 / y)

    def sum(self, x: Value, axis: Any = None, keepdims: bool = False) -> Value:
        def back(g: Any) -> Any:
            if axis is not None and not keepdims:
                g = np.expand_dims(g, axis)
            return np.broadcast_to(g, x.shape)

        array: Any = x.array
        return Value(array.sum(axis, keepdims=keepdims), [(x, back)])

    def reshape(self, x: Value, shape: Any) -> Value:
        return Value(x.array.reshape(shape), [(x, lambda g: np.reshape(g, x.shape))])

    def transpose(self, x: Value, axes: Any) -> Value:
        back = np.argsort(axes)
        return Value(x.array.transpose(axes), [(x, lambda g: g.transpose(back))])

    def concat(self, values: list[Value], axis: int) -> Value:
        ends = np.cumsum([v.shape[axis] for v in values])[:-1]
        return Value(
            np.concatenate([v.array for v in values], axis),
            [
                (v, lambda g, n=n: np.split(g, ends, axis)[n])
                for n, v in enumerate(values)
            ],
        )

    def stopped(self, x: Value) -> Value:
        return Value(x.array)

    def numpy(self, x: Any) -> Any:
        return x.array if isinstance(x, Value) else np.asarray(x)

    def gradients(self, loss: Any, of: dict[str, Any]) -> dict[str, Any]:
        return gradients(loss, of)

"""Mistakes of porting that other values make: of weights, of a batch, of a gradient.

Each function looks for what a mistake could be made of, and yields variations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hookbridge.reference.variation import Variation

# Ops after which features have the same order.
_SIMPLE = ("Identity", "Relu", "Reshape", "Tanh", "Elu", "LeakyRelu")


def value_variations(copy: Any) -> Iterator[Variation]:
    """All variations of a `GraphCopy` that need no other nodes."""
    for family in (_flattened, _gates, _transposed, _lengths, _untied):
        yield from family(copy)


def _flattened(copy: Any) -> Iterator[Variation]:
    """Yield pictures that are flattened with channels first, all of them or each."""
    variations = list(_each_flattened(copy))
    weights = {name: value for v in variations for name, value in v.weights.items()}
    if len(weights) > 1:
        names = "`, `".join(weights)
        text = f"flattened with channels first: the rows of `{names}`"
        yield Variation("flatten", text, weights=weights)
    yield from variations


def _each_flattened(copy: Any) -> Iterator[Variation]:
    """Yield a picture that is flattened with channels first, before a matrix."""
    for op in copy.ops:
        if op.type != "Reshape" or "gradients" in op.name:
            continue
        before, after = op.inputs[0].shape, op.outputs[0].shape
        if before.rank != 4 or after.rank not in (None, 2):
            continue
        height, width, channels = before.as_list()[1:]
        if None in (height, width, channels) or channels == 1 or height * width == 1:
            continue
        size = height * width * channels
        for name in _matrices_after(copy, op, size):
            order = np.arange(size).reshape(height, width, channels)
            order = order.transpose(2, 0, 1).ravel()
            text = (
                f"flattened with channels first: the rows of `{name}` belong to "
                f"{height} x {width} x {channels}, channels last"
            )
            # Its rows are used in another order; those of the gradient come so too.
            value = np.empty_like(copy.weights[name])
            value[order] = copy.weights[name]
            weights = {name: value}
            yield Variation("flatten", text, weights=weights)


def _matrices_after(copy: Any, op: Any, size: int) -> Iterator[str]:
    """Yield the weights that a flattened picture is multiplied by."""
    products = _products_after(op)
    for read, name in copy.reads.items():
        shape = copy.weights[name].shape
        is_used = any(read in {t.op.name for t in p.inputs} for p in products)
        if is_used and len(shape) == 2 and shape[0] == size:
            yield name


def _products_after(op: Any) -> list[Any]:
    """Return the matrix products that an op's output goes into, through simple ops."""
    todo, products = [op], []
    for _ in range(20):
        if not todo:
            break
        for user in todo.pop().outputs[0].consumers():
            if user.type in ("MatMul", "BatchMatMulV2"):
                products.append(user)
            elif user.type in _SIMPLE:
                todo.append(user)
    return products


def _gates(copy: Any) -> Iterator[Variation]:
    """Yield gates of a recurrent cell in another order, or another forget bias."""
    for names in _cells(copy):
        for order in itertools.permutations(range(4)):
            # Two gates that are swapped, or three.
            if 0 < sum(index != n for index, n in enumerate(order)) < 4:
                yield _in_order(copy, names, order)
        for bias in (n for n in names if copy.weights[n].ndim == 1):
            for block, shift in itertools.product(range(4), (-1.0, 1.0)):
                value = copy.weights[bias].copy()
                np.split(value, 4)[block][:] += shift
                text = f"the forget bias: {shift:+g} in block {block + 1} of `{bias}`"
                yield Variation(
                    "forget bias", f"{text} in the port", weights={bias: value}
                )


def _in_order(copy: Any, names: list[str], order: tuple[int, ...]) -> Variation:
    """Return a cell whose gates the port takes in another order."""
    weights = {}
    for name in names:
        blocks = np.split(copy.weights[name], 4, -1)
        weights[name] = np.concatenate([blocks[n] for n in order], -1)
    gates = ", ".join(str(n + 1) for n in order)
    text = (
        f"the gates of `{names[0]}` are taken in the order {gates} in the port: "
        "TensorFlow 1 has input, new, forget, output; PyTorch and Keras have input, "
        "forget, new, output"
    )
    return Variation("gate order", text, weights=weights)


def _cells(copy: Any) -> Iterator[list[str]]:
    """Yield the weights of each cell with four gates: kernels and their bias."""
    if not any(op.type in ("Split", "SplitV", "BlockLSTM") for op in copy.ops):
        return
    for names in _with_four_blocks(copy):
        shapes = [copy.weights[n].shape for n in names]
        units = shapes[0][-1] // 4
        if any(len(s) == 2 and s[0] >= units for s in shapes):
            yield names


def _with_four_blocks(copy: Any) -> Iterable[list[str]]:
    """Return the weights of a scope whose columns are four blocks, together."""
    groups: dict[tuple[str, int], list[str]] = {}
    for name, value in copy.weights.items():
        columns = value.shape[-1] if value.ndim in (1, 2) else 0
        if name in copy.reads.values() and columns > 4 and columns % 4 == 0:
            scope = name.rpartition("/")[0]
            groups.setdefault((scope, columns), []).append(name)
    return groups.values()


def _transposed(copy: Any) -> Iterator[Variation]:
    """Yield a square matrix that is transposed."""
    for name in sorted(set(copy.reads.values())):
        value = copy.weights[name]
        if value.ndim == 2 and value.shape[0] == value.shape[1] > 1:
            text = f"`{name}` is transposed in the port: [in, out] in TensorFlow"
            yield Variation("transposed", text, weights={name: value.T.copy()})


def _lengths(copy: Any) -> Iterator[Variation]:
    """Yield lengths or a mask that the port does not heed."""
    sizes = {v.shape[1] for v in copy.feeds.values() if np.ndim(v) > 1}
    for name, value in copy.feeds.items():
        array = np.asarray(value)
        if array.ndim == 1 and array.dtype.kind in "iu" and len(array):
            longest = [n for n in sizes if n >= array.max()]
            if longest and array.min() >= 0 and "length" in name.lower():
                plain = name.removesuffix(":0")
                text = f"the mask of lengths: the port does not heed `{plain}`"
                full = np.full_like(array, min(longest))
                yield Variation("mask", text, values={name: full})
        elif _is_mask(name, array):
            text = f"the port does not heed the mask `{name.removesuffix(':0')}`"
            yield Variation("mask", text, values={name: np.ones_like(array)})


def _is_mask(name: str, array: Any) -> bool:
    """Return whether a feed is a mask: by its name, and by zeros and ones."""
    if not array.ndim or set(np.unique(array)) != {0, 1}:
        return False
    return "mask" in name.lower() or "weight" in name.lower()


def _untied(copy: Any) -> Iterator[Variation]:
    """Yield a weight that is used twice, and that the port has twice.

    Its gradient is then that of one use alone. One of two uses may be l2, which is a
    cause by itself.
    """
    by_name = {op.name: op for op in copy.ops}
    for name, tensors in copy.gradients.items():
        op = by_name.get(tensors[0].partition(":")[0])
        if len(tensors) != 1 or op is None or op.type != "AddN" or len(op.inputs) > 3:
            continue
        if any("L2Loss" in t.name or t.op.type == "Mul" for t in op.inputs):
            continue
        for number, part in enumerate(op.inputs):
            text = (
                f"`{name}` is tied in the reference only: its gradient in the port "
                f"comes from use {number + 1} of {len(op.inputs)} only"
            )
            yield Variation("untied weights", text, gradients={name: [part.name]})

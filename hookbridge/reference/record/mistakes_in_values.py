"""Mistakes of porting that other values make: of weights, of a batch, of a gradient.

Each function looks for what a mistake could be made of, and yields variations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hookbridge.ground.protocols import Operation
from hookbridge.ground.walks import reached
from hookbridge.reference.record.graph_gradients import is_of_gradients
from hookbridge.reference.record.variation import Variation

# Ops after which features have the same order.
_SIMPLE = ("Identity", "Relu", "Reshape", "Tanh", "Elu", "LeakyRelu")
# Ops between a cell's weights and the split into its gates.
_BEFORE_A_SPLIT = (
    "MatMul",
    "BatchMatMulV2",
    "Add",
    "AddV2",
    "BiasAdd",
    "Sigmoid",
    "Tanh",
    "Identity",
    "Enter",
    "Reshape",
)


def value_variations(copy: object) -> Iterator[Variation]:
    """Yield all variations of a `GraphCopy` that need no other nodes."""
    for family in (_flattened, _gates, _transposed, _lengths, _untied):
        yield from family(copy)


def _flattened(copy: object) -> Iterator[Variation]:
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


def _matrices_after(copy: Any, op: Operation, size: int) -> Iterator[str]:
    """Yield the weights that a flattened picture is multiplied by."""
    products = _products_after(op)
    for read, name in copy.reads.items():
        shape = copy.weights[name].shape
        is_used = any(read in {t.op.name for t in p.inputs} for p in products)
        if is_used and len(shape) == 2 and shape[0] == size:
            yield name


def _products_after(op: Operation) -> list[Any]:
    """Return the matrix products that an op's output goes into, through simple ops."""

    def users_of_simple(user: Any) -> Iterable[Any]:
        is_passed = user is op or user.type in _SIMPLE
        return user.outputs[0].consumers() if is_passed else ()

    after = reached([op], users_of_simple)
    return [user for user in after if user.type in ("MatMul", "BatchMatMulV2")]


def _gates(copy: object) -> Iterator[Variation]:
    """Yield gates of recurrent cells in another order, or another forget bias."""
    for count in (4, 3, 2):
        cells = list(_cells(copy, count))
        together = [list(itertools.chain(*cells))] if len(cells) > 1 else []
        for names in [*together, *cells]:
            for order in itertools.permutations(range(count)):
                # Two gates that are swapped, or three.
                if 0 < sum(index != n for index, n in enumerate(order)) < 4:
                    yield _in_order(copy, names, order)
        if count == 4:
            for names in cells:
                yield from _forget_biases(copy, names)


def _forget_biases(copy: Any, names: list[str]) -> Iterator[Variation]:
    """Yield a cell with 1 more, or less, in one block of its bias."""
    for bias in (n for n in names if copy.weights[n].ndim == 1):
        for block, shift in itertools.product(range(4), (-1.0, 1.0)):
            value = copy.weights[bias].copy()
            np.split(value, 4)[block][:] += shift
            text = f"the forget bias: {shift:+g} in block {block + 1} of `{bias}`"
            yield Variation("forget bias", f"{text} in the port", weights={bias: value})


# What is said of a cell with so many gates in one matrix.
_ORDERS = {
    2: "TensorFlow 1's GRU has reset, update",
    3: "TensorFlow and PyTorch order the gates of a GRU differently",
    4: (
        "TensorFlow 1 has input, new, forget, output; PyTorch and Keras have input, "
        "forget, new, output"
    ),
}


def _in_order(copy: Any, names: list[str], order: tuple[int, ...]) -> Variation:
    """Return a cell whose gates the port takes in another order."""
    weights = {}
    for name in names:
        blocks = np.split(copy.weights[name], len(order), -1)
        weights[name] = np.concatenate([blocks[n] for n in order], -1)
    gates = ", ".join(str(n + 1) for n in order)
    kernels = "`, `".join(n for n in names if copy.weights[n].ndim > 1)
    text = (
        f"the gates of `{kernels}` are taken in the order {gates} in the port: "
        f"{_ORDERS[len(order)]}"
    )
    return Variation("gate order", text, weights=weights)


def _cells(copy: Any, count: int) -> Iterator[list[str]]:
    """Yield the weights of each cell with so many gates: kernels and their bias.

    They are those whose product is split. Within a loop that is a function this is not
    seen: then all that have four blocks of columns are tried.
    """
    used = _split_weights(copy, count)
    groups: dict[tuple[str, int], list[str]] = {}
    for name, value in copy.weights.items():
        columns = value.shape[-1] if value.ndim in (1, 2) else 0
        if name in used and columns > count and columns % count == 0:
            scope = name.rpartition("/")[0]
            groups.setdefault((scope, columns), []).append(name)
    for names in groups.values():
        if any(copy.weights[n].ndim == 2 for n in names):
            yield names


def _split_weights(copy: Any, count: int) -> set[str]:
    """Return the names of the weights whose product is split into so many."""
    used = {name for read, name in copy.reads.items() if _is_split(copy, read, count)}
    if not used and count == 4 and any(_splits(op, 4) for op in copy.ops):
        return set(copy.reads.values())
    return used


def _splits(op: Operation, count: int) -> bool:
    """Return whether an op splits a tensor into so many, or is an LSTM by itself."""
    if op.type.startswith("BlockLSTM") or op.type == "LSTMBlockCell":
        return count == 4
    return op.type in ("Split", "SplitV") and len(op.outputs) == count


def _is_split(copy: Any, read: str, count: int) -> bool:
    """Return whether what is computed of a variable is split into so many."""

    def users_before_a_split(op: Any) -> list[Any]:
        if op.name != read and op.type not in _BEFORE_A_SPLIT:
            return []
        users = (user for output in op.outputs for user in output.consumers())
        return [user for user in users if not is_of_gradients(user)]

    reads = [op for op in copy.ops if op.name == read]
    return any(_splits(op, count) for op in reached(reads, users_before_a_split))


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

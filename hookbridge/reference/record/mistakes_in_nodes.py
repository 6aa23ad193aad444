"""Mistakes of porting that other nodes make: another slope, padding or epsilon.

Each function looks for what a mistake could be made of, and yields variations.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.ground.protocols import Operation
from hookbridge.reference.record.label_smoothing import smoothing_variations
from hookbridge.reference.record.variation import Edit, Variation

_SLOPES = (0.0, 0.01, 0.1, 0.2, 0.3)  # that of ReLU is 0
_EPSILONS = (1e-3, 1e-5, 1e-6, 1e-7, 1e-12)
_LEAKY = ("LeakyRelu", "LeakyReluGrad")
_FUSED = tuple(
    f"FusedBatchNorm{grad}{version}"
    for grad in ("", "Grad")
    for version in ("", "V2", "V3")
)


def node_variations(copy: object) -> Iterator[Variation]:
    """Yield all variations of a `GraphCopy` that need other nodes or constants."""
    for family in (_slopes, _epsilons, _paddings, _moving_averages):
        yield from family(copy)
    yield from smoothing_variations(copy)


def _setting(types: tuple[str, ...], key: str, value: float) -> Edit:
    """Set an attribute of all nodes of some types, also inside functions."""

    def edit(definition: Any) -> None:
        functions = definition.library.function
        for nodes in (definition.node, *(f.node_def for f in functions)):
            for node in nodes:
                if node.op in types:
                    node.attr[key].f = value

    return edit


def _slopes(copy: Any) -> Iterator[Variation]:
    """Yield another slope of leaky ReLU, as an op or as a maximum."""
    slopes = {op.get_attr("alpha") for op in copy.ops if op.type in _LEAKY}
    constants = {
        tensor.op
        for op in copy.ops
        if op.type == "Maximum" and "gradients" not in op.name
        for scaled in (t.op for t in op.inputs if t.op.type == "Mul")
        for tensor in scaled.inputs
        if tensor.op.type == "Const" and tensor.shape.rank == 0
    }
    yield from _numbers(
        ("slope", "the slope of leaky ReLU"),
        _LEAKY,
        "alpha",
        slopes,
        constants,
        _SLOPES,
    )


def _epsilons(copy: Any) -> Iterator[Variation]:
    """Yield another epsilon of a normalization, as an op or as its parts."""
    epsilons = {op.get_attr("epsilon") for op in copy.ops if op.type in _FUSED}
    constants = {op for op in copy.ops if _is_epsilon(op)}
    words = ("epsilon of a normalization", "the epsilon of a normalization")
    yield from _numbers(words, _FUSED, "epsilon", epsilons, constants, _EPSILONS)


def _numbers(
    words: tuple[str, str],
    types: tuple[str, ...],
    key: str,
    attributes: set[float],
    constants: set[Any],
    choices: tuple[float, ...],
) -> Iterator[Variation]:
    """Yield other numbers for an attribute of ops, or for constants."""
    arrays = (tf.make_ndarray(op.get_attr("value")) for op in constants)
    present = attributes | {float(array.flat[0]) for array in arrays}
    for number in choices:
        if present and not np.isclose(number, list(present), rtol=1e-3).any():
            listed = ", ".join(f"{value:.3g}" for value in sorted(present))
            yield Variation(
                words[0],
                f"{words[1]}: {number:g} in the port, {listed} in the reference",
                _setting(types, key, number) if attributes else None,
                values={op.outputs[0].name: np.float32(number) for op in constants},
            )


def _is_epsilon(op: Operation) -> bool:
    """Return whether a constant is added to what a root is taken of."""
    if op.type != "Const" or op.outputs[0].shape.rank != 0:
        return False
    if op.outputs[0].dtype.base_dtype is not tf.float32:
        return False
    return any(
        root.type in ("Rsqrt", "Sqrt")
        for add in op.outputs[0].consumers()
        if add.type in ("Add", "AddV2")
        for root in add.outputs[0].consumers()
    )


def _paddings(copy: object) -> Iterator[Variation]:
    """Yield a convolution of stride 2 that is padded by as much at both ends."""
    groups = _strided_convolutions(copy)
    every = set(itertools.chain(*groups.values()))
    transposes = {n for k, names in groups.items() if "transpose" in k for n in names}
    choices = [(every, "every convolution of stride 2")]
    if transposes and transposes != every:
        choices.append((every - transposes, "the convolutions of stride 2"))
        choices.append((transposes, "the transposed convolutions of stride 2"))
    if 1 < len(groups) <= 8:
        choices += [(set(v), f"`{k}`") for k, v in groups.items()]
    for names, which in choices:
        if names:
            text = (
                f"padding: {which} of the port pads by as much on all sides, as "
                "PyTorch does; SAME pads more at the end"
            )
            yield Variation("padding", text, _symmetric(frozenset(names), copy))


def _strided_convolutions(copy: Any) -> dict[str, list[str]]:
    """Return the convolutions of stride 2 that TensorFlow pads, with gradients."""
    groups: dict[str, list[str]] = {}
    for op in copy.ops:
        if not op.type.startswith("Conv2D") or op.get_attr("padding") != b"SAME":
            continue
        strides = op.get_attr("strides")
        if op.get_attr("data_format") == b"NHWC" and strides[1] > 1:
            forward = re.search(r"gradients\w*/(.*)_grad/", op.name)
            groups.setdefault(forward[1] if forward else op.name, []).append(op.name)
    return groups


def _symmetric(names: frozenset[str], copy: Any) -> Edit:
    """Return the edit that pads these convolutions by as much on all sides."""
    every = {op.name: _kernel_of(op) for op in copy.ops if op.name in names}
    sizes = {name: size for name, size in every.items() if size is not None}

    def edit(definition: Any) -> None:
        for node in definition.node:
            if node.name in sizes:
                height, width = sizes[node.name]
                node.attr["padding"].s = b"EXPLICIT"
                pads = [height // 2, height // 2, width // 2, width // 2]
                # An even kernel with stride 2 is padded by one less.
                if height % 2 == 0:
                    pads = [(height - 1) // 2] * 4
                node.attr["explicit_paddings"].list.i[:] = [0, 0, *pads, 0, 0]

    return edit


def _kernel_of(op: Operation) -> tuple[int, int] | None:
    """Return the height and width of a convolution's kernel, of a gradient too."""
    shape: Any = op.inputs[1].shape.as_list()
    if op.type == "Conv2DBackpropFilter":
        sizes: Any = tf.get_static_value(op.inputs[1])
        shape = op.outputs[0].shape.as_list() if sizes is None else list(sizes)
    return None if None in shape[:2] else (int(shape[0]), int(shape[1]))


_INFERENCE = (
    "BatchNormalization does not train in the port: it takes the moving averages in "
    "place of the batch's mean and variance"
)


def _moving_averages(copy: Any) -> Iterator[Variation]:
    """Yield BatchNormalization by its moving averages in place of the batch's."""
    by_shape = _averages_by_scope(copy)
    fused = dict(_fused_normalizations(copy, by_shape))
    if fused:
        yield Variation("mode", _INFERENCE, _fused_inference(fused, copy))
    moments = [op for op in copy.ops if op.name.endswith("moments/SquaredDifference")]
    pairs = [p for p in by_shape.values() if len(p) == 2]
    outputs = _moment_outputs(copy, moments)
    if len(pairs) == len(outputs) and pairs:
        replaced = [
            (outputs_of[kind], pair[kind])
            for pair, outputs_of in zip(pairs, outputs, strict=True)
            for kind in ("mean", "variance")
        ]
        yield Variation("mode", _INFERENCE, _constants_for(replaced, copy))


def _averages_by_scope(copy: Any) -> dict[str, dict[str, str]]:
    """Return the moving mean and variance of each scope, by their names."""
    by_scope: dict[str, dict[str, str]] = {}
    for name in copy.weights:
        scope, _, leaf = name.rpartition("/")
        for kind in ("mean", "variance"):
            if leaf in (f"moving_{kind}", f"moving_{kind[:3]}"):
                by_scope.setdefault(scope, {})[kind] = name
    return by_scope


def _fused_normalizations(
    copy: Any, averages: dict[str, dict[str, str]]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the fused normalizations that train, and the averages of each."""
    for op in copy.ops:
        if op.type in _FUSED and "Grad" not in op.type and op.get_attr("is_training"):
            scale, offset = (copy.reads.get(t.op.name, "") for t in op.inputs[1:3])
            pair = averages.get((scale or offset).rpartition("/")[0], {})
            if len(pair) == 2:
                yield op.name, pair


def _fused_inference(fused: dict[str, dict[str, str]], copy: Any) -> Edit:
    """Return the edit that gives fused normalizations constant averages."""

    def edit(definition: Any) -> None:
        for node in list(definition.node):
            forward = node.name
            if node.op.startswith("FusedBatchNormGrad"):
                forward = node.input[3].partition(":")[0]
            if node.op in _FUSED and forward in fused:
                node.attr["is_training"].b = False
                for index, kind in ((3, "mean"), (4, "variance")):
                    constant = definition.node.add()
                    constant.name = f"{node.name}/{kind}/constant"
                    _make_constant(constant, copy.weights[fused[forward][kind]])
                    node.input[index] = constant.name

    return edit


def _moment_outputs(copy: Any, moments: list[Any]) -> list[dict[str, str]]:
    """Return the ops that give the mean and the variance of each `tf.nn.moments`."""
    names = {op.name for op in copy.ops}
    outputs = []
    for op in moments:
        scope = op.name.removesuffix("/SquaredDifference")
        mean, variance = f"{scope}/Squeeze", f"{scope}/Squeeze_1"
        if {mean, variance} <= names:
            outputs.append({"mean": mean, "variance": variance})
    return outputs


def _constants_for(replaced: list[tuple[str, str]], copy: Any) -> Edit:
    """Make constants of some ops, through which no gradient goes."""

    def edit(definition: Any) -> None:
        constants = dict(replaced)
        for node in definition.node:
            variable = constants.get(node.name)
            if variable is not None:
                del node.input[:]
                _make_constant(node, copy.weights[variable])
                for key in ("T", "squeeze_dims", "axis"):
                    node.attr.pop(key, None)
        _stop_gradients(definition, set(constants))

    return edit


def _make_constant(node: Any, value: Any) -> None:
    """Make a constant of a node."""
    tensor = tf.make_tensor_proto(value)
    node.op = "Const"
    node.attr["dtype"].type = tensor.dtype
    node.attr["value"].tensor.CopyFrom(tensor)


def _stop_gradients(definition: Any, names: set[str]) -> None:
    """Make zeros of the gradients that go back through some ops."""
    for node in list(definition.node):
        operation = re.search(r"^gradients\w*/(.*)_grad/Reshape$", node.name)
        if operation and operation[1] in names:
            zeros = definition.node.add()
            zeros.CopyFrom(node)
            zeros.name = f"{node.name}/before"
            node.op = "ZerosLike"
            node.input[:] = [zeros.name]
            node.attr.pop("Tshape", None)

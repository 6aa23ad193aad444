"""A mistake of porting: labels that the port smooths and the reference does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.ground.protocols import Operation
from hookbridge.reference.record.variation import Edit, Variation

_PARTS = (0.05, 0.1, 0.2)
_ENTROPIES = (
    "SparseSoftmaxCrossEntropyWithLogits",
    "SoftmaxCrossEntropyWithLogits",
)


def smoothing_variations(copy: Any) -> Iterator[Variation]:
    """Yield label smoothing, where there is one cross entropy."""
    ops = [op for op in copy.ops if op.type in _ENTROPIES]
    classes = ops[0].inputs[0].shape.as_list()[-1] if len(ops) == 1 else None
    if not classes or ops[0].inputs[0].dtype.base_dtype is not tf.float32:
        return
    edit = _smoothing_edit(ops[0], classes)
    for part in _PARTS:
        text = f"label smoothing of {part:g} in the port only"
        values = {
            f"{ops[0].name}/smoothed/rest:0": np.float32(1 - part),
            f"{ops[0].name}/smoothed/even:0": np.float32(part / classes),
        }
        yield Variation("label smoothing", text, edit, values=values)


def _smoothing_edit(op: Operation, classes: int) -> Edit:
    """Put ops before the labels that mix them with equal ones."""

    def edit(definition: Any) -> None:
        (node,) = (n for n in definition.node if n.name == op.name)
        labels = node.input[1]
        kind = op.inputs[0].dtype.base_dtype

        def add(op_type: str, name: str, *inputs: str, **attributes: Any) -> str:
            made = definition.node.add()
            made.op, made.name = op_type, f"{op.name}/smoothed/{name}"
            made.input.extend(inputs)
            for key, value in attributes.items():
                made.attr[key].CopyFrom(value)
            return str(made.name)

        def number(name: str, value: Any, dtype: Any) -> str:
            tensor = tf.make_tensor_proto(value, dtype)
            return add(
                "Const",
                name,
                dtype=tf.compat.v1.AttrValue(type=dtype.as_datatype_enum),
                value=tf.compat.v1.AttrValue(tensor=tensor),
            )

        of_kind = tf.compat.v1.AttrValue(type=kind.as_datatype_enum)
        if op.type.startswith("Sparse"):
            index = op.inputs[1].dtype.base_dtype
            labels = add(
                "OneHot",
                "labels",
                labels,
                number("classes", classes, tf.int32),
                number("on", 1.0, kind),
                number("off", 0.0, kind),
                T=of_kind,
                TI=tf.compat.v1.AttrValue(type=index.as_datatype_enum),
                axis=tf.compat.v1.AttrValue(i=-1),
            )
            node.op = "SoftmaxCrossEntropyWithLogits"
            node.attr.pop("Tlabels", None)
        scaled = add("Mul", "scaled", labels, number("rest", 1.0, kind), T=of_kind)
        even = number("even", 0.0, kind)
        node.input[1] = add("AddV2", "mixed", scaled, even, T=of_kind)

    return edit

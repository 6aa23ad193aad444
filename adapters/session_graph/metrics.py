"""The values of streaming metrics: read, written back and reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class MetricValues:
    """The variables of streaming metrics of a graph that may still grow."""

    def __init__(self, resets: Sequence[Any]) -> None:
        self._resets = list(dict.fromkeys(resets))
        self._reads: dict[str, Any] = {}
        self._writes: dict[str, Any] = {}
        for op in self._resets:
            if op.type not in ("AssignVariableOp", "Assign"):
                continue
            read = variable = op.inputs[0]
            if op.type == "AssignVariableOp":
                with tf.name_scope("hookbridge"):
                    read = tf.raw_ops.ReadVariableOp(
                        resource=variable, dtype=op.get_attr("dtype")
                    )
            self._reads[variable.op.name] = read
            self._writes[variable.op.name] = op

    def __bool__(self) -> bool:
        return bool(self._resets)

    def read(self, session: Any) -> dict[str, Any]:
        """Their values, by name."""
        if not self._reads:
            return {}
        return {n: np.array(v) for n, v in session.run(self._reads).items()}

    def write(self, session: Any, values: Mapping[str, Any]) -> None:
        """Sets metrics to what `read` returned; resets those without a value."""
        session.run(self._resets)
        for name in self._writes.keys() & values.keys():
            op, value = self._writes[name], np.asarray(values[name])
            source = op.inputs[1]
            if value.dtype == source.dtype.as_numpy_dtype and (
                source.shape.is_compatible_with(value.shape)
            ):
                # Feeding the initializer needs no new op: the graph is finalized.
                session.run(op, {source: value})

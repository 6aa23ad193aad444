"""`tf.contrib.tfprof`: the profiler that TensorFlow has as `compat.v1.profiler`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.ground.protocols import Graph

_builder = tf.compat.v1.profiler.ProfileOptionBuilder
TRAINABLE_VARS_PARAMS_STAT_OPTIONS: dict[str, Any] = (
    _builder.trainable_variables_parameter()
)
FLOAT_OPS_OPTIONS: dict[str, Any] = _builder.float_operation()


def print_model_analysis(
    graph: Graph,
    run_meta: object = None,
    op_log: object = None,
    tfprof_cmd: str = "scope",
    tfprof_options: object = 0,
) -> Any:
    """`tf.contrib.tfprof.model_analyzer.print_model_analysis`."""
    return tf.compat.v1.profiler.profile(
        graph,
        run_meta,
        op_log,
        tfprof_cmd,
        tfprof_options or TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
    )

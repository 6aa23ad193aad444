"""`tf.contrib.tfprof`: the profiler that TensorFlow has as `compat.v1.profiler`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_builder = tf.compat.v1.profiler.ProfileOptionBuilder
TRAINABLE_VARS_PARAMS_STAT_OPTIONS: dict[str, Any] = (
    _builder.trainable_variables_parameter()
)
FLOAT_OPS_OPTIONS: dict[str, Any] = _builder.float_operation()
PRINT_ALL_TIMING_MEMORY = {
    **TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
    "account_type_regexes": [".*"],
    "min_bytes": 1,
    "min_micros": 1,
    "account_displayed_op_only": False,
    "select": ["micros", "bytes"],
}


def print_model_analysis(
    graph: Any,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = 0,
) -> Any:
    """`tf.contrib.tfprof.model_analyzer.print_model_analysis`."""
    return tf.compat.v1.profiler.profile(
        graph,
        run_meta,
        op_log,
        tfprof_cmd,
        tfprof_options or TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
    )


def advise(graph: Any, run_meta: Any = None, tfprof_options: Any = 0) -> Any:
    """`tf.contrib.tfprof.model_analyzer.advise`."""
    if not tfprof_options:
        return tf.compat.v1.profiler.advise(graph, run_meta)
    return tf.compat.v1.profiler.advise(graph, run_meta, tfprof_options)

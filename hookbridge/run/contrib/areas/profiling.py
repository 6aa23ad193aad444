"""`tf.contrib.tfprof`: the profiler that TensorFlow has as `compat.v1.profiler`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_ALL: dict[str, Any] = {
    "max_depth": 10000,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": True,
    "output": "stdout",
    "dump_to_file": "",
}
TRAINABLE_VARS_PARAMS_STAT_OPTIONS = {
    **_ALL,
    "account_type_regexes": ["_trainable_variables"],
    "select": ["params"],
}
FLOAT_OPS_OPTIONS = {
    **_ALL,
    "min_float_ops": 1,
    "order_by": "float_ops",
    "select": ["float_ops"],
}
PRINT_ALL_TIMING_MEMORY = {
    **_ALL,
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
        graph, run_meta, op_log, tfprof_cmd, tfprof_options or _default()
    )


def advise(graph: Any, run_meta: Any = None, tfprof_options: Any = 0) -> Any:
    """`tf.contrib.tfprof.model_analyzer.advise`."""
    if not tfprof_options:
        return tf.compat.v1.profiler.advise(graph, run_meta)
    return tf.compat.v1.profiler.advise(graph, run_meta, tfprof_options)


def _default() -> Any:
    return tf.compat.v1.profiler.ProfileOptionBuilder.trainable_variables_parameter()

"""Where each name of `tf.contrib` is found today, and which names live.

A name *lives* if something today can replace it; its *source* says where that is.

A source begins with `tf` (TensorFlow's public names), `tf_slim`, `estimator` (what
`tf.compat.v1.estimator` had), `private` (a row of `hookbridge.compat`) or `ours` (a
module of the room `hookbridge/contrib/areas`). TensorFlow is not imported here.

The list of living names is written by tests/run/write_living_names.py from this table
and the names that TensorFlow 1.15 had.
"""

from __future__ import annotations

import functools
import json

from hookbridge.migrate.target import DATA

FILE = DATA / "contrib-1.15.json"

# Area -> where its names are looked for, in this order.
AREAS: dict[str, tuple[str, ...]] = {
    "autograph": ("tf.autograph",),
    "cluster_resolver": ("tf.distribute.cluster_resolver",),
    "crf": ("ours.sequences",),
    "data": ("ours.datasets", "tf.compat.v1.data", "tf.compat.v1.data.experimental"),
    "distribute": (
        "ours.strategies",
        "tf.compat.v1.distribute",
        "tf.distribute",
        "tf.compat.v1.distribute.experimental",
    ),
    "estimator": ("ours.estimators", "estimator.experimental", "estimator"),
    "feature_column": ("tf.compat.v1.feature_column",),
    "framework": ("tf_slim", "tf_slim.ops", "tf_slim.ops.framework_ops"),
    "framework.nest": ("tf.nest",),
    "hooks": ("tf.compat.v1.train",),
    "layers": ("tf_slim.layers",),
    "learn": ("ours.learn",),
    "learn.learn_runner": ("ours.learn",),
    "learn.utils.input_fn_utils": ("ours.learn",),
    "learn.utils.saved_model_export_utils": ("ours.learn",),
    "lookup": ("ours.lookup", "private.lookup_ops"),
    "losses": ("tf_slim.losses",),
    "metrics": ("tf_slim.metrics",),
    "predictor": ("ours.predictor",),
    "rnn": ("ours.cells", "tf.compat.v1.nn.rnn_cell", "tf.compat.v1.nn"),
    "saved_model": ("tf.compat.v1.saved_model",),
    "seq2seq": (
        "ours.seq2seq.helpers",
        "ours.seq2seq.decoders",
        "ours.seq2seq.mechanisms",
        "ours.seq2seq.beams",
    ),
    "slim": ("tf_slim",),
    "slim.nets": ("tf_slim.nets",),
    "tfprof": ("ours.profiling",),
    "tfprof.model_analyzer": ("ours.profiling",),
    "tpu": ("estimator.tpu", "tf.compat.v1.tpu"),
    "training": (
        "ours.hparams",
        "tf_slim.training.training",
        "tf_slim.training.evaluation",
        "tf.compat.v1.train",
    ),
    "training.hparam": ("ours.hparams",),
}

# Names that are not where the rest of their area is. Classes of ours that derive from
# Keras 2 or Estimator are among them: these are loaded only for who asks.
NAMES: dict[str, str] = {
    "cluster_resolver.UnionClusterResolver": (
        "tf.distribute.cluster_resolver.UnionResolver"
    ),
    "distribute.get_distribution_strategy": "tf.distribute.get_strategy",
    "distribute.has_distribution_strategy": "tf.distribute.has_strategy",
    "framework.TensorSpec": "tf.TensorSpec",
    "framework.argsort": "tf.argsort",
    "framework.assert_same_float_dtype": "tf.debugging.assert_same_float_dtype",
    "framework.assert_scalar": "tf.debugging.assert_scalar",
    "framework.create_global_step": "tf.compat.v1.train.create_global_step",
    "framework.deprecated": "private.deprecated",
    "framework.get_or_create_global_step": (
        "tf.compat.v1.train.get_or_create_global_step"
    ),
    "framework.get_global_step": "tf.compat.v1.train.get_global_step",
    "framework.init_from_checkpoint": "tf.compat.v1.train.init_from_checkpoint",
    "framework.is_tensor": "tf.is_tensor",
    "framework.list_variables": "tf.train.list_variables",
    "framework.load_checkpoint": "tf.train.load_checkpoint",
    "framework.load_variable": "tf.train.load_variable",
    "framework.nest.is_sequence": "tf.nest.is_nested",
    "framework.py_func": "tf.compat.v1.py_func",
    "framework.smart_cond": "tf.__internal__.smart_cond.smart_cond",
    "framework.sort": "tf.sort",
    "layers.fc": "tf_slim.layers.fully_connected",
    "layers.safe_embedding_lookup_sparse": (
        "tf.compat.v1.nn.safe_embedding_lookup_sparse"
    ),
    "learn.build_parsing_serving_input_fn": (
        "estimator.export.build_parsing_serving_input_receiver_fn"
    ),
    "learn.utils.input_fn_utils.build_parsing_serving_input_fn": (
        "estimator.export.build_parsing_serving_input_receiver_fn"
    ),
    "learn.RunConfig": "ours.run_config.RunConfig",
    "learn.NanLossDuringTrainingError": "tf.compat.v1.train.NanLossDuringTrainingError",
    "learn.datasets.mnist": "ours.mnist",
    "learn.monitors.replace_monitors_with_hooks": (
        "ours.learn.replace_monitors_with_hooks"
    ),
    "learn.run_config._DEFAULT_UID_WHITE_LIST": (
        "ours.run_config._DEFAULT_UID_WHITE_LIST"
    ),
    "lookup.string_to_index_table_from_file": (
        "private.lookup_ops.index_table_from_file"
    ),
    "lookup.string_to_index_table_from_tensor": "ours.lookup.index_table_from_tensor",
    "lookup.MutableDenseHashTable": "private.lookup_ops.DenseHashTable",
    "metrics.confusion_matrix": "tf.compat.v1.confusion_matrix",
    "metrics.set_difference": "tf.sets.difference",
    "metrics.set_intersection": "tf.sets.intersection",
    "metrics.set_size": "tf.sets.size",
    "metrics.set_union": "tf.sets.union",
    "opt.LazyAdamOptimizer": "ours.optimizers.LazyAdamOptimizer",
    "rnn.LSTMBlockFusedCell": "ours.fused_cells.LSTMBlockFusedCell",
    "rnn.TimeReversedFusedRNN": "ours.fused_cells.TimeReversedFusedRNN",
    "seq2seq.AttentionWrapper": "ours.seq2seq.wrapper.AttentionWrapper",
    "seq2seq.AttentionWrapperState": "ours.seq2seq.wrapper.AttentionWrapperState",
    "rnn.GRUBlockCellV2": "tf.compat.v1.nn.rnn_cell.GRUCell",
    "seq2seq.sequence_loss": "ours.sequences.sequence_loss",
    "training.bucket_by_sequence_length": (
        "tf.compat.v1.data.experimental.bucket_by_sequence_length"
    ),
    "training.get_or_create_eval_step": "tf_slim.evaluation.get_or_create_eval_step",
}


def areas_above(path: str) -> bool:
    """Whether a path is an area, or a module above an area or a name of `NAMES`."""
    return path == "" or any(
        name == path or name.startswith(f"{path}.") for name in (*AREAS, *NAMES)
    )


@functools.cache
def names() -> dict[str, list[str]]:
    """Area -> the names in it that live."""
    listed = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return {area: text.split() for area, text in listed.items()}


def lives(name: str) -> bool:
    """Whether a name such as `tf.contrib.slim.conv2d` lives."""
    path = name.removeprefix("tf.contrib").lstrip(".")
    if areas_above(path):
        return True
    area, has_files, files = path.partition(".python.")
    if has_files:
        last = files.rpartition(".")[2]
        above = [area, ".".join([area, *files.split(".")[-2:-1]])]
        if any(f"{a}.{last}" in NAMES for a in above):
            return True
        # Any file of an area can be imported; each name in it is asked for by itself.
        return any(last in names().get(a, ()) for a in above) or (
            area in AREAS and last.islower()
        )
    if path in NAMES:
        return True
    parts = path.split(".")
    return any(
        parts[place] in names().get(".".join(parts[:place]), ())
        for place in range(1, len(parts))
    )

"""Private names of TensorFlow's and Keras's modules: where they are and why.

`tests/test_private_names.py` resolves every row on every supported version, so that
an upgrade that moves a name fails loudly and says which.
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
from typing import Any, NamedTuple

from hookbridge.errors import HookBridgeError, PrivateNameMovedError
from hookbridge.ground.compat.versions import tf_version


class PrivateName(NamedTuple):
    """The place `"module:attribute"` of a private object, or `"module"`, and its use.

    `min_tf` and `max_tf` are the first and last `(major, minor)` that need it.
    """

    path: str
    why: str
    min_tf: tuple[int, int] = (2, 15)
    max_tf: tuple[int, int] | None = None


PRIVATE: dict[str, PrivateName] = {
    "lookup_ops": PrivateName(
        "tensorflow.python.ops.lookup_ops",
        "lookup tables of `tf.contrib.lookup` that have no public name today",
    ),
    "data_flow_ops": PrivateName(
        "tensorflow.python.ops.data_flow_ops",
        "`tf.contrib.staging.StagingArea`, which has no public name today",
    ),
    "summary_ops": PrivateName(
        "tensorflow.python.ops.summary_ops_v2",
        "the summaries of `tf.contrib.summary`, which have no public name today",
    ),
    "distribute_config": PrivateName(
        "tensorflow.python.distribute.distribute_config:DistributeConfig",
        "`tf.contrib.distribute.DistributeConfig`, which has no public name today",
    ),
    "bounded_tensor_spec": PrivateName(
        "tensorflow.python.framework.tensor_spec:BoundedTensorSpec",
        "`tf.contrib.framework.BoundedTensorSpec`, which has no public name",
    ),
    "init_ops": PrivateName(
        "tensorflow.python.ops.init_ops",
        "orthogonal initializers of `tf.contrib.framework`, without public names",
    ),
    "smart_cond": PrivateName(
        "tensorflow.python.framework.smart_cond",
        "`smart_case` of `tf.contrib.framework` and its like, without public names",
    ),
    "nth_element": PrivateName(
        "tensorflow.python.ops.nn_ops:nth_element",
        "`tf.contrib.nn.nth_element`, which has no public name",
    ),
    "best_effort_input_batch_size": PrivateName(
        "tensorflow.python.ops.rnn:_best_effort_input_batch_size",
        "`tf.contrib.rnn.best_effort_input_batch_size`, which has no public name",
    ),
    "logging_ops": PrivateName(
        "tensorflow.python.ops.logging_ops",
        "the summaries of `tf.contrib.deprecated`, which have no public name",
    ),
    "name_scopes": PrivateName(
        "tensorflow.python.framework.ops",
        "`strip_name_scope` of `tf.contrib.framework` and its like",
    ),
    "data_structures": PrivateName(
        "tensorflow.python.trackable.data_structures",
        "`tf.contrib.checkpoint.List` and its like, which have no public name",
    ),
    "checkpoint": PrivateName(
        "tensorflow.python.checkpoint.checkpoint",
        "`tf.contrib.checkpoint.list_objects` and its like, without public names",
    ),
    "step_fn": PrivateName(
        "tensorflow.python.distribute.step_fn",
        "`tf.contrib.distribute.Step` and its like, which have no public name",
    ),
    "cross_device_ops": PrivateName(
        "tensorflow.python.distribute.cross_device_ops",
        "`tf.contrib.distribute.AllReduceCrossDeviceOps`, without a public name",
    ),
    "distribute_lib": PrivateName(
        "tensorflow.python.distribute.distribute_lib",
        "contexts of `tf.contrib.distribute` that have no public name",
    ),
    "distributions_beta": PrivateName(
        "tensorflow.python.ops.distributions.beta",
        "distributions of `tf.contrib.distributions` that have no public name",
    ),
    "distributions_exponential": PrivateName(
        "tensorflow.python.ops.distributions.exponential",
        "distributions of `tf.contrib.distributions` that have no public name",
    ),
    "distributions_gamma": PrivateName(
        "tensorflow.python.ops.distributions.gamma",
        "distributions of `tf.contrib.distributions` that have no public name",
    ),
    "distributions_laplace": PrivateName(
        "tensorflow.python.ops.distributions.laplace",
        "distributions of `tf.contrib.distributions` that have no public name",
    ),
    "distributions_normal": PrivateName(
        "tensorflow.python.ops.distributions.normal",
        "distributions of `tf.contrib.distributions` that have no public name",
    ),
    "distributions_student_t": PrivateName(
        "tensorflow.python.ops.distributions.student_t",
        "distributions of `tf.contrib.distributions` that have no public name",
    ),
    "distributions_util": PrivateName(
        "tensorflow.python.ops.distributions.util",
        "functions of `tf.contrib.distributions`, which have no public name",
    ),
    "meta_graph": PrivateName(
        "tensorflow.python.framework.meta_graph",
        "the ops of a graph, for `tf.contrib.util`, which have no public name",
    ),
    "v1_all_reduce": PrivateName(
        "tensorflow.python.distribute.v1.all_reduce",
        "what the file all_reduce of `tf.contrib.all_reduce` handed on",
    ),
    "clustering_ops": PrivateName(
        "tensorflow.python.ops.clustering_ops",
        "`tf.contrib.factorization.KMeans`, which has no public name",
    ),
    "eager_variables": PrivateName(
        "tensorflow.python.ops.variable_scope:EagerVariableStore",
        "`tf.contrib.eager.EagerVariableStore`, which has no public name",
    ),
    "eager_starts": PrivateName(
        "tensorflow.python.framework.ops",
        "`run` of `tf.contrib.eager` and its like, without public names",
    ),
    "test_modes": PrivateName(
        "tensorflow.python.framework.test_util",
        "decorators of tests in `tf.contrib.eager`, without public names",
    ),
    "mirrored_strategy": PrivateName(
        "tensorflow.python.distribute.mirrored_strategy",
        "`all_local_devices` of `tf.contrib.distribute`, which has no public name",
    ),
    "bijector": PrivateName(
        "tensorflow.python.ops.distributions.bijector_impl",
        "`tf.contrib.distributions.bijectors.Bijector`, which has no public name",
    ),
    "identity_bijector": PrivateName(
        "tensorflow.python.ops.distributions.identity_bijector",
        "`tf.contrib.distributions.bijectors.Identity`, which has no public name",
    ),
    "rnn_ops": PrivateName(
        "tensorflow.python.ops.rnn",
        "`_transpose_batch_time`, which files of `tf.contrib.seq2seq` handed on",
    ),
    "rnn_cells": PrivateName(
        "tensorflow.python.ops.rnn_cell_impl",
        "`_zero_state_tensors`, which files of `tf.contrib.seq2seq` handed on",
    ),
    "graph_util": PrivateName(
        "tensorflow.python.framework.graph_util_impl",
        "what the file graph_util of `tf.contrib.framework` handed on",
    ),
    "queue_inputs": PrivateName(
        "tensorflow.python.training.input",
        "what the file bucket_ops of `tf.contrib.training` handed on",
    ),
    "tpu_bfloat16": PrivateName(
        "tensorflow.python.tpu.bfloat16",
        "what the file bfloat16 of `tf.contrib.tpu` handed on",
    ),
    "tpu_datasets": PrivateName(
        "tensorflow.python.tpu.datasets",
        "what the file datasets of `tf.contrib.tpu` handed on",
    ),
    "tpu_feature_column": PrivateName(
        "tensorflow.python.tpu.feature_column",
        "what the file feature_column of `tf.contrib.tpu` handed on",
    ),
    "tpu_functional": PrivateName(
        "tensorflow.python.tpu.functional",
        "what the file functional of `tf.contrib.tpu` handed on",
    ),
    "tpu_tensor_tracer": PrivateName(
        "tensorflow.python.tpu.tensor_tracer",
        "what the file tensor_tracer of `tf.contrib.tpu` handed on",
    ),
    "tpu_topology": PrivateName(
        "tensorflow.python.tpu.topology",
        "what the file topology of `tf.contrib.tpu` handed on",
    ),
    "tpu_replication": PrivateName(
        "tensorflow.python.tpu.tpu",
        "what the file tpu of `tf.contrib.tpu` handed on",
    ),
    "tpu_function": PrivateName(
        "tensorflow.python.tpu.tpu_function",
        "what the file tpu_function of `tf.contrib.tpu` handed on",
    ),
    "tpu_sharding": PrivateName(
        "tensorflow.python.tpu.tpu_sharding",
        "what the file tpu_sharding of `tf.contrib.tpu` handed on",
    ),
    "tpu_system_metadata": PrivateName(
        "tensorflow.python.tpu.tpu_system_metadata",
        "what the file tpu_system_metadata of `tf.contrib.tpu` handed on",
    ),
    "gen_audio_ops": PrivateName(
        "tensorflow.python.ops.gen_audio_ops",
        "ops of `tf.contrib.framework`'s audio, which have no public functions today",
    ),
    "gen_nn_ops": PrivateName(
        "tensorflow.python.ops.gen_nn_ops",
        "ops of `tf.contrib.quantization`, which have no public functions today",
    ),
    "gen_math_ops": PrivateName(
        "tensorflow.python.ops.gen_math_ops",
        "ops of `tf.contrib.quantization`, which have no public functions today",
    ),
    "gen_array_ops": PrivateName(
        "tensorflow.python.ops.gen_array_ops",
        "ops of `tf.contrib.quantization`, which have no public functions today",
    ),
    "autograph_api": PrivateName(
        "tensorflow.python.autograph.impl.api",
        "`tf.contrib.autograph.convert` and its like, which have no public name",
    ),
    "autograph_converter": PrivateName(
        "tensorflow.python.autograph.core.converter",
        "`tf.contrib.autograph.ConversionOptions`, which has no public name",
    ),
    "autograph_directives": PrivateName(
        "tensorflow.python.autograph.lang.directives",
        "`tf.contrib.autograph.set_element_type`, which has no public name",
    ),
    "autograph_functions": PrivateName(
        "tensorflow.python.autograph.lang.special_functions",
        "`tf.contrib.autograph.stack`, which has no public name",
    ),
    "eager_modes": PrivateName(
        "tensorflow.python.eager.context",
        "`tf.contrib.eager.execution_mode` and its like, which have no public name",
    ),
    "eager_remote": PrivateName(
        "tensorflow.python.eager.remote",
        "`tf.contrib.eager.connect_to_remote_host`, which has no public name",
    ),
    "tpu_ops": PrivateName(
        "tensorflow.python.tpu.ops.tpu_ops",
        "the queues of `tf.contrib.tpu`, which have no public functions today",
    ),
    "tpu_feed": PrivateName(
        "tensorflow.python.tpu.tpu_feed",
        "`tf.contrib.tpu.InfeedQueue`, which has no public name",
    ),
    "tpu_training_loop": PrivateName(
        "tensorflow.python.tpu.training_loop",
        "`tf.contrib.tpu.repeat` and `while_loop`, which have no public name",
    ),
    "tpu_device_assignment": PrivateName(
        "tensorflow.python.tpu.device_assignment",
        "`tf.contrib.tpu.device_assignment`, which has no public name",
    ),
    "autograph_sources": PrivateName(
        "tensorflow.python.autograph.pyct.inspect_utils",
        "`getimmediatesource`, which gives AutoGraph the source that it converts",
    ),
    "add_control_inputs": PrivateName(
        "tensorflow.python.framework.ops:Operation._add_control_inputs",
        "make a tower's deferred update wait for the update with averaged gradients",
    ),
    "create_op": PrivateName(
        "tensorflow.python.framework.ops:Graph._create_op_internal",
        "give every tower the first tower's updates of the shared variables",
    ),
    "SessionInterface": PrivateName(
        "tensorflow.python.client.session:SessionInterface",
        "what a `Saver` takes for a session: here, the copied values of one moment",
    ),
    "eager_mode": PrivateName(
        "tensorflow.python.eager.context:eager_mode",
        "run callbacks eagerly while a v1 graph is the default graph",
    ),
    "BaseResourceVariable": PrivateName(
        "tensorflow.python.ops.resource_variable_ops:BaseResourceVariable",
        "a graph-mode variable over a handle that is a placeholder",
    ),
    "ResourceVariable": PrivateName(
        "tensorflow.python.ops.resource_variable_ops:ResourceVariable",
        "the class of eager variables; ours derives from it and reports each use",
    ),
    "copy_handle_data": PrivateName(
        "tensorflow.python.ops.handle_data_util:copy_handle_data",
        "give that placeholder the dtype and shape of the eager variable",
    ),
    "FetchMapper": PrivateName(
        "tensorflow.python.client.session:_FetchMapper",
        "take fetch structures apart and build results exactly as Session.run",
    ),
    "eager_context": PrivateName(
        "tensorflow.python.eager.context:context",
        "partition graphs of functions, and a graph's functions for the runtime",
    ),
    "cancellation": PrivateName(
        "tensorflow.python.eager.cancellation",
        "keep `RunOptions.timeout_in_ms` in a function of the eager runtime",
    ),
    "xplane_pb2": PrivateName(
        "tensorflow.tsl.profiler.protobuf.xplane_pb2",
        "read the profile that replaces the RunMetadata of a step",
    ),
    "session_make_callable": PrivateName(
        "tensorflow.python.client.session:BaseSession._make_callable_from_options",
        "run a step with feeds without what `run` does to them in every step",
    ),
    "config_pb2": PrivateName(
        "tensorflow.core.protobuf.config_pb2",
        "the message CallableOptions, which `tf.compat.v1` does not export",
    ),
    "session_do_call": PrivateName(
        "tensorflow.python.client.session:BaseSession._do_call",
        "give errors of a callable the operation and message that `run` gives them",
    ),
    "global_step_read": PrivateName(
        "tensorflow.python.training.training_util:_get_or_create_global_step_read",
        "the shared read that hooks order before the update of the step",
    ),
    "global_step_read_key": PrivateName(
        "tensorflow.python.training.training_util:GLOBAL_STEP_READ_KEY",
        "the collection in which TensorFlow looks up that read",
    ),
    "saveable_object": PrivateName(
        "tensorflow.python.training.saving.saveable_object",
        "save the step of a Keras graph under the name of a session loop too",
    ),
    "MetricsList": PrivateName(
        "keras.src.trainers.compile_utils:MetricsList",
        "where Keras 3 callbacks look up whether a metric should rise or fall",
        min_tf=(2, 16),
    ),
    "keras_training": PrivateName(
        "keras.src.engine.training",
        "keep tapped tensors from Keras's sum over all processes of a `fit`",
        max_tf=(2, 15),
    ),
    "tf_keras_training": PrivateName(
        "tf_keras.src.engine.training",
        "keep tapped tensors from Keras's sum over all processes of a `fit`",
        min_tf=(2, 16),
    ),
    "keras_training_v1": PrivateName(
        "keras.src.engine.training_v1",
        "give callbacks of old programs the data of their validation",
        max_tf=(2, 15),
    ),
    "tf_keras_training_v1": PrivateName(
        "tf_keras.src.engine.training_v1",
        "give callbacks of old programs the data of their validation",
        min_tf=(2, 16),
    ),
    "keras_backend": PrivateName(
        "keras.src.backend",
        "give all threads of old programs one session",
        max_tf=(2, 15),
    ),
    "tf_keras_backend": PrivateName(
        "tf_keras.src.backend",
        "give all threads of old programs one session",
        min_tf=(2, 16),
    ),
    "default_graph_stack": PrivateName(
        "tensorflow.python.framework.ops:_default_graph_stack",
        "whether an evaluation runs inside a training session of this thread",
    ),
    "tf_export": PrivateName(
        "tensorflow.python.util.tf_export",
        "the base of the Estimator package's export decorator",
        min_tf=(2, 16),
    ),
    "tf_decorator": PrivateName(
        "tensorflow.python.util.tf_decorator",
        "the undecorated symbol, as the export decorator files names on it",
        min_tf=(2, 16),
    ),
    "deprecation": PrivateName(
        "tensorflow.python.util.deprecation",
        "the deprecation marks of Estimator's symbols, and of `tf.contrib.framework`",
    ),
    "distribute_coordinator": PrivateName(
        "tensorflow.python.distribute.distribute_coordinator",
        "runs the tasks of an Estimator with a strategy over several workers; it has "
        "the server of `tf.contrib.distribute`",
        min_tf=(2, 16),
    ),
    "distribute_coordinator_context": PrivateName(
        "tensorflow.python.distribute.distribute_coordinator_context",
        "which task of the cluster this thread runs",
        min_tf=(2, 16),
    ),
    "multi_worker_util": PrivateName(
        "tensorflow.python.distribute.multi_worker_util",
        "cluster specifications in any of their forms",
        min_tf=(2, 16),
    ),
    "tf_keras_v1": PrivateName(
        "tf_keras.api._v1.keras",
        "`tf.compat.v1.keras` and the legacy layers for the Estimator package",
        min_tf=(2, 16),
    ),
    "tf_keras_v2": PrivateName(
        "tf_keras.api._v2.keras",
        "`tf.keras` with its `__internal__` names for the Estimator package",
        min_tf=(2, 16),
    ),
}


@functools.cache
def private(key: str) -> Any:
    """Return the private object filed under `key` in `PRIVATE`."""
    row = PRIVATE[key]
    module_name, _, attribute = row.path.partition(":")
    try:
        module = importlib.import_module(module_name)
        return operator.attrgetter(attribute)(module) if attribute else module
    except (ImportError, AttributeError, TypeError) as e:
        if sys.flags.optimize > 1 and not isinstance(e, ImportError):
            raise HookBridgeError(
                f"`{row.path}` cannot be imported ({e}): `python -OO` leaves out "
                "docstrings, which Keras 2 needs. Use `python -O`, or neither; "
                "PYTHONOPTIMIZE=2 means the same as -OO."
            ) from e
        raise PrivateNameMovedError(
            f"hookbridge needs `{row.path}` ({row.why}), which TensorFlow "
            f"{'.'.join(map(str, tf_version()))} does not have there. Use a "
            "TensorFlow version listed in the README or report this version."
        ) from e

"""The one place for TensorFlow and Keras versions and private names.

`private(key)` returns a private object by its key in `PRIVATE`; nothing else in
the package may import from `tensorflow.python`, `keras.src` or `tf_keras.src`.
`tests/test_private_names.py` resolves every row on every supported version, so
that an upgrade that moves a name fails loudly and says which.
"""

from __future__ import annotations

import functools
import importlib
import operator
import re
import sys
import threading
from typing import Any, NamedTuple

from hookbridge.errors import PrivateNameMovedError as PrivateNameMovedError


class PrivateName(NamedTuple):
    """Where a private object lives and why no public one serves.

    Attributes:
      path: `"module:attribute"`, or `"module"` for a module.
      why: what it is needed for.
      min_tf: first TF version `(major, minor)` on which it is needed.
      max_tf: last TF version on which it is needed; None for "up to the newest".
    """

    path: str
    why: str
    min_tf: tuple[int, int] = (2, 15)
    max_tf: tuple[int, int] | None = None


PRIVATE: dict[str, PrivateName] = {
    "add_control_inputs": PrivateName(
        "tensorflow.python.framework.ops:Operation._add_control_inputs",
        "make a tower's deferred update wait for the update with averaged gradients",
    ),
    "remove_control_inputs": PrivateName(
        "tensorflow.python.framework.ops:Operation._remove_all_control_inputs",
        "make a tower wait for the first tower's update of a shared variable",
    ),
    "eager_mode": PrivateName(
        "tensorflow.python.eager.context:eager_mode",
        "run callbacks eagerly while a v1 graph is the default graph",
    ),
    "graph_mode": PrivateName(
        "tensorflow.python.eager.context:graph_mode",
        "run v1 code in graph mode from an eager thread",
    ),
    "BaseResourceVariable": PrivateName(
        "tensorflow.python.ops.resource_variable_ops:BaseResourceVariable",
        "a graph-mode variable over a handle that is a placeholder",
    ),
    "ResourceVariable": PrivateName(
        "tensorflow.python.ops.resource_variable_ops:ResourceVariable",
        "the class of eager variables, of which we make one that tells of its use",
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
        "read the profile that stands for the RunMetadata of a step",
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
    "MetricsList": PrivateName(
        "keras.src.trainers.compile_utils:MetricsList",
        "where Keras 3 callbacks look up whether a metric should rise or fall",
        min_tf=(2, 16),
    ),
    "evaluate_once": PrivateName(
        "tensorflow.python.training.evaluation:_evaluate_once",
        "the names of an Estimator's `eval_metric_ops`, which are in no graph",
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
        "the deprecation marks of the Estimator package's symbols",
        min_tf=(2, 16),
    ),
    "distribute_coordinator": PrivateName(
        "tensorflow.python.distribute.distribute_coordinator",
        "runs the tasks of an Estimator with a strategy over several workers",
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
def tf_version() -> tuple[int, int]:
    """The running TensorFlow's `(major, minor)`."""
    import tensorflow as tf

    match = re.match(r"(\d+)\.(\d+)", tf.__version__)
    assert match is not None
    return int(match[1]), int(match[2])


@functools.cache
def private(key: str) -> Any:
    """The private object filed under `key` in `PRIVATE`.

    Raises:
      PrivateNameMovedError: the running TF or Keras does not have it there.
    """
    row = PRIVATE[key]
    module_name, _, attribute = row.path.partition(":")
    try:
        module = importlib.import_module(module_name)
        return operator.attrgetter(attribute)(module) if attribute else module
    except (ImportError, AttributeError) as e:
        raise PrivateNameMovedError(
            f"hookbridge needs `{row.path}` ({row.why}), which TensorFlow "
            f"{'.'.join(map(str, tf_version()))} does not have there. Use a "
            "TensorFlow version listed in the README or report this version."
        ) from e


def keras_flavours() -> tuple[Any, ...]:
    """The Keras modules in this process: `keras` and/or `tf_keras`.

    `tf.keras` is one of them. A flavour that nobody has imported yet cannot
    have made a guest, so it is not imported here.
    """
    import tensorflow as tf

    tf.keras.callbacks.Callback  # noqa: B018 - loads what `tf.keras` stands for
    return tuple(
        module
        for name in ("keras", "tf_keras")
        if (module := sys.modules.get(name)) is not None
        and hasattr(module, "callbacks")
    )


def is_keras3(module: Any) -> bool:
    """Whether a Keras module is Keras 3."""
    return str(getattr(module, "__version__", "2")).startswith("3")


def session_config(session: Any) -> Any:
    """The `ConfigProto` of a `tf.compat.v1.Session`; None if it has the default.

    Raises:
      PrivateNameMovedError: the running TF does not keep it where it used to.
    """
    try:
        return session._config
    except AttributeError as e:
        raise PrivateNameMovedError(
            "hookbridge needs `tf.compat.v1.Session._config` (whether plain runs "
            "write metadata), which the running TensorFlow does not have."
        ) from e


def variable_handle(variable: Any) -> Any:
    """The handle of an eager variable as the object holds it, past any property.

    Raises:
      PrivateNameMovedError: the running TF does not keep it where it used to.
    """
    try:
        return variable.__dict__["_handle"]
    except KeyError as e:
        raise PrivateNameMovedError(
            "hookbridge needs `ResourceVariable._handle` (to bring a variable that a "
            "callback keeps up to date when it is used), which the running TensorFlow "
            "does not have."
        ) from e


def remote_value_is_ready(value: Any) -> bool:
    """Whether a `RemoteValue` of a `ClusterCoordinator` can be got without waiting.

    That is when the coordinator has copied it, or knows that there is none.

    Raises:
      PrivateNameMovedError: the running TF does not keep it where it used to.
    """
    try:
        return bool(value._has_fetched_to_local or value._error is not None)
    except AttributeError as e:
        raise PrivateNameMovedError(
            "hookbridge needs `RemoteValue._has_fetched_to_local` and `._error` "
            "(whether a scheduled step is done), which the running TensorFlow does "
            "not have."
        ) from e


def worker_specs(arguments: Any) -> Any:
    """The arguments of a scheduled function as worker 0 gets them, for tracing.

    Raises:
      PrivateNameMovedError: the running TF does not keep it where it used to.
    """
    import tensorflow as tf

    def spec(argument: Any) -> Any:
        if isinstance(argument, tf.distribute.experimental.coordinator.PerWorkerValues):
            return argument._values[0]._type_spec
        return argument

    try:
        return [spec(argument) for argument in arguments]
    except AttributeError as e:
        raise PrivateNameMovedError(
            "hookbridge needs `PerWorkerValues._values[0]._type_spec` (what a "
            "scheduled function is traced for), which the running TensorFlow does "
            "not have."
        ) from e


def coordinated_cluster(strategy: Any) -> Any:
    """The `Cluster` of a `ParameterServerStrategy`; None before it has one.

    It has threads that `stop()` ends, each after what it is doing.

    Raises:
      PrivateNameMovedError: the running TF does not keep it where it used to.
    """
    try:
        coordinator = strategy._cluster_coordinator
        return None if coordinator is None else coordinator._cluster
    except AttributeError as e:
        raise PrivateNameMovedError(
            "hookbridge needs `ParameterServerStrategy._cluster_coordinator._cluster` "
            "(to end its threads before the process ends), which the running "
            "TensorFlow does not have."
        ) from e


def coordinator_threads() -> list[threading.Thread]:
    """The threads of all `ClusterCoordinator`s, which are known by their names."""
    names = ("WorkerClosureProcessingLoop", "WorkerPreemptionHandler")
    return [each for each in threading.enumerate() if each.name.startswith(names)]


def connected_jobs() -> tuple[str, ...]:
    """The jobs of the cluster that the eager runtime is connected to, if any."""
    definition = private("eager_context")().get_server_def()
    return () if definition is None else tuple(j.name for j in definition.cluster.job)


def withdraw_stop(run_context: Any) -> None:
    """Takes a `request_stop` of a `SessionRunContext` back.

    Raises:
      PrivateNameMovedError: the running TF does not keep it where it used to.
    """
    if not hasattr(run_context, "_stop_requested"):
        raise PrivateNameMovedError(
            "hookbridge needs `SessionRunContext._stop_requested` (to stop after steps "
            "that have been scheduled already), which the running TensorFlow does not "
            "have."
        )
    run_context._stop_requested = False

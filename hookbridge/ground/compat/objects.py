"""Functions that read, or set, private attributes of TensorFlow's objects."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from hookbridge.errors import PrivateNameMovedError
from hookbridge.ground.compat.private_objects import private
from hookbridge.ground.protocols import Variable

_F = TypeVar("_F", bound=Callable[..., Any])


def _needs(attributes: str, why: str) -> Callable[[_F], _F]:
    """Make a function raise an error that names a missing attribute."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except (AttributeError, KeyError) as e:
                raise PrivateNameMovedError(
                    f"hookbridge needs `{attributes}` ({why}), which the running "
                    "TensorFlow does not have."
                ) from e

        return cast(_F, call)

    return decorate


@_needs("tf.compat.v1.Session._config", "whether plain runs write metadata")
def session_config(session: Any) -> Any:
    """Return the `ConfigProto` of a `tf.compat.v1.Session`.

    None if it has the default.
    """
    return session._config


@_needs("ResourceVariable._handle", "to update a callback's variable when it is used")
def variable_handle(variable: Variable) -> Any:
    """Return the handle that an eager variable holds.

    A property of that name is bypassed.
    """
    return variable.__dict__["_handle"]


@_needs(
    "RemoteValue._has_fetched_to_local` and `._error",
    "whether a scheduled step is done",
)
def remote_value_is_ready(value: Any) -> bool:
    """Return whether a coordinator's `RemoteValue` can be read without waiting.

    It can if the coordinator has copied it, or has got an error in its place.
    """
    return bool(value._has_fetched_to_local or value._error is not None)


@_needs(
    "PerWorkerValues._values[0]._type_spec", "what a scheduled function is traced for"
)
def worker_specs(arguments: Any) -> list[Any]:
    """Return a scheduled function's arguments as worker 0 gets them, to trace."""
    import tensorflow as tf

    per_worker = tf.distribute.experimental.coordinator.PerWorkerValues
    return [
        a._values[0]._type_spec if isinstance(a, per_worker) else a for a in arguments
    ]


@_needs(
    "ParameterServerStrategy._cluster_coordinator._cluster",
    "to end its threads before the process ends",
)
def coordinated_cluster(strategy: Any) -> Any:
    """Return the `Cluster` of a `ParameterServerStrategy`; None before it has one.

    Its method `stop()` ends its threads; each one first finishes what it is doing.
    """
    coordinator = strategy._cluster_coordinator
    return None if coordinator is None else coordinator._cluster


def coordinator_threads() -> list[threading.Thread]:
    """Return the threads of all `ClusterCoordinator`s, recognised by their names."""
    names = ("WorkerClosureProcessingLoop", "WorkerPreemptionHandler")
    return [thread for thread in threading.enumerate() if thread.name.startswith(names)]


def connected_jobs() -> tuple[str, ...]:
    """Return the jobs of the cluster that the eager runtime is connected to, if any."""
    definition = private("eager_context")().get_server_def()
    return () if definition is None else tuple(j.name for j in definition.cluster.job)


@_needs(
    "SessionRunContext._stop_requested",
    "to stop after steps that are scheduled already",
)
def withdraw_stop(run_context: Any) -> None:
    """Take a `request_stop` of a `SessionRunContext` back."""
    run_context._stop_requested  # noqa: B018 - raises if it has moved
    run_context._stop_requested = False


@_needs("DataHandler._inferred_steps", "to end a loop of Keras 2 without a warning")
def forget_number_of_steps(data_handler: Any) -> None:
    """Let the data of a loop of Keras 2 end at any step, as if of unknown size."""
    data_handler._inferred_steps  # noqa: B018 - raises if it has moved
    data_handler._inferred_steps = None

"""What the bridge asks of a hook, a callback, a model and a session.

TensorFlow and Keras have no types, and each has several classes for the same thing
(Keras 2, tf_keras, Keras 3). These are the methods and fields that all of them have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

# A context in which nobody looks at what `with ... as` gives.
Context = AbstractContextManager[Any]
# What a native loop calls its step with.
Arguments = tuple[Any, ...]
# What Keras passes to `on_*` methods of callbacks.
Logs = Mapping[str, Any] | None
# A function whose arguments nobody here looks at.
AnyFunction = Callable[..., Any]


class Graph(Protocol):
    """A graph of operations: `tf.Graph`."""

    graph_def_versions: Any
    version: int

    def as_default(self) -> Context: ...

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any: ...

    def as_graph_def(self) -> Any: ...

    def add_to_collection(self, name: str, value: object) -> None: ...

    def clear_collection(self, name: str) -> None: ...

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]: ...

    def get_collection_ref(self, name: str) -> list[Any]: ...

    def get_name_scope(self) -> str: ...

    def get_operation_by_name(self, name: str) -> Any: ...

    def get_operations(self) -> list[Any]: ...

    def get_tensor_by_name(self, name: str) -> Any: ...

    def unique_name(self, name: str) -> str: ...


class Operation(Protocol):
    """An operation of a graph: `tf.Operation`."""

    name: str
    type: str
    inputs: Any
    outputs: list[Any]
    control_inputs: list[Any]
    node_def: Any
    op_def: Any


class Tensor(Protocol):
    """A tensor of a graph: `tf.Tensor`, without its arithmetic."""

    name: str
    op: Any
    graph: Any
    dtype: Any
    shape: Any

    def consumers(self) -> list[Any]: ...


class Variable(Protocol):
    """A variable of TensorFlow, in a graph or eager: `tf.Variable`."""

    name: str
    op: Any
    graph: Any
    device: str
    dtype: Any
    shape: Any

    def numpy(self) -> Any: ...

    def assign(self, value: Any) -> Any: ...


class Optimizer(Protocol):
    """An optimizer of TensorFlow 1, or of any Keras."""

    def apply_gradients(self, grads_and_vars: Any) -> Any: ...


class Saver(Protocol):
    """Saves and restores variables of a session: `tf.compat.v1.train.Saver`."""

    def save(self, sess: Any, save_path: Any, global_step: Any = None) -> Any: ...

    def restore(self, sess: Any, save_path: Any) -> None: ...


class Coordinator(Protocol):
    """Ends the threads of a session: `tf.train.Coordinator`."""

    joined: bool

    def should_stop(self) -> bool: ...

    def request_stop(self, ex: object = None) -> None: ...

    def wait_for_stop(self, timeout: float | None = None) -> bool: ...

    def join(
        self,
        threads: Any = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None: ...

    def raise_requested_exception(self) -> None: ...


class Session(Protocol):
    """A session on a graph, as hooks get it: `tf.compat.v1.Session`."""

    graph: Any

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any: ...

    def close(self) -> None: ...


class RunContext(Protocol):
    """What a hook gets of the run that it may add to: a `SessionRunContext`."""

    original_args: Any
    session: Any
    stop_requested: bool

    def request_stop(self) -> None: ...


class RunValues(Protocol):
    """What a run gave: a `SessionRunValues`."""

    results: Any


class Hook(Protocol):
    """A `tf.compat.v1.train.SessionRunHook`, or an object with its five methods."""

    def begin(self) -> None: ...

    def after_create_session(self, session: Session, coord: Coordinator) -> None: ...

    def before_run(self, run_context: RunContext) -> Any: ...

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None: ...

    def end(self, session: Session) -> None: ...


class KerasModel(Protocol):
    """A model of any Keras: what the bridge asks of it."""

    name: str
    optimizer: Any
    stop_training: bool
    history: Any
    run_eagerly: bool
    # Those of Keras 2 alone.
    _cluster_coordinator: Any
    _distribution_strategy: Any
    _steps_per_execution: Any
    _train_counter: Any
    distribute_strategy: Any
    metrics: list[Any]
    metrics_names: list[str]
    output_names: list[str]
    trainable_variables: list[Any]
    trainable_weights: list[Any]
    variables: list[Any]
    weights: list[Any]

    def compile(self, *args: Any, **kwargs: Any) -> None: ...

    def export(self, *args: Any, **kwargs: Any) -> Any: ...

    def get_metrics_result(self) -> Any: ...

    def get_weights(self) -> list[Any]: ...


class Callback(Protocol):
    """A callback of any Keras; its `on_*` methods are in `ground.lifecycle`."""

    params: Any
    model: Any

    def set_params(self, params: Any) -> None: ...

    def set_model(self, model: KerasModel) -> None: ...

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

    def as_default(self) -> Context:
        """Return a context in which new operations go into this graph."""

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """Return the tensor or the operation that an object or a name means."""

    def as_graph_def(self) -> Any:
        """Return the nodes as a `GraphDef`."""

    def add_to_collection(self, name: str, value: object) -> None:
        """Add a value to a collection."""

    def clear_collection(self, name: str) -> None:
        """Remove all values of a collection."""

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """Return a copy of a collection, or of its items in a scope."""

    def get_collection_ref(self, name: str) -> list[Any]:
        """Return a collection itself: what is added to the list is in it."""

    def get_name_scope(self) -> str:
        """Return the name scope in which the next operation would be."""

    def get_operation_by_name(self, name: str) -> Any:
        """Return the operation of a name."""

    def get_operations(self) -> list[Any]:
        """Return all operations, in the order in which they were made."""

    def get_tensor_by_name(self, name: str) -> Any:
        """Return the tensor of a name such as `loss:0`."""

    def unique_name(self, name: str) -> str:
        """Return a name that no operation has, and take it."""


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

    def consumers(self) -> list[Any]:
        """Return the operations that take the tensor."""


class Variable(Protocol):
    """A variable of TensorFlow, in a graph or eager: `tf.Variable`."""

    name: str
    op: Any
    graph: Any
    device: str
    dtype: Any
    shape: Any

    def numpy(self) -> Any:
        """Return the value of an eager variable."""

    def assign(self, value: Any) -> Any:
        """Set the value of an eager variable, or return the op that does."""


class Optimizer(Protocol):
    """An optimizer of TensorFlow 1, or of any Keras."""

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """Update variables by `[(gradient, variable)]`."""


class Saver(Protocol):
    """Saves and restores variables of a session: `tf.compat.v1.train.Saver`."""

    def save(self, sess: Any, save_path: Any, global_step: Any = None) -> Any:
        """Write a checkpoint; return its path."""

    def restore(self, sess: Any, save_path: Any) -> None:
        """Set the variables of a session to the values in a checkpoint."""


class Coordinator(Protocol):
    """Ends the threads of a session: `tf.train.Coordinator`."""

    joined: bool

    def should_stop(self) -> bool:
        """Return whether a stop was requested."""

    def request_stop(self, ex: object = None) -> None:
        """Ask all threads to stop, because of an exception or None."""

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait for the request of a stop; return whether it came."""

    def join(
        self,
        threads: Any = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for the threads, and raise what ended one of them."""

    def raise_requested_exception(self) -> None:
        """Raise what the stop was requested with, if anything."""


class Session(Protocol):
    """A session on a graph, as hooks get it: `tf.compat.v1.Session`."""

    graph: Any

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Return the values of fetches; those of `feed_dict` are fed."""

    def close(self) -> None:
        """End the session."""


class RunContext(Protocol):
    """What a hook gets of the run that it may add to: a `SessionRunContext`."""

    original_args: Any
    session: Any
    stop_requested: bool

    def request_stop(self) -> None:
        """Ask the loop to stop after this run."""


class RunValues(Protocol):
    """What a run gave: a `SessionRunValues`."""

    results: Any


class Hook(Protocol):
    """A `tf.compat.v1.train.SessionRunHook`, or an object with its five methods."""

    def begin(self) -> None:
        """Add to the graph, before the session is created."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Look at a new session; the graph is finalized."""

    def before_run(self, run_context: RunContext) -> Any:
        """Return the `SessionRunArgs` to add to a run, or None."""

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Take the results of what `before_run` has added."""

    def end(self, session: Session) -> None:
        """Look at the session for the last time; not after an error."""


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

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Set the optimizer, the losses and the metrics."""

    def export(self, *args: Any, **kwargs: Any) -> Any:
        """Write a SavedModel for serving."""

    def get_metrics_result(self) -> Any:
        """Return the metrics up to now, by name."""

    def get_weights(self) -> list[Any]:
        """Return the values of all weights, as NumPy arrays."""


class Callback(Protocol):
    """A callback of any Keras; its `on_*` methods are in `ground.lifecycle`."""

    params: Any
    model: Any

    def set_params(self, params: Any) -> None:
        """Take what the loop says of itself: its epochs and steps."""

    def set_model(self, model: KerasModel) -> None:
        """Take the model that the loop trains."""


class CallbackList(Protocol):
    """What a loop of any Keras calls: it calls each of its callbacks."""

    callbacks: list[Any]

"""Hooks that cannot be carried into `fit`, with the reason and the way out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import kinds, written
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.keras_model.optimizers import tf_variable
from hookbridge.ground import compat
from hookbridge.ground.protocols import Graph, Hook

# Class name -> (reason, way out). Most of these classes are private, or exist in some
# TensorFlow versions only.
REFUSED_HOOKS: dict[str, tuple[str, str]] = {
    "_SyncReplicasOptimizerHook": (
        "it drives the token queues of `SyncReplicasOptimizer` in a session cluster",
        "train synchronously with a `tf.distribute` strategy, or keep the session loop",
    ),
    "InMemoryEvaluatorHook": (
        "it evaluates a `model_fn` with the variables of the Estimator's graph, which "
        "the Keras model does not have",
        "pass `validation_data` to `fit`",
    ),
    "CheckpointInputPipelineHook": (
        "it saves the iterator of an input pipeline, and Keras keeps its own",
        "use `tf.keras.callbacks.BackupAndRestore`",
    ),
    **dict.fromkeys(
        (
            "DumpingDebugHook",
            "LocalCLIDebugHook",
            "GrpcDebugHook",
            "TensorBoardDebugHook",
        ),
        (
            "it is a debugger of real sessions and needs their partition graphs",
            "use `tf.debugging.experimental.enable_dump_debug_info`",
        ),
    ),
    **dict.fromkeys(
        (
            "TPUInfeedOutfeedSessionHook",
            "TPUInfeedOutfeedSessionHookForPrediction",
            "_TPUStopAtStepHook",
            "GracefulShutdownHook",
            "CloudTPUPreemptedHook",
        ),
        (
            "it works on the infeed, outfeed or workers of a TPU session",
            "use `tf.distribute.TPUStrategy` with Keras callbacks",
        ),
    ),
}

# Hooks of TensorFlow that fetch what their constructors take. A class below may put
# something else in its place in `begin`.
_FETCHING = ("FinalOpsHook", "LoggingTensorHook", "NanTensorHook", "SummarySaverHook")


def check_hook(hook: Hook, graph: Graph | None = None) -> None:
    """Refuse a hook that `fit` can never host.

    Args:
      hook: the hook.
      graph: the graph that hooks see, after `begin`; None before that, when a hook may
        have tensors of an earlier loop.

    Raises:
      errors.RefusedError: its class cannot run in `fit`, or it has tensors of another
        graph.
    """
    check_class(hook, REFUSED_HOOKS, "in `Model.fit`", see="hook in fit")
    if graph is not None or tf.compat.v1.executing_eagerly_outside_functions():
        check_graph(hook, graph)


def check_backend(hook: Hook, flavours: Sequence[Any]) -> None:
    """Refuse a hook if no Keras, of several, computes with TensorFlow.

    Args:
      hook: the hook.
      flavours: the modules of the installed flavours of Keras.

    Raises:
      errors.RefusedError: all of them have another backend.
    """
    backends = {compat.keras_backend(keras): keras for keras in flavours}
    if "tensorflow" not in backends:
        raise errors.RefusedError(
            f"`{kinds.name_of(hook)}` cannot run in `Model.fit`: Keras computes with "
            f"`{next(iter(backends))}` here, and hooks see the graph of a TensorFlow "
            "step. Instead, set `KERAS_BACKEND=tensorflow`, which is the default, or "
            f"make the model with {compat.keras_2_advice()}. Callbacks run as they "
            "are.",
            see="hook in fit",
        )


def check_class(
    hook: Hook,
    table: Mapping[str, tuple[str, str]],
    where: str,
    see: str = "hook in fit",
) -> None:
    """Refuse a hook whose class or base class is in a table: TensorFlow's or ours.

    Args:
      hook: the hook.
      table: `{class name: (reason, way out)}`.
      where: where it cannot run, for the message, such as "in `Model.fit`".
      see: the topic of the page that the error names.

    Raises:
      errors.RefusedError: the table has its class.
    """
    for cls in type(hook).__mro__:
        if cls.__name__ in table and cls.__module__.startswith(
            ("tensorflow", "hookbridge")
        ):
            reason, way_out = table[cls.__name__]
            raise errors.RefusedError(
                f"`{kinds.name_of(hook)}` cannot run {where}: {reason}. Instead, "
                f"{way_out}.",
                see=see,
            )


def check_graph(hook: Hook, graph: Graph | None = None) -> None:
    """Refuse a hook that holds tensors or ops of the user's own graph."""
    # `graph` is the live graph, after `begin`. Without it, an element passes if its
    # graph has had a session: an earlier loop may have left it, and `begin` replaces
    # it.
    for attribute, element, its_graph in _elements(hook):
        is_current = its_graph is graph
        if is_current if graph is not None else _has_had_a_session(its_graph):
            continue
        name = str(getattr(element, "name", type(element).__name__))
        raise errors.RefusedError(
            f"`{kinds.name_of(hook)}` cannot run in `Model.fit`: its attribute "
            f"`{attribute}` holds `{name}`, which does not belong to the graph that "
            "hooks see there. Make the hook in `begin`, on that graph: "
            f"`hb.in_begin(lambda: {kinds.name_of(hook)}(...))`; or give it the name "
            'of a tensor of the step, such as "loss:0".',
            see="hook made of tensors",
        )


def _has_had_a_session(graph: Graph) -> bool:
    """Return whether a `MonitoredSession` has run on a graph, by its ready op."""
    return isinstance(graph, tf.Graph) and (
        graph.finalized or bool(graph.get_collection(tf.compat.v1.GraphKeys.READY_OP))
    )


def _elements(hook: Hook) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a hook's attributes, and containers there, have that can be fetched.

    Yields the attribute, the element and its graph, None for what no graph has: a
    symbolic tensor, and what is eager in a hook that fetches what it was made of. A
    user's own hook may hold eager tensors for itself.
    """
    cls = type(hook)
    fetches_all = cls.__name__ in _FETCHING and cls.__module__.startswith("tensorflow")
    for attribute, value in getattr(hook, "__dict__", {}).items():
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, Mapping):
                stack.extend(item.values())
            elif isinstance(item, (list, tuple, set)):
                stack.extend(item)
            elif type(item).__name__ == "KerasTensor":
                yield attribute, item, None
            elif not isinstance(item, (str, bytes, int, float, type(None))):
                graphs = map(_graph_of, _fetched_parts(item))
                graph = next((g for g in graphs if g is not None), None)
                if graph is not None:
                    yield attribute, item, graph
                elif fetches_all and _is_eager(item):
                    yield attribute, item, None


def _is_eager(item: object) -> bool:
    """Return whether an item is a tensor or variable of the eager runtime."""
    value = tf_variable(item)
    return isinstance(value, tf.Variable) or tf.is_tensor(value)


def _graph_of(item: Any) -> Any:
    """Return the graph of a tensor, operation or variable; None if it is of none."""
    if hasattr(item, "_as_graph_element") or isinstance(
        item, (tf.Tensor, tf.Operation)
    ):
        # Those of the eager runtime raise errors of several kinds.
        with contextlib.suppress(Exception):
            return item.graph if isinstance(item.graph, tf.Graph) else None
    return None


def _fetched_parts(item: object) -> list[Any]:
    """Return what `Session.run(item)` would look for in its graph."""
    recorder = _Seen()
    with recorder.as_default(), contextlib.suppress(TypeError):
        compat.private("FetchMapper").for_fetch(item)
    return recorder.elements


class _Seen(tf.Graph):  # type: ignore[misc]
    """A graph that has everything, and keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Any] = []

    def as_graph_element(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        self.elements.append(obj)
        return obj


def check_start(guest: Guest, global_step: int) -> None:
    """Refuse a hook that cannot do its work from the first step on."""
    written.check_files(guest, [guest])
    wait = getattr(guest.item, "_wait_until_step", 0)
    if guest.name == "GlobalStepWaiterHook" and wait > global_step:
        raise errors.RefusedError(
            f"`GlobalStepWaiterHook(wait_until_step={wait})` would wait for ever in "
            f"`Model.fit`: the global step is {global_step} and no other worker moves "
            "it. Leave the hook out, or give it a step that has passed.",
            see="live session",
        )

"""An eager clone of a Keras 2 model that lives in a graph.

The values of the model in the graph are in the session. The clone has the same layers
and takes the session's weights, so that all that Keras does with a model (files of
every format, `predict`, `summary`) works on it unchanged.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.ground import compat
from hookbridge.ground.arguments import shown
from hookbridge.ground.protocols import KerasModel


def keras_of(model: KerasModel) -> Any:
    """Return the Keras module of a model, or None if it is not a Keras model."""
    keras = kinds.keras_behind(model)
    return keras if keras is not None and isinstance(model, keras.Model) else None


def check(model: KerasModel) -> None:
    """Refuse what cannot be the model of a graph."""
    keras = keras_of(model)
    if keras is None:
        raise errors.InvalidArgumentError(
            f"`model` is {shown(model)}; expected the tf.keras or tf_keras model that "
            "was built inside the graph, or a function without arguments that returns "
            "it."
        )
    if compat.is_keras3(keras):
        raise errors.RefusedError(
            "`model` is a Keras 3 model "
            f"(`{type(model).__module__}.{type(model).__name__}`). A Keras 3 model "
            "is incomplete in the graph of a session loop: steps train its weights, "
            "but do not run the other updates of its layers (such as the moving "
            "averages of BatchNormalization). Build it with "
            f"{compat.keras_2_advice()}; Keras 3 callbacks work with it.",
            see="model in a session",
        )


class Clone:
    """A clone whose weights follow the session, made when it is first needed."""

    def __init__(self, source: Any, weights: LiveWeights) -> None:
        self._source = source
        self._weights = weights
        self._model: Any = None
        self._reason: str | None = None
        weights.mirrors.before_first(self._make)

    @property
    def model(self) -> Any:
        """The eager clone, or None if the model cannot be cloned."""
        self._make()
        return self._model

    @property
    def reason(self) -> str:
        """Why there is no clone; empty if there is one."""
        self._make()
        return self._reason or ""

    def _make(self) -> None:
        """Clone the user's model on the session's variables, or note why not."""
        if self._reason is not None:
            return
        self._reason = ""
        with compat.private("eager_mode")():
            try:
                with tf.variable_creator_scope(_zeros):
                    self._model = _clone(self._source)
            except Exception as e:  # whatever a user's get_config raises
                self._reason = f"{type(e).__name__}: {e}"
                return
        for variable, weight in zip(
            self._weights.all, self._model.weights, strict=True
        ):
            self._weights.mirrors.adopt(variable, weight)

    def filled(self) -> Any:
        """Return the clone with the session's present weights."""
        self._weights.mirrors.fill(self._weights.all)
        return self._model

    def handed_out(self) -> Any:
        """Return the clone.

        Its weights take the session's values when they are used.
        """
        self._weights.mirrors.hand_out(self._weights.all)
        return self._model

    def attribute(self, name: str) -> Any:
        """Return an attribute of the clone for a callback."""
        if callable(getattr(self.model, name)):
            # It may be a compiled function, whose use of weights is not seen.
            self._weights.mirrors.fill_for_methods(self._weights.all)
        else:
            self.handed_out()
        # Read again: a property may have computed `found` from older weights.
        return getattr(self.model, name)

    def states(self) -> list[Any]:
        """Return the graph variables with the states of stateful recurrent layers."""
        return [
            state
            for layer in self._source.layers
            if getattr(layer, "stateful", False)
            for state in tf.nest.flatten(getattr(layer, "states", None))
            if isinstance(state, tf.Variable)
        ]

    def __bool__(self) -> bool:
        """Return whether the model can be cloned; makes the clone."""
        return self.model is not None


def require_clone(clone: Clone | None, what: str) -> Clone:
    """Return the clone, for an attribute of the model that only a Keras model has."""
    if clone:
        return clone
    why = "there is no Keras model in its graph"
    if clone is not None:
        why = f"its graph's model cannot be cloned ({clone.reason})"
    raise errors.LiveModelError(
        f"`model.{what}` was asked for, but this callback runs in a session loop "
        f"under hookbridge and {why}. Give the tf.keras/tf_keras model of the "
        "graph as `as_hooks(..., model=model)`; `get_weights`, `set_weights`, "
        "`save_weights` and `load_weights` work without one.",
        see="model in a session",
    )


def _zeros(make: Any, **options: Any) -> Any:
    """Make a variable of zeros, if its shape is known: the session has its value."""
    shape, dtype = options.get("shape"), options.get("dtype")
    if callable(options.get("initial_value")) and dtype is not None:
        dims = None if shape is None else tf.TensorShape(shape)
        if dims is not None and dims.is_fully_defined():
            options["initial_value"] = lambda: tf.zeros(dims, dtype)
    return make(**options)


def _clone(source: Any) -> Any:
    """Clone a model without optimizer and loss: these stay in the graph."""
    if getattr(source, "_is_graph_network", False):
        clone = keras_of(source).models.clone_model(source)
    else:
        clone = type(source).from_config(source.get_config())
        if not clone.built:
            _build(clone, source)
    cloned, weights = list(clone.weights), list(source.weights)
    if [tuple(w.shape) for w in cloned] != [tuple(w.shape) for w in weights]:
        raise ValueError(
            "the clone's weights differ from the model's: "
            f"{[w.name for w in cloned]} instead of {[w.name for w in weights]}"
        )
    return clone


def _build(clone: Any, source: Any) -> None:
    """Make the variables of a subclassed model as the call in the graph did."""
    spec = source.save_spec()
    shape = getattr(source, "_build_input_shape", None)
    if spec is not None:
        # Traced, not run: dimensions may be unknown.
        tf.function(clone.__call__).get_concrete_function(*spec[0], **spec[1])
    elif shape is not None:
        clone.build(shape)

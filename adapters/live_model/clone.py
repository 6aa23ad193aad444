"""An eager clone of a Keras 2 model that lives in a graph.

The model in the graph has no values of its own: they are in the session. The clone
has the same layers and takes the session's weights, so that everything Keras does
with a model (HDF5, `.keras` and SavedModel files, `predict`, `summary`) works on it
unchanged.
"""

from __future__ import annotations

import sys
from typing import Any

from hookbridge import compat, errors


def keras_of(model: Any) -> Any:
    """The Keras module that a model belongs to, or None if it is no Keras model."""
    for base in type(model).__mro__:
        root = base.__module__.partition(".")[0]
        if root in ("keras", "tf_keras") and base.__name__ == "Model":
            return sys.modules[root]
    return None


def check(model: Any) -> None:
    """Refuses what cannot be the model of a graph.

    Raises:
      errors.RefusedError: a Keras 3 model.
      errors.InvalidArgumentError: no Keras model at all.
    """
    keras = keras_of(model)
    if keras is None:
        raise errors.InvalidArgumentError(
            f"`model` is {model!r}; expected the tf.keras or tf_keras model that was "
            "built inside the graph, or a function without arguments that returns it."
        )
    if compat.is_keras3(keras):
        raise errors.RefusedError(
            f"`model` is a Keras 3 model (`{type(model).__module__}."
            f"{type(model).__name__}`). A Keras 3 model is not whole in the graph of a "
            "session loop: no step runs what its layers update beside the trained "
            "weights (moving averages of BatchNormalization). Build it with "
            "`tf_keras` (pip install tf_keras), which is the Keras of TF1 graphs; "
            "Keras 3 callbacks work with it."
        )


class ShadowModel:
    """The clone and how its weights follow the session.

    Args:
      model: a Keras 2 model whose variables are in a graph.

    Attributes:
      model: the eager clone, or None if the model cannot be cloned.
      reason: why there is none.
    """

    def __init__(self, model: Any) -> None:
        self._source = model
        self.model: Any = None
        self.reason = ""
        with compat.private("eager_mode")():
            try:
                self.model = self._clone()
            except Exception as e:  # whatever a user's get_config raises
                self.reason = f"{type(e).__name__}: {e}"

    def _clone(self) -> Any:
        source = self._source
        keras = keras_of(source)
        if getattr(source, "_is_graph_network", False):
            clone = keras.models.clone_model(source)
        else:
            clone = type(source).from_config(source.get_config())
            shape = getattr(source, "_build_input_shape", None)
            if not clone.built and shape is not None:
                clone.build(shape)
        ours, theirs = list(clone.weights), list(source.weights)
        if [tuple(w.shape) for w in ours] != [tuple(w.shape) for w in theirs]:
            raise ValueError(
                "the clone's weights differ from the model's: "
                f"{[w.name for w in ours]} instead of {[w.name for w in theirs]}"
            )
        # Keras 2 writes optimizer and loss into a file if the model has them; the
        # graph's are the session's, so the clone has none.
        return clone

    def states(self) -> list[Any]:
        """The graph variables that hold the states of stateful recurrent layers."""
        import tensorflow as tf

        return [
            state
            for layer in self._source.layers
            if getattr(layer, "stateful", False)
            for state in tf.nest.flatten(getattr(layer, "states", None))
            if isinstance(state, tf.Variable)
        ]

    def __bool__(self) -> bool:
        return self.model is not None

"""The model that a callback sees in a session loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.adapters.live_model.clone import ShadowModel
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.files import LiveModelUse
from hookbridge.adapters.live_model.optimizer import LiveOptimizer
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph import variables as session_variables


class LiveModel(LiveModelUse, tf.__internal__.tracking.AutoTrackable):  # type: ignore[misc]
    """Stands for the model of a session loop, as `callback.model`.

    Weights are those of the running session, whichever way they are read or set.
    With a Keras 2 model in the graph everything that Keras does with a model works,
    on an eager clone that takes the session's weights; with a bare graph the weights
    are its model variables.

    Args:
      weights: the session's weights.
      optimizer: learning rate and global step.
      counters: the batch counters.
      shadow: the clone, or None with a bare graph.
      metrics: names of the entries of `logs`.
      graph: the session's graph.
      evaluate: a function that validates and returns `{metric: value}`, or None.
      backups: weights files that have to hold the whole session.

    Attributes:
      stop_training: set by callbacks to end training after this step.
      history: the `History` callback, if there is one.
      optimizer: a `LiveOptimizer`.
    """

    # As a trackable object the model has the session's variables as children, and
    # nothing that is set on it.
    _self_setattr_tracking = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "optimizer" and name in self.__dict__:
            raise errors.LiveModelError(
                "`model.optimizer` was set, but this callback runs in a session loop "
                "under hookbridge, where the optimizer is in the graph. Set its "
                "`learning_rate`, or build a graph with the other optimizer."
            )
        # A trackable object leaves out what `getattr` gives already, which would then
        # come from the clone, filled with all weights at each look at `stop_training`.
        object.__setattr__(self, name, value)

    def __init__(
        self,
        *,
        weights: LiveWeights,
        optimizer: LiveOptimizer,
        counters: LiveCounters,
        shadow: ShadowModel | None,
        metrics: Sequence[str],
        graph: Any,
        evaluate: Callable[[], Mapping[str, float]] | None,
        backups: frozenset[str] = frozenset(),
    ) -> None:
        self._live_weights = weights
        self._live_shadow = shadow
        self._live_graph = graph
        self._live_evaluate = evaluate
        self._live_backups = backups
        self._live_counters = counters
        # A weak reference to the run, which `SessionRun` sets.
        self._live_run: Any = None
        # Those that the validation makes and the training does not.
        self._live_test_metrics: list[str] = []
        self.optimizer = optimizer
        self.stop_training = False
        self.history: Any = None
        self.built = True
        self.metrics_names = list(metrics)
        self._training_state: Any = None
        self._initial_epoch: int | None = None
        self._distribution_strategy: Any = None
        self._is_graph_network = bool(
            shadow and getattr(shadow.model, "_is_graph_network", False)
        )

    # --- weights ------------------------------------------------------------

    def get_weights(self) -> list[Any]:
        """The session's weights as numpy arrays."""
        return self._live_weights.read(self._live_weights.all)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assigns numpy arrays to the session's weights."""
        self._live_weights.write(self._live_weights.all, weights)

    @property
    def weights(self) -> list[Any]:
        """Eager variables with the session's values; assigning to them sets them."""
        return self._live_weights.mirrors.of(self._live_weights.all)

    variables = weights

    @property
    def trainable_weights(self) -> list[Any]:
        """The trained ones among `weights`."""
        return self._live_weights.mirrors.of(self._live_weights.trainable)

    trainable_variables = trainable_weights

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The others, such as moving averages."""
        return self._live_weights.mirrors.of(self._live_weights.others)

    non_trainable_variables = non_trainable_weights

    @property
    def layers(self) -> list[Any]:
        """The clone's Keras layers, or the graph's variables grouped by scope."""
        if self._live_shadow:
            return list(self._filled().layers)
        return list(self._live_weights.layers())

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """A layer by name or index, as in Keras."""
        if self._live_shadow:
            return self._filled().get_layer(name=name, index=index)
        layers = self.layers
        if index is not None:
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(
            f"No such layer: {name}. Existing layers are: {[x.name for x in layers]}."
        )

    def count_params(self) -> int:
        """Number of scalars in `weights`."""
        return sum(v.shape.num_elements() or 0 for v in self._live_weights.all)

    # --- metrics and counters ---

    def reset_metrics(self) -> None:
        """The means in `logs` begin anew with the next batch, as in Keras."""
        run = self._live_run and self._live_run()
        if run is not None and run.session is not None:
            run.reset_metrics()

    @property
    def metrics(self) -> list[Any]:
        """Keras metrics of this model's `logs`, with name and direction."""
        return self._live_counters.metrics(
            [*self.metrics_names, *self._live_test_metrics]
        )

    @property
    def distribute_strategy(self) -> Any:
        """TensorFlow's default strategy: one replica, this process."""
        with compat.private("eager_mode")():
            return tf.distribute.get_strategy()

    @property
    def _train_counter(self) -> Any:
        return self._live_counters.variable("train")

    @property
    def _test_counter(self) -> Any:
        return self._live_counters.variable("test")

    @property
    def _predict_counter(self) -> Any:
        return self._live_counters.variable("predict")

    @property
    def train_function(self) -> Any:
        """Where TensorBoard looks for the graph: the session's graph."""
        return _GraphHolder(self._live_graph)

    train_tf_function = train_function

    # --- tf.train.Checkpoint(model=model) saves and restores the whole session ---

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        del args, kwargs
        variables = session_variables.saved_variables(self._live_graph)
        mirrors = self._live_weights.mirrors.of(variables)
        children = {v.op.name: m for v, m in zip(variables, mirrors, strict=True)}
        return {**children, **self.optimizer.fed_rate()}

    def _lookup_dependency(self, name: str, *args: Any) -> Any:
        del args
        return self._trackable_children().get(name)

    # --- the rest -----------------------------------------------------------

    def note_test_metrics(self, names: Iterable[str]) -> None:
        """Adds metrics of a validation to those that callbacks can look up."""
        for name in names:
            if name not in (*self.metrics_names, *self._live_test_metrics):
                self._live_test_metrics.append(name)

    @property
    def not_cloned(self) -> str:
        """Why the graph's Keras model has no clone; empty if it has, or if none."""
        shadow = self._live_shadow
        return "" if shadow is None or shadow else shadow.reason

    def __getattr__(self, name: str) -> Any:
        # Only for what is not defined above.
        if name.startswith(("__", "_live")):
            raise AttributeError(name)
        shadow = self.__dict__.get("_live_shadow")
        if shadow and hasattr(shadow.model, name):
            return getattr(self._filled(), name)
        raise errors.LiveModelError(
            f"`model.{name}` was asked for, but this callback runs in a session loop "
            "under hookbridge, where the model is a graph and a session. It offers "
            f"{', '.join(_offered())}. With `as_hooks(..., model=<the tf.keras or "
            "tf_keras model in the graph>)` it offers everything a Keras model has; "
            "anything else can be read from the graph with a SessionRunHook."
        )


class _GraphHolder:
    """What TensorBoard asks a `tf.function` for when it writes its graph."""

    # Only its presence is looked at.
    function_spec = "session graph"

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self._concrete_variable_creation_fn = self
        self._concrete_stateful_fn = self


def _offered() -> list[str]:
    return sorted(
        name
        for name in (
            *vars(LiveModel),
            *vars(LiveModelUse),
            "optimizer",
            "stop_training",
            "history",
        )
        if not name.startswith("_")
    )

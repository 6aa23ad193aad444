"""The model that a callback sees in a session loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_model.clone import Clone, require_clone
from hookbridge.adapters.live_model.link import Link
from hookbridge.adapters.live_model.model_files import ModelFiles
from hookbridge.adapters.live_model.weights import WeightsView
from hookbridge.adapters.session_graph import session_variables
from hookbridge.ground import compat
from hookbridge.ground.protocols import Graph


class LiveModel(WeightsView, tf.__internal__.tracking.AutoTrackable):  # type: ignore[misc]
    """The stand-in for the model in a session loop: `callback.model`.

    Weights are those of the running session: of a Keras 2 model in the graph, with all
    that Keras does with a model on its eager clone, or the model variables of a bare
    graph.
    """

    # Attributes are not tracked: `_trackable_children` lists the session's variables.
    _self_setattr_tracking = False

    def __setattr__(self, name: str, value: object) -> None:
        if name == "optimizer" and name in self.__dict__:
            raise errors.LiveModelError(
                "`model.optimizer` was set, but this callback runs in a session loop "
                "under hookbridge, where the optimizer is in the graph. Set its "
                "`learning_rate`, or build a graph with the other optimizer.",
                see="model in a session",
            )
        if name == "stop_training" and value:
            self.live_link.note_stop()
        # The `__setattr__` of a trackable object skips a value that `getattr` returns
        # already. Each read of `stop_training` would then go to the clone, which costs
        # work for every weight.
        object.__setattr__(self, name, value)

    # `isinstance`, `clone_model` and trackers see the class of the graph's model.
    def _class_of_clone(self) -> type:
        clone = self._live_clone
        return type(clone.model) if clone else LiveModel

    __class__: Any = property(_class_of_clone)

    def __init__(
        self,
        link: Link,
        *,
        metrics: Sequence[str],
        graph: Graph,
        evaluate: Callable[[], Mapping[str, float]] | None,
        backups: frozenset[str] = frozenset(),
    ) -> None:
        self.live_link: Link = link
        self._live_weights = link.weights
        self._live_graph = graph
        self._live_evaluate = evaluate
        self.optimizer = link.optimizer
        files = ModelFiles(link, graph, backups)
        self.save_weights: Callable[..., None] = files.save_weights
        self.load_weights: Callable[..., None] = files.load_weights
        self.save: Callable[..., None] = files.save
        self.stop_training = False  # set by callbacks to end training after this step
        self.history: Any = None
        self.built = True
        self.metrics_names: list[str] = list(metrics)
        self._training_state: Any = None
        self._initial_epoch: int | None = None
        self._distribution_strategy: Any = None

    @property
    def _live_clone(self) -> Clone | None:
        link = self.__dict__.get("live_link")
        return None if link is None else link.clone

    @property
    def layers(self) -> list[Any]:
        """The clone's Keras layers, or the graph's variables grouped by scope."""
        if self._live_clone:
            return list(self._live_clone.handed_out().layers)
        return list(self._live_weights.layers())

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """Return a layer by name or index, as in Keras."""
        if self._live_clone:
            return self._live_clone.handed_out().get_layer(name=name, index=index)
        layers = self.layers
        if index is not None:
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(
            f"No such layer: {name}. Existing layers are: {[x.name for x in layers]}."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with compat.private("eager_mode")():
            return require_clone(self._live_clone, "__call__").filled()(*args, **kwargs)

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """Refuse `clone_model`, where there is no Keras model to clone."""
        return require_clone(None, "from_config")

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Return predictions of the clone with the session's weights."""
        kwargs.setdefault("verbose", 0)
        with compat.private("eager_mode")(), self._live_weights.mirrors.own_call():
            return (
                require_clone(self._live_clone, "predict")
                .filled()
                .predict(*args, **kwargs)
            )

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Run `validation=` and return its metrics.

        The clone evaluates data that are given as arguments, if it is compiled. It
        returns a list in the order of the metrics, or a dict with `return_dict=True`. A
        single metric comes as a number, as in Keras.
        """
        if args or "x" in kwargs:
            clone = require_clone(self._live_clone, "evaluate")
            if clone.model.compiled_loss is None:
                raise errors.LiveModelError(
                    "`model.evaluate` was called with data, but this callback runs in "
                    "a session loop under hookbridge, where loss and metrics are in "
                    "the graph and `self.model` has none. Give "
                    "`as_hooks(..., validation=...)` and call `model.evaluate()` "
                    "without data, or call `self.model.compile(loss=..., "
                    "metrics=...)` in the callback first.",
                    see="model in a session",
                )
            with compat.private("eager_mode")(), self._live_weights.mirrors.own_call():
                return clone.filled().evaluate(*args, **kwargs)
        ignored = kwargs.keys() - {"verbose", "return_dict", "batch_size"}
        if any(kwargs[name] is not None for name in ignored):
            raise errors.LiveModelError(
                f"`model.evaluate` was called with {', '.join(sorted(ignored))} and "
                "without data, but this callback runs in a session loop under "
                "hookbridge. There, a call without data runs the `validation` of "
                "`as_hooks`, which does not take these arguments. Leave the arguments "
                "out, or give data and `as_hooks(..., model=model)`.",
                see="model in a session",
            )
        if self._live_evaluate is None:
            raise errors.LiveModelError(
                "`model.evaluate()` was called, but this callback runs in a session "
                "loop under hookbridge, which has no validation data. Give "
                "`as_hooks(..., validation=...)`.",
                see="model in a session",
            )
        self.live_link.push()  # the validation reads the session
        result = dict(self._live_evaluate())
        self.live_link.classes.switch()  # it may have built a graph
        if kwargs.get("return_dict"):
            return result
        numbers = list(result.values())
        return numbers[0] if len(numbers) == 1 else numbers

    def reset_states(self) -> None:
        """Set the states of stateful recurrent layers to zero, in the session."""
        clone = require_clone(self._live_clone, "reset_states")
        clone.filled().reset_states()
        zeros = [(v, np.zeros(v.shape.as_list())) for v in clone.states()]
        session_variables.write(self._live_weights.session(), zeros)

    def reset_metrics(self) -> None:
        """Begin new means in `logs` with the next batch, as in Keras."""
        run = self.live_link.run()
        if run is not None and run.session is not None:
            run.reset_metrics()

    @property
    def metrics(self) -> list[Any]:
        """Keras metrics of this model's `logs`, with name and direction."""
        return self.live_link.counters.metrics(self.metrics_names)

    @property
    def distribute_strategy(self) -> Any:
        """TensorFlow's default strategy: one replica, this process."""
        with compat.private("eager_mode")():
            return tf.distribute.get_strategy()

    _train_counter = property(lambda self: self.live_link.counters.variable("train"))
    _test_counter = property(lambda self: self.live_link.counters.variable("test"))
    _predict_counter = property(
        lambda self: self.live_link.counters.variable("predict")
    )

    @property
    def _is_graph_network(self) -> bool:
        clone = self._live_clone
        return bool(clone and getattr(clone.model, "_is_graph_network", False))

    @property
    def train_function(self) -> Any:
        """Where TensorBoard looks for the graph: the session's graph."""
        return _GraphHolder(self._live_graph)

    train_tf_function = train_function

    # --- tf.train.Checkpoint(model=model) saves and restores the whole session ---

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        variables = session_variables.saved_variables(self._live_graph)
        mirrors = self._live_weights.mirrors.hand_out(variables)
        children = {v.op.name: m for v, m in zip(variables, mirrors, strict=True)}
        unsaved = self.live_link.rates.unsaved()
        return {**children, **{name: rate.variable for name, rate in unsaved.items()}}

    def _lookup_dependency(self, name: str, *args: Any) -> Any:
        return self._trackable_children().get(name)

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for names that are not defined above.
        if name.startswith(("__", "_live")) or name == "live_link":
            raise AttributeError(name)
        clone = self._live_clone
        if clone and hasattr(clone.model, name):
            return clone.attribute(name)
        raise errors.LiveModelError(
            f"`model.{name}` was asked for, but this callback runs in a session loop "
            "under hookbridge, where the model is a graph and a session. It offers "
            f"{', '.join(_public_names())}. With `as_hooks(..., model=<the tf.keras or "
            "tf_keras model in the graph>)` it offers everything a Keras model has; "
            "anything else can be read from the graph with a SessionRunHook.",
            see="model in a session",
        )


class _GraphHolder:
    """The attributes of a `tf.function` that TensorBoard needs to write its graph."""

    # TensorBoard only checks that it exists.
    function_spec = "session graph"

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._concrete_variable_creation_fn = self
        self._concrete_stateful_fn = self


def _public_names() -> list[str]:
    """Return the names that a callback may use of its model, for errors."""
    return sorted(
        name
        for name in (
            *vars(WeightsView),
            *vars(LiveModel),
            "save_weights",
            "load_weights",
            "save",
            "optimizer",
            "stop_training",
            "history",
        )
        if not name.startswith(("_", "live_", "train_"))
    )

"""A compiled Keras model as an Estimator that keeps its callbacks."""

from __future__ import annotations

import dataclasses
import types
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hookbridge.ground import compat
from hookbridge.ground.patching import assign
from hookbridge.ground.protocols import KerasModel

if TYPE_CHECKING:
    from hookbridge.adapters.session_loop.shared.options import HookOptions

# The function that the package's model_fn calls to build the model of its graph.
BUILDER = "_clone_and_build_model"


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | None = None,
    config: Any = None,
    checkpoint_format: str = "checkpoint",
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
    *,
    callbacks: Any = None,
    hooks: Any = None,
    steps_per_epoch: int | None = None,
    epochs: int | None = None,
    validation: Any = None,
    logs: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> Any:
    """Return an `Estimator` of a compiled Keras model, with callbacks and hooks.

    It is `tf.keras.estimator.model_to_estimator` with the arguments of `as_hooks`. The
    callbacks see the Keras model of the graph, its layers, weights and optimizer, and
    find the metrics it was compiled with in `logs`. They get `on_train_*` in `train`,
    `on_test_*` in `evaluate` and `on_predict_*` in `predict`, as in Keras. An
    evaluation inside a running training (`train_and_evaluate` in one process,
    `InMemoryEvaluatorHook`) does not call them; `validation` calls them in
    mid-training.

    Args:
      keras_model: a compiled `tf.keras` model (Keras 2) or `tf_keras` model.
      keras_model_path: the file of such a model, instead of `keras_model`.
      custom_objects: for models of classes that Keras does not know.
      model_dir: where checkpoints and summaries go.
      config: a `RunConfig`.
      checkpoint_format: `"checkpoint"` or `"saver"`.
      metric_names_map: names of the model's metrics in the evaluation's result.
      export_outputs: `{name: ExportOutput class}` of the exported model.
      callbacks: Keras callbacks, or hooks, one or a list. They are called on the
        thread that calls `train`, `evaluate` or `predict`, once for each event.
      hooks: hooks, or callbacks, that take part in `train` only.
      steps_per_epoch: training steps that make an epoch, as in `hookbridge.as_hooks`.
      epochs: the run stops after this many epochs.
      validation: what makes `val_*` logs, as in `hookbridge.as_hooks`.
      logs: `{key: tensor}` for the callbacks' `logs`, as in `hookbridge.as_hooks`.
      params: further entries of `callback.params`.

    Returns:
      A `tf.estimator.Estimator`.

    Raises:
      errors.RefusedError: the model is a Keras 3 model, or a callback cannot be
        carried into a session loop.
      errors.NotAGuestError: an item is neither a hook nor a callback.
      errors.EpochsUndefinedError: a callback needs epochs and `steps_per_epoch` is
        missing.
      errors.MissingExtraError: tensorflow-estimator or tf_keras is missing.
      ValueError: neither or both of model and path are given, or the model is not
        compiled.
    """
    import tensorflow as tf

    from hookbridge.adapters.guests import kinds
    from hookbridge.adapters.live_model import clone
    from hookbridge.adapters.session_loop.shared.options import HookOptions
    from hookbridge.estimator import restored_package

    restored_package.namespaces()
    if keras_model is not None and clone.keras_of(keras_model) is not None:
        clone.check(keras_model)
    if compat.tf_version() <= restored_package.LAST_WITH_ESTIMATOR:
        keras = tf.keras
    else:
        keras = compat.private("tf_keras_v2")
    guests_of_model = _GuestsOfModel(
        kinds.flatten(callbacks),
        kinds.flatten(hooks),
        HookOptions(
            logs=logs,
            steps_per_epoch=steps_per_epoch,
            epochs=epochs,
            validation=validation,
            params=params,
        ),
    )
    estimator = keras.estimator.model_to_estimator(
        keras_model=keras_model,
        keras_model_path=keras_model_path,
        custom_objects=custom_objects,
        model_dir=model_dir,
        config=config,
        checkpoint_format=checkpoint_format,
        metric_names_map=metric_names_map,
        export_outputs=export_outputs,
    )
    if guests_of_model:
        assign(estimator, _model_fn=_with_hooks(estimator._model_fn, guests_of_model))
    return estimator


class _GuestsOfModel:
    """The callbacks and hooks of one Estimator, and what `as_hooks` needs for them."""

    def __init__(
        self, everywhere: list[Any], training: list[Any], config: HookOptions
    ) -> None:
        self._everywhere = everywhere
        self._training = training
        self._config = config
        self._training_graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        # A guest that cannot be carried is refused now, not in the first graph.
        self.hooks([*everywhere, *training], model=lambda: None)

    def __bool__(self) -> bool:
        return bool(self._everywhere or self._training)

    def __deepcopy__(self, memo: object) -> _GuestsOfModel:
        # An Estimator is copied for each task of a cluster; its guests are not.
        return self

    def hooks(self, items: list[Any], *, model: Any) -> tuple[Any, ...]:
        """Return hooks for one graph, whose Keras model is `model`."""
        from hookbridge.adapters import convert

        metrics = {metric.name: metric for metric in getattr(model, "metrics", ())}
        logs = {**metrics, **self._config.logs}
        config = dataclasses.replace(self._config, model=model, logs=logs)
        return tuple(convert.hooks_for(items, config))

    def training_hooks(self, model: KerasModel) -> tuple[Any, ...]:
        """Return the hooks of the training graph that is being built."""
        import tensorflow as tf

        self._training_graphs.add(tf.compat.v1.get_default_graph())
        return self.hooks([*self._everywhere, *self._training], model=model)

    def other_hooks(self, model: KerasModel) -> tuple[Any, ...]:
        """Return the hooks of the evaluation or prediction graph that is being built.

        There are none while this thread is inside a training of the same guests: the
        guests belong to the model of that training.
        """
        graphs = compat.private("default_graph_stack").stack
        if any(graph in self._training_graphs for graph in graphs[:-1]):
            return ()
        return self.hooks(self._everywhere, model=model)


def _with_hooks(model_fn: object, guests_of_model: _GuestsOfModel) -> Any:
    """Return the package's `model_fn` with hooks in the `EstimatorSpec`s it returns."""

    def keras_model_fn(features: object, labels: object, mode: str) -> Any:
        built: list[Any] = []

        def recording(build: Callable[..., Any]) -> Callable[..., Any]:
            def record(*args: Any, **kwargs: Any) -> Any:
                built.append(build(*args, **kwargs))
                return built[-1]

            return record

        spec = _with_global(model_fn, BUILDER, recording)(features, labels, mode)
        (model,) = built
        if mode == "train":
            hooks = (*spec.training_hooks, *guests_of_model.training_hooks(model))
            return spec._replace(training_hooks=hooks)
        hooks_of_mode = guests_of_model.other_hooks(model)
        if mode == "eval":
            return spec._replace(
                evaluation_hooks=(*spec.evaluation_hooks, *hooks_of_mode)
            )
        return spec._replace(prediction_hooks=(*spec.prediction_hooks, *hooks_of_mode))

    return keras_model_fn


def _with_global(
    function: Any, name: str, change: Callable[[Any], Any]
) -> types.FunctionType:
    """Return a copy of `function` that sees another value for one global name.

    The package gives no access to the model it builds. A copy changes nothing for the
    package and for its other users.
    """
    if name not in function.__code__.co_names or name not in function.__globals__:
        raise compat.PrivateNameMovedError(
            f"`{function.__module__}.{function.__qualname__}` of this "
            f"tensorflow-estimator does not use `{name}`, by which hookbridge gets the "
            "Keras model of the graph for callbacks. Install "
            "tensorflow-estimator==2.15.0."
        )
    return types.FunctionType(
        function.__code__,
        {**function.__globals__, name: change(function.__globals__[name])},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )

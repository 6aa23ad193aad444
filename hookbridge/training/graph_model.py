"""A definition file as an Estimator's `model_fn`."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

import hookbridge as hb
from hookbridge import compat
from hookbridge.adapters.live_model import clone
from hookbridge.adapters.session_graph.variables import write
from hookbridge.training.definition import EVAL, PREDICT, TRAIN, ModelDefinition
from hookbridge.training.graph_optimizer import AsV1Optimizer, GraphOptimizer
from hookbridge.training.keras_model import start_names

v1 = tf.compat.v1
# The mean loss over the examples. An Estimator's own `loss` is the mean over the
# batches: a last, smaller batch counts as much as the others.
MEAN_LOSS = "average_loss"


class WeightedEvaluation:
    """Evaluates as an Estimator does, with the mean loss over the examples."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """`Estimator.evaluate`."""
        metrics = dict(self._estimator.evaluate(*args, **kwargs))
        if MEAN_LOSS in metrics:
            metrics["loss"] = metrics.pop(MEAN_LOSS)
        return metrics


def _size(features: Any) -> Any:
    """The number of examples of a batch, as a weight."""
    return tf.cast(tf.shape(tf.nest.flatten(features)[0])[0], tf.float32)


class GraphModel:
    """Builds the model of a file in each graph, and remembers the models it built."""

    def __init__(
        self,
        definition: ModelDefinition,
        first_values: Sequence[Any] | None,
        replicas_to_aggregate: int | None,
        is_chief: bool,
    ) -> None:
        self._definition = definition
        self._make_optimizer = GraphOptimizer(definition)
        self._first_values = first_values
        self._replicas = replicas_to_aggregate
        self._is_chief = is_chief
        self._models: Any = weakref.WeakKeyDictionary()
        self._metrics: Any = weakref.WeakKeyDictionary()

    def __deepcopy__(self, memo: Any) -> GraphModel:
        # An Estimator is copied for each task of a cluster.
        return self

    def model(self) -> Any:
        """The Keras model of the default graph, that of the first tower."""
        return self._models.get(v1.get_default_graph())

    def logs(self) -> dict[str, Any]:
        """The `logs=` for `as_hooks`: each metric as the mean of the towers."""

        def mean_of(name: str) -> Any:
            return lambda: tf.add_n(parts := self._means()[name]) / len(parts)

        return {name: mean_of(name) for name in self._functions()}

    def model_fn(self, features: Any, labels: Any, mode: str) -> Any:
        """Builds one tower."""
        definition = self._definition
        for keras in compat.keras_flavours():
            if not compat.is_keras3(keras):
                start_names(keras)
        model = definition.custom_model()
        clone.check(model)
        self._models.setdefault(v1.get_default_graph(), model)
        predictions = model(features, training=mode == TRAIN)
        is_dict = isinstance(predictions, Mapping)
        outputs = predictions if is_dict else {"predictions": predictions}
        if mode == PREDICT:
            export = hb.estimator.export.PredictOutput(outputs)
            return hb.estimator.EstimatorSpec(
                mode, predictions=outputs, export_outputs={"serving_default": export}
            )
        loss = definition.loss(labels, predictions)
        if model.losses:
            loss += tf.add_n(model.losses)
        if mode == EVAL:
            return hb.estimator.EstimatorSpec(
                mode,
                loss=loss,
                predictions=outputs,
                eval_metric_ops={
                    **self._evaluated(labels, predictions),
                    MEAN_LOSS: v1.metrics.mean(loss, _size(features)),
                },
            )
        self._note_metrics(labels, predictions)
        variables = model.trainable_variables
        pairs = list(zip(tf.gradients(loss, variables), variables, strict=True))
        optimizer, hooks = self._optimizer()
        if isinstance(optimizer, v1.train.Optimizer):
            step = v1.train.get_or_create_global_step()
            update = optimizer.apply_gradients(pairs, global_step=step)
        else:
            update = optimizer.apply_gradients(pairs)
        return hb.estimator.EstimatorSpec(
            mode,
            loss=loss,
            predictions=outputs,
            train_op=tf.group(update, *model.updates),
            training_hooks=hooks,
            scaffold=v1.train.Scaffold(init_fn=self._begin_with(model)),
        )

    def _optimizer(self) -> tuple[Any, list[Any]]:
        """The optimizer, and the hooks that it needs."""
        optimizer = self._make_optimizer.make()
        if self._replicas is None:
            return optimizer, []
        if not isinstance(optimizer, v1.train.Optimizer):
            optimizer = AsV1Optimizer(optimizer)
        synchronous = v1.train.SyncReplicasOptimizer(
            optimizer, self._replicas, total_num_replicas=self._replicas
        )
        return synchronous, [synchronous.make_session_run_hook(self._is_chief)]

    def _begin_with(self, model: Any) -> Any:
        if self._first_values is None:
            return None
        values = self._first_values

        def init_fn(scaffold: Any, session: Any) -> None:
            del scaffold
            write(session, zip(model.weights, values, strict=True))

        return init_fn

    def _evaluated(self, labels: Any, predictions: Any) -> dict[str, Any]:
        metrics = self._definition.metrics()
        for name, metric in metrics.items():
            if hasattr(metric, "update_state"):
                metric.update_state(labels, predictions)
            else:
                values = tf.cast(metric(labels, predictions), tf.float32)
                metrics[name] = v1.metrics.mean(values)
        return metrics

    def _functions(self) -> dict[str, Any]:
        """The metrics that are functions; Keras's own count in an evaluation only."""
        metrics = self._definition.metrics().items()
        return {name: m for name, m in metrics if not hasattr(m, "update_state")}

    def _means(self) -> dict[str, list[Any]]:
        """The means of the metrics of each tower in the default graph."""
        means = self._metrics.setdefault(v1.get_default_graph(), defaultdict(list))
        return cast(dict[str, list[Any]], means)

    def _note_metrics(self, labels: Any, predictions: Any) -> None:
        for name, metric in self._functions().items():
            values = tf.cast(metric(labels, predictions), tf.float32)
            self._means()[name].append(tf.reduce_mean(values, name=name))

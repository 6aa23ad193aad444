"""A definition file's network, loss, metrics and optimizer in graphs."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge import estimator
from hookbridge.adapters.live_model import clone
from hookbridge.adapters.session_graph.session_variables import write
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel, Session
from hookbridge.jobs.loops.towers.spec import EVAL, PREDICT, TRAIN, TowerSpec
from hookbridge.jobs.training.graph_optimizer import GraphOptimizer
from hookbridge.jobs.training.job_process import JobProcess
from hookbridge.jobs.training.keras_model import start_names

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


def _size(features: object) -> Any:
    """Return the number of examples of a batch, as a weight."""
    return tf.cast(tf.shape(tf.nest.flatten(features)[0])[0], tf.float32)


class GraphModel:
    """Builds the network of a file in each graph: a Keras 2 model, or `graph_model`."""

    def __init__(self, process: JobProcess) -> None:
        self._definition = process.definition
        self._make_optimizer = GraphOptimizer(process.definition)
        self._replicas, self._is_chief = process.replicas, process.is_chief
        self._models: Any = weakref.WeakKeyDictionary()
        self._first_values: Any = None
        if process.is_chief and process.definition.graph_model is None:
            modes = [m for m in (TRAIN, EVAL, PREDICT) if process.inputs.has(m)]
            if modes:  # else the command says which data it needs
                batches = process.inputs.function(modes[0])()
                self._first_values = process.model(batches).get_weights()

    def __deepcopy__(self, memo: object) -> GraphModel:
        # An Estimator is copied for each task of a cluster.
        return self

    def model(self) -> Any:
        """Return the Keras model of the default graph, that of the first tower."""
        return self._models.get(v1.get_default_graph())

    def functions(self) -> dict[str, Any]:
        """Return the metrics that are functions.

        Keras's own metrics count in an evaluation only.
        """
        metrics = self._definition.metrics().items()
        return {name: m for name, m in metrics if not hasattr(m, "update_state")}

    def tower(self, features: object, labels: object, mode: str) -> Any:
        """Build one tower: a `TowerSpec` in training, else an `EstimatorSpec`."""
        predictions, model = self._network(features, mode)
        is_dict = isinstance(predictions, Mapping)
        outputs = predictions if is_dict else {"predictions": predictions}
        if mode == PREDICT:
            export = estimator.export.PredictOutput(outputs)
            return estimator.EstimatorSpec(
                mode, predictions=outputs, export_outputs={"serving_default": export}
            )
        loss = self._definition.loss(labels, predictions)
        if model is not None and model.losses:
            loss += tf.add_n(model.losses)
        if mode == EVAL:
            return estimator.EstimatorSpec(
                mode,
                loss=loss,
                predictions=outputs,
                eval_metric_ops={
                    **self._evaluated(labels, predictions),
                    MEAN_LOSS: v1.metrics.mean(loss, _size(features)),
                },
            )
        if model is None:
            variables = v1.trainable_variables()
            updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
        else:
            variables, updates = model.trainable_variables, model.updates
        pairs = list(zip(tf.gradients(loss, variables), variables, strict=True))
        optimizer, hooks = self._optimizer()
        step = v1.train.get_or_create_global_step()
        update = optimizer.apply_gradients(pairs, global_step=step)
        return TowerSpec(
            loss,
            self._means(labels, predictions),
            outputs,
            tf.group(update, *updates),
            hooks,
            v1.train.Scaffold(init_fn=self._begin_with(model)),
        )

    def means(self, features: object, labels: object) -> dict[str, Any]:
        """Return the mean loss and metrics of a batch, to evaluate in a session."""
        metrics = self._definition.metrics()
        if metrics.keys() != self.functions().keys():
            raise self._definition.wrong(
                "eval_metrics_fn",
                metrics,
                "functions of labels and predictions, which `graph_model` can be "
                "evaluated with",
            )
        predictions, _ = self._network(features, EVAL)
        loss = self._definition.loss(labels, predictions)
        return {"loss": loss, **self._means(labels, predictions)}

    def _network(self, features: object, mode: str) -> tuple[Any, Any]:
        """Return the predictions, and the Keras model if one made them."""
        if self._definition.graph_model is not None:
            return self._definition.graph_model(features, mode), None
        for keras in compat.keras_flavours():
            if not compat.is_keras3(keras):
                start_names(keras)
        model = self._definition.custom_model()
        clone.check(model)
        self._models.setdefault(v1.get_default_graph(), model)
        return model(features, training=mode == TRAIN), model

    def _optimizer(self) -> tuple[Any, list[Any]]:
        """Return the optimizer, and the hooks that it needs."""
        optimizer = self._make_optimizer.make()
        if self._replicas is None:
            return optimizer, []
        synchronous = v1.train.SyncReplicasOptimizer(
            optimizer, self._replicas, total_num_replicas=self._replicas
        )
        return synchronous, [synchronous.make_session_run_hook(self._is_chief)]

    def _begin_with(self, model: KerasModel) -> Any:
        if self._first_values is None:
            return None
        values = self._first_values

        def init_fn(scaffold: object, session: Session) -> None:
            write(session, zip(model.weights, values, strict=True))

        return init_fn

    def _evaluated(self, labels: object, predictions: object) -> dict[str, Any]:
        metrics = self._definition.metrics()
        for name, metric in metrics.items():
            if hasattr(metric, "update_state"):
                metric.update_state(labels, predictions)
            else:
                values = tf.cast(metric(labels, predictions), tf.float32)
                metrics[name] = v1.metrics.mean(values)
        return metrics

    def _means(self, labels: object, predictions: object) -> dict[str, Any]:
        return {
            name: tf.reduce_mean(tf.cast(metric(labels, predictions), tf.float32))
            for name, metric in self.functions().items()
        }

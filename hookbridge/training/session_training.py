"""A definition file in a session: towers in a bare loop, or an Estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

import hookbridge as hb
from hookbridge import errors
from hookbridge.cluster_checks import CHIEF_TYPES
from hookbridge.loops.steps import Steps, run_steps
from hookbridge.loops.tasks.jobs import trainers
from hookbridge.loops.tasks.server import own_device
from hookbridge.loops.towers.devices import session_config, tower_devices
from hookbridge.loops.towers.graph import global_step
from hookbridge.loops.towers.inputs import check_first_batch, next_training_batch
from hookbridge.training.definition import EVAL, PREDICT, TRAIN
from hookbridge.training.graph_model import GraphModel, WeightedEvaluation
from hookbridge.training.part import Part
from hookbridge.training.summary import watchers

v1 = tf.compat.v1


class SessionTraining:
    """One process's part of a job in the loops `towers` and `estimator`.

    Both train the same `model_fn`, replicated over the towers; they evaluate and
    predict with the same Estimator.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        definition, settings = part.definition, part.settings
        self._devices = tower_devices(settings.num_towers, settings.devices)
        self._graph_model: GraphModel | None = None
        model_fn = definition.model_fn
        if model_fn is None:
            self._graph_model = self._keras_in_graphs()
            model_fn = self._graph_model.model_fn
        elif settings.sync and "replicas_to_aggregate" not in (definition.params or {}):
            raise errors.InvalidArgumentError(
                f"Received --sync, and {definition.path} has no "
                "`params['replicas_to_aggregate']`; expected it, with a `model_fn` "
                "that gives it to `SyncReplicasOptimizer`: its optimizer cannot be "
                "replaced from outside."
            )
        batches: Any = "fetch" if settings.batch_per_tower else "split"
        self._model_fn = hb.replicate_model_fn(model_fn, self._devices, batches=batches)
        self.estimator = hb.estimator.Estimator(
            self._named_loss if definition.is_keras else self._model_fn,
            settings.model_dir,
            hb.estimator.RunConfig(
                tf_random_seed=settings.seed, session_config=self._session_config()
            ),
            params=self._model_params(),
        )

    def train(
        self, guests: list[Any], steps_per_epoch: int | None, last_step: int | None
    ) -> int:
        """Trains; returns the global step at the end."""
        hooks = self._hooks(TRAIN, guests, steps_per_epoch)
        self._check_first_batch()
        if self._part.settings.loop == "towers":
            self._train_in_towers(hooks, last_step)
        elif self._part.config.cluster:
            hb.loops.train_and_evaluate(
                self.estimator,
                hb.estimator.TrainSpec(
                    self._part.inputs.function(TRAIN), max_steps=last_step, hooks=hooks
                ),
                self._eval_spec(self._hooks(EVAL, self._part.definition.guests(EVAL))),
            )
        else:
            self.estimator.train(
                self._part.inputs.function(TRAIN), hooks=hooks, max_steps=last_step
            )
        return self._part.global_step()

    def evaluate(self, guests: list[Any]) -> dict[str, float]:
        """Evaluates the newest checkpoint."""
        self._part.trained()
        metrics = WeightedEvaluation(self.estimator).evaluate(
            self._part.inputs.function(EVAL), hooks=self._hooks(EVAL, guests)
        )
        return {name: float(value) for name, value in metrics.items()}

    def predict(self) -> Iterator[Any]:
        """The predictions of each batch, with the newest checkpoint."""
        self._part.trained()
        outputs: Iterator[Any] = self.estimator.predict(
            self._part.inputs.function(PREDICT),
            hooks=self._hooks(PREDICT, self._part.definition.guests(PREDICT)),
            yield_single_examples=False,
        )
        return outputs

    def _session_config(self) -> Any:
        """The towers' devices; a trainer needs no other one, which may have ended."""
        config, place = session_config(self._devices), self._part.config
        if (place.task_type, place.task_index) in trainers(place):
            config.device_filters.extend(["/job:ps", own_device(place)])
        return config

    def _check_first_batch(self) -> None:
        """Checks the first batch before a server starts."""
        trains = self._part.config.task_type in (*CHIEF_TYPES, "worker")
        if len(self._devices) == 1 or self._part.settings.batch_per_tower or not trains:
            return
        with tf.Graph().as_default(), tf.device("/device:CPU:0"):
            batch = next_training_batch(self._part.inputs.function(TRAIN)())
            check_first_batch(batch, len(self._devices))

    def _train_in_towers(self, hooks: list[Any], last_step: int | None) -> None:
        settings = self._part.settings
        if last_step is not None and self._part.global_step() >= last_step:
            return
        run_steps(
            lambda batch: self._steps(batch, hooks, last_step),
            self._part.inputs.function(TRAIN),
            self._part.config,
            devices=self._devices,
            seed=settings.seed,
            checkpoint_dir=settings.model_dir,
        )

    def _steps(self, batch: Any, hooks: list[Any], last_step: int | None) -> Steps:
        global_step()
        spec = self.estimator.model_fn(*batch, TRAIN, self.estimator.config)
        own = spec.training_hooks or ()
        hooks = [*own, *hooks, v1.train.NanTensorHook(spec.loss)]
        if last_step is not None:
            hooks.append(v1.train.StopAtStepHook(last_step=last_step))
        return Steps(spec.train_op, hooks, spec.scaffold)

    def _named_loss(self, features: Any, labels: Any, mode: str) -> Any:
        """The replicated model, whose loss is `loss:0` for hooks, as in `fit`."""
        graph = v1.get_default_graph()
        graph.unique_name("loss")
        spec = self._model_fn(features, labels, mode)
        if spec.loss is None:
            return spec
        # The trailing slash takes the name as it is: it was reserved above.
        return spec._replace(loss=tf.identity(spec.loss, name="loss/"))

    def _keras_in_graphs(self) -> GraphModel:
        part, values = self._part, None
        if part.is_chief:
            modes = [m for m in (TRAIN, EVAL, PREDICT) if part.inputs.has(m)]
            if modes:  # else the command says which data it needs
                batches = part.inputs.function(modes[0])()
                values = part.model(batches).get_weights()
        return GraphModel(part.definition, values, part.replicas, part.is_chief)

    def _model_params(self) -> dict[str, Any] | None:
        part, params = self._part, self._part.definition.params
        if params is not None and part.replicas is not None:
            params["replicas_to_aggregate"] = part.replicas
        return params

    def _hooks(
        self, mode: str, guests: list[Any], steps_per_epoch: int | None = None
    ) -> list[Any]:
        part, settings = self._part, self._part.settings
        if mode == TRAIN and steps_per_epoch is not None:
            last_step = settings.last_step(steps_per_epoch)
            guests = [*guests, *watchers(tf.keras, settings, last_step, guests)]
        validation = None
        # An Estimator's cluster has a process of its own for evaluations.
        has_evaluator = part.config.cluster and settings.loop == "estimator"
        if mode == TRAIN and part.inputs.has(EVAL) and not has_evaluator:
            validation = (WeightedEvaluation(self.estimator), self._eval_spec([]))
        model = self._graph_model
        return hb.as_hooks(
            guests,
            # Evaluation and prediction have no epochs, but a callback may require them.
            steps_per_epoch=steps_per_epoch if mode == TRAIN else 1,
            epochs=settings.epochs if mode == TRAIN and steps_per_epoch else None,
            model=model.model if model else None,
            logs=model.logs() if model and mode == TRAIN else None,
            validation=validation,
            params=part.params,
        )

    def _eval_spec(self, hooks: list[Any]) -> Any:
        has = self._part.inputs.has(EVAL)
        return hb.estimator.EvalSpec(
            self._part.inputs.function(EVAL if has else TRAIN),
            steps=None if has else 1,
            hooks=hooks,
            start_delay_secs=0,
            throttle_secs=0,
        )

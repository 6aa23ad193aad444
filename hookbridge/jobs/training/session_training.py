"""A definition file in a session: towers in a bare loop, or an Estimator."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hookbridge import errors, estimator
from hookbridge.adapters import convert
from hookbridge.adapters.session_loop.shared.options import BY_FLAG, HookOptions
from hookbridge.ground.processes.cluster_checks import CHIEF_TYPES
from hookbridge.jobs.loops.clusters.session_cluster import SessionCluster
from hookbridge.jobs.loops.clusters.train_and_evaluate import train_and_evaluate
from hookbridge.jobs.loops.tasks.server import own_device
from hookbridge.jobs.loops.tasks.task_checks import trainers
from hookbridge.jobs.loops.towers.build import VARIABLE_DEVICE
from hookbridge.jobs.loops.towers.devices import session_config, tower_devices
from hookbridge.jobs.loops.towers.evaluation import Evaluation
from hookbridge.jobs.loops.towers.inputs import (
    as_pair,
    check_first_batch,
    next_training_batch,
)
from hookbridge.jobs.loops.towers.replicate_model_fn import replicate_model_fn
from hookbridge.jobs.loops.towers.spec import EVAL, PREDICT, TRAIN
from hookbridge.jobs.training.graph_model import GraphModel, WeightedEvaluation
from hookbridge.jobs.training.job_process import JobProcess
from hookbridge.jobs.training.summary import progress_callbacks

v1 = tf.compat.v1


class SessionTraining:
    """One process's part of a job in the loops `session` and `estimator`.

    Both train the same `model_fn`, replicated over the towers; they evaluate and
    predict with the same Estimator. A file with `graph_model` trains and is validated
    in `session` without one.
    """

    def __init__(self, process: JobProcess) -> None:
        self._process = process
        definition, settings = process.definition, process.settings
        self._devices = tower_devices(settings.num_towers)
        self._graph_model: GraphModel | None = None
        model_fn = definition.model_fn
        if model_fn is None:
            self._graph_model = GraphModel(process)
            model_fn = self._graph_model.tower
        elif settings.sync and "replicas_to_aggregate" not in (definition.params or {}):
            raise errors.InvalidArgumentError(
                f"Received --sync, and {definition.path} has no "
                "`params['replicas_to_aggregate']`; expected a `model_fn` that gives "
                "this number to `SyncReplicasOptimizer`, since hookbridge cannot "
                "replace the optimizer of a `model_fn`. Add `'replicas_to_aggregate': "
                "None` to `params`; hookbridge sets the number."
            )
        batches: Any = "fetch" if settings.batch_per_tower else "split"
        self._model_fn = replicate_model_fn(model_fn, self._devices, batches=batches)
        has_own = definition.graph_model is not None
        self._needs_estimator = settings.loop == "estimator" or not has_own

    @functools.cached_property
    def estimator(self) -> Any:
        """The Estimator of the model."""
        process, params = self._process, self._process.definition.params
        if params is not None and process.replicas is not None:
            params["replicas_to_aggregate"] = process.replicas
        # A trainer needs no device of another, which may have ended.
        config, task = session_config(self._devices), process.config
        if (task.task_type, task.task_index) in trainers(task):
            config.device_filters.extend(["/job:ps", own_device(task)])
        return estimator.Estimator(
            self._estimator_spec if self._graph_model else self._model_fn,
            process.settings.model_dir,
            estimator.RunConfig(
                tf_random_seed=process.settings.seed, session_config=config
            ),
            params=params,
        )

    def train(
        self, guests: list[Any], steps_per_epoch: int | None, last_step: int | None
    ) -> int:
        """Train; return the global step at the end."""
        process = self._process
        if self._needs_estimator:
            _ = self.estimator  # its errors come before a server starts
        trains = process.config.task_type in (*CHIEF_TYPES, "worker")
        if trains and not process.settings.batch_per_tower:  # before a server starts
            check_first_batch(process.inputs.function(TRAIN), len(self._devices))
        if process.settings.loop == "session":
            self._train_in_towers(guests, steps_per_epoch, last_step)
            return process.global_step()
        hooks, input_fn = self._hooks(guests, steps_per_epoch), process.inputs.function
        if process.config.cluster:
            evaluation = self._guests(EVAL, process.definition.guests(EVAL))
            train_and_evaluate(
                self.estimator,
                estimator.TrainSpec(input_fn(TRAIN), max_steps=last_step, hooks=hooks),
                self._eval_spec(evaluation),
            )
        else:
            self.estimator.train(input_fn(TRAIN), hooks=hooks, max_steps=last_step)
        return process.global_step()

    def evaluate(self, guests: list[Any]) -> dict[str, float]:
        """Evaluate the newest checkpoint."""
        path = self._process.trained_checkpoint()
        input_fn = self._process.inputs.function(EVAL)
        if self._needs_estimator or guests:
            metrics = WeightedEvaluation(self.estimator).evaluate(
                input_fn, hooks=self._guests(EVAL, guests)
            )
            return {name: float(value) for name, value in metrics.items()}
        config = session_config(self._devices)
        with tf.Graph().as_default():
            evaluation = self._evaluation()
            with v1.Session(config=config) as session:
                session.run([v1.local_variables_initializer(), v1.tables_initializer()])
                v1.train.Saver(v1.global_variables()).restore(session, path)
                means = evaluation.run(session)
        return {**means, "global_step": float(self._process.global_step())}

    def predict(self) -> Iterator[Any]:
        """Return the predictions of each batch, with the newest checkpoint."""
        self._process.trained_checkpoint()
        outputs: Iterator[Any] = self.estimator.predict(
            self._process.inputs.function(PREDICT),
            hooks=self._guests(PREDICT, self._process.definition.guests(PREDICT)),
            yield_single_examples=False,
        )
        return outputs

    def _train_in_towers(
        self, guests: list[Any], steps_per_epoch: int | None, last_step: int | None
    ) -> None:
        """Run steps until the data, a guest or another task ends the session."""
        process, settings = self._process, self._process.settings
        if last_step is not None and process.global_step() >= last_step:
            return
        config = session_config(self._devices)
        with SessionCluster(process.config, session_config=config) as cluster:
            if cluster.is_server:
                cluster.serve()
                return
            with tf.Graph().as_default(), v1.device(cluster.device_setter()):
                v1.set_random_seed(settings.seed)
                with tf.device(VARIABLE_DEVICE):
                    batch = next_training_batch(process.inputs.function(TRAIN)())
                spec = self._training_spec(*as_pair(batch))
                hooks = self._hooks(guests, steps_per_epoch)
                hooks.append(v1.train.NanTensorHook(spec.loss))
                if last_step is not None:
                    hooks.append(v1.train.StopAtStepHook(last_step=last_step))
                with cluster.training_session(
                    [*(spec.training_hooks or ()), *hooks],
                    scaffold=spec.scaffold,
                    config=config,
                    log_step_count_steps=None,
                    checkpoint_dir=settings.model_dir,
                ) as session:
                    while not session.should_stop():
                        session.run(spec.train_op)

    def _training_spec(self, features: object, labels: object) -> Any:
        # `global_step:0` is the value only of a reference variable.
        reference = v1.variable_scope(v1.get_variable_scope(), use_resource=False)
        with reference, tf.device(VARIABLE_DEVICE):
            v1.train.get_or_create_global_step()
        if self._graph_model is not None:
            return self._named_spec(features, labels, TRAIN)
        return self.estimator.model_fn(features, labels, TRAIN, self.estimator.config)

    def _named_spec(self, features: object, labels: object, mode: str) -> Any:
        """Return the towers as one; loss and metrics have their names of `fit`."""
        for name in ("loss", *self._logs(mode)):
            # So the model's own operations do not get these names.
            v1.get_default_graph().unique_name(name)
        spec = self._model_fn(features, labels, mode)
        if spec.loss is None:
            return spec
        # The trailing slash takes a name as it is: it was reserved above.
        spec = spec._replace(loss=tf.identity(spec.loss, name="loss/"))
        if mode != TRAIN:
            return spec
        means = {n: tf.identity(m, name=f"{n}/") for n, m in spec.metrics.items()}
        return spec._replace(metrics=means)

    def _estimator_spec(self, features: object, labels: object, mode: str) -> Any:
        spec = self._named_spec(features, labels, mode)
        if mode != TRAIN:
            return spec
        fields = {k: v for k, v in spec._asdict().items() if k != "metrics"}
        return estimator.EstimatorSpec(mode, **fields)

    def _logs(self, mode: str) -> dict[str, str]:
        """Return the `logs=` for `as_hooks`: each metric as the mean of the towers."""
        if self._graph_model is None or mode != TRAIN:
            return {}
        return {name: f"{name}:0" for name in self._graph_model.functions()}

    def _evaluation(self) -> Evaluation:
        assert self._graph_model is not None
        return Evaluation(self._graph_model.means, self._process.inputs.function(EVAL))

    def _hooks(self, guests: list[Any], steps_per_epoch: int | None) -> list[Any]:
        """Return the hooks of the training."""
        process, settings = self._process, self._process.settings
        if steps_per_epoch is not None:
            last_step = settings.last_step(steps_per_epoch)
            guests = [
                *guests,
                *progress_callbacks(tf.keras, settings, last_step, guests),
            ]
        validation: Any = None
        # An Estimator's cluster has a process of its own for evaluations.
        has_evaluator = process.config.cluster and settings.loop == "estimator"
        if process.inputs.has(EVAL) and not has_evaluator:
            validation = (
                (WeightedEvaluation(self.estimator), self._eval_spec([]))
                if self._needs_estimator
                else self._evaluation()
            )
        return self._guests(
            TRAIN,
            guests,
            steps_per_epoch=steps_per_epoch,
            epochs=settings.epochs if steps_per_epoch else None,
            logs=self._logs(TRAIN),
            validation=validation,
        )

    def _guests(self, mode: str, guests: list[Any], **options: Any) -> list[Any]:
        """Return the hooks for guests in one mode, with the options of this job."""
        if mode != TRAIN:
            # These have no epochs, but a callback may require them.
            options = {"steps_per_epoch": 1}
        config = HookOptions(
            model=self._graph_model.model if self._graph_model else None,
            params=self._process.params,
            way_to_epochs=BY_FLAG,
            **options,
        )
        return convert.hooks_for(guests, config)

    def _eval_spec(self, hooks: list[Any]) -> Any:
        has = self._process.inputs.has(EVAL)
        return estimator.EvalSpec(
            self._process.inputs.function(EVAL if has else TRAIN),
            steps=None if has else 1,
            hooks=hooks,
            start_delay_secs=0,
            throttle_secs=0,
        )

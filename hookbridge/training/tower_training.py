"""A definition file's `tower_fn` in a session, without an Estimator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NoReturn

import tensorflow as tf

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.session_loop.last_step import LastEpochHook
from hookbridge.loops.steps import Steps, run_steps
from hookbridge.loops.towers.devices import session_config, tower_devices
from hookbridge.loops.towers.evaluation import Evaluation
from hookbridge.loops.towers.graph import build_training
from hookbridge.loops.towers.inputs import check_first_batch
from hookbridge.training.definition import EVAL, TRAIN
from hookbridge.training.part import SAVE_SECS, Part
from hookbridge.training.summary import watchers

v1 = tf.compat.v1


class TowerTraining:
    """One process's part of a job in the loop `towers`."""

    def __init__(self, part: Part) -> None:
        self._part = part
        optimizer = part.definition.module.optimizer
        rate = inspect.signature(optimizer).parameters.get("learning_rate")
        if rate is None or rate.default is rate.empty:
            raise errors.InvalidArgumentError(
                f"{part.definition.where('optimizer')} takes no `learning_rate=...`; "
                "expected one with its first value as the default, since `tower_fn` "
                "trains with a learning rate in the graph."
            )
        self._optimizer, self._rate = optimizer, rate.default
        self._tower_fn = part.definition.module.tower_fn
        self._devices = tower_devices(part.settings.num_towers, part.settings.devices)

    def train(
        self, guests: list[Any], steps_per_epoch: int | None, last_step: int | None
    ) -> int:
        """Trains; returns the global step at the end."""
        part, settings = self._part, self._part.settings

        def build(batch: Any) -> Steps:
            check_first_batch(batch, len(self._devices))
            graph = build_training(
                self._tower_fn,
                batch,
                optimizer=self._make_optimizer,
                learning_rate=self._rate,
                devices=self._devices,
            )
            saver = v1.train.CheckpointSaverHook(
                settings.model_dir, save_secs=SAVE_SECS
            )
            own = [v1.train.NanTensorHook("loss:0"), hb.set_role(saver, "chief")]
            if steps_per_epoch is not None:
                own += watchers(tf.keras, settings, last_step, guests)
            has = part.inputs.has(EVAL)
            hooks = hb.as_hooks(
                [*guests, *own],
                steps_per_epoch=steps_per_epoch,
                epochs=settings.epochs,
                logs=graph.logs,
                validation=self._evaluation() if has else None,
                learning_rate=graph.learning_rate,
                params=part.params,
            )
            if part.replicas is not None:
                sync = graph.optimizer.make_session_run_hook(part.is_chief)
                hooks = [sync, *hooks]
            if last_step is not None:
                hooks = [*hooks, LastEpochHook(last_step)]
            return Steps(graph.train_op, hooks)

        run_steps(
            build,
            part.inputs.function(TRAIN),
            part.config,
            devices=self._devices,
            seed=settings.seed,
            checkpoint_dir=settings.model_dir,
            # Only guests write files.
            save_checkpoint_secs=None,
            save_checkpoint_steps=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
        )
        return part.global_step()

    def evaluate(self, guests: list[Any]) -> dict[str, float]:
        """Evaluates the newest checkpoint."""
        if guests:
            self._refuse("evaluate")
        path = self._part.trained()
        config = session_config(self._devices)
        with tf.Graph().as_default():
            evaluation = self._evaluation()
            with v1.Session(config=config) as session:
                session.run([v1.local_variables_initializer(), v1.tables_initializer()])
                v1.train.Saver(v1.global_variables()).restore(session, path)
                metrics = evaluation.run(session)
        return {**metrics, "global_step": float(self._part.global_step())}

    def predict(self) -> Iterator[Any]:
        """Refuses: a `tower_fn` has no mode for it."""
        self._refuse("predict")

    def _refuse(self, command: str) -> NoReturn:
        raise errors.RefusedError(
            f"`hookbridge {command}` calls guests in an Estimator or in Keras, and "
            f"{self._part.definition.path} has a `tower_fn`; expected --loop=fit, or "
            "--loop=estimator where `custom_model` is a Keras 2 model.",
            see="model definition file",
        )

    def _evaluation(self) -> Evaluation:
        return Evaluation(self._tower_fn, self._part.inputs.function(EVAL))

    def _make_optimizer(self, learning_rate: Any) -> Any:
        optimizer = self._optimizer(learning_rate)
        if self._part.replicas is None:
            return optimizer
        return v1.train.SyncReplicasOptimizer(
            optimizer, self._part.replicas, total_num_replicas=self._part.replicas
        )

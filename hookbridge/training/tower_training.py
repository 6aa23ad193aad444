"""A definition file's `tower_fn` in a session, without an Estimator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NoReturn

import tensorflow as tf

import hookbridge as hb
from hookbridge import errors
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

    def train(
        self, guests: list[Any], steps_per_epoch: int | None, last_step: int | None
    ) -> int:
        """Trains; returns the global step at the end."""
        part, settings = self._part, self._part.settings
        saver = v1.train.CheckpointSaverHook(settings.model_dir, save_secs=SAVE_SECS)
        hooks = [v1.train.NanTensorHook("loss:0"), hb.set_role(saver, "chief")]
        if steps_per_epoch is not None:
            hooks += watchers(tf.keras, settings, last_step, guests)
        validation = part.inputs.function(EVAL) if part.inputs.has(EVAL) else None
        with hb.loops.SessionCluster(part.config) as cluster:
            if cluster.is_server:
                cluster.serve()
                return 0
            loop = self._loop(cluster=cluster, replicas_to_aggregate=part.replicas)
            result = loop.train(
                part.inputs.function(TRAIN),
                guests=[*guests, *hooks],
                steps_per_epoch=steps_per_epoch,
                epochs=settings.epochs,
                max_steps=last_step,
                validation_fn=validation,
                model_dir=settings.model_dir,
                params=part.params,
            )
        return int(result.global_step)

    def evaluate(self, guests: list[Any]) -> dict[str, float]:
        """Evaluates the newest checkpoint."""
        if guests:
            self._refuse("evaluate")
        reader = tf.train.load_checkpoint(self._part.trained())
        names = reader.get_variable_to_shape_map()
        variables = {name: reader.get_tensor(name) for name in names}
        found = self._loop().evaluate(
            self._part.inputs.function(EVAL), variables=variables
        )
        return {**found, "global_step": float(variables["global_step"])}

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

    def _loop(self, **options: Any) -> Any:
        settings = self._part.settings
        return hb.loops.TowerLoop(
            self._part.definition.module.tower_fn,
            optimizer=self._optimizer,
            learning_rate=self._rate,
            num_towers=settings.num_towers,
            devices=settings.devices,
            seed=settings.seed,
            **options,
        )

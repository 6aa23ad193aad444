"""A definition file in `Model.fit`, also under strategies."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.convert import as_callbacks
from hookbridge.adapters.guests.guest_record import records
from hookbridge.adapters.keras_model.v1_optimizers import v1_inside
from hookbridge.adapters.live_model.clone import keras_of
from hookbridge.checkpoints.restoring import restore
from hookbridge.ground.protocols import KerasModel
from hookbridge.jobs.callbacks.learning_rate_scheduler import LearningRateScheduler
from hookbridge.jobs.callbacks.ready_made import ReadyMade
from hookbridge.jobs.loops.clusters.parameter_server import parameter_server_strategy
from hookbridge.jobs.loops.towers.devices import tower_devices
from hookbridge.jobs.loops.towers.spec import EVAL, PREDICT, TRAIN
from hookbridge.jobs.training.job_process import SAVE_SECS, JobProcess
from hookbridge.jobs.training.keras_model import compile_model, features_of
from hookbridge.jobs.training.summary import progress_callbacks

v1 = tf.compat.v1


class FitTraining:
    """One process's part of a job in the loop `fit`.

    It writes checkpoints as a session does, so each loop can read the other's weights.
    """

    def __init__(self, process: JobProcess) -> None:
        if not process.definition.is_keras:
            raise errors.RefusedError(
                f"{process.definition.path} has a `model_fn`, which builds a graph "
                "with its own train op; `fit` trains Keras models. Use "
                "--loop=session or --loop=estimator, or write `custom_model()`, "
                "`loss` and `optimizer`.",
                see="model definition file",
            )
        settings = process.settings
        if process.config.cluster and settings.num_towers > 1:
            raise errors.InvalidArgumentError(
                f"Received --num_towers={settings.num_towers} with --loop=fit in a "
                "cluster; expected 1, since `ParameterServerStrategy` takes all GPUs "
                "of its workers by itself. Use --loop=session or --loop=estimator."
            )
        self._process = process

    def train(
        self, guests: list[Any], steps_per_epoch: int | None, last_step: int | None
    ) -> int:
        """Train; return the number of steps at the end."""
        settings, steps = self._process.settings, steps_per_epoch or last_step
        if steps is None:
            raise errors.InvalidArgumentError(
                "Received neither --steps_per_epoch nor --train_steps, and the data "
                "does not show how long an epoch is; expected one of them."
            )
        # In workers and parameter servers this call does not return.
        if self._process.config.cluster:
            strategy = parameter_server_strategy(self._process.config, guests=guests)
        else:
            strategy = mirrored_strategy(settings.num_towers)
        if settings.seed is not None:
            tf.random.set_seed(settings.seed)  # read when the dataset is made
        batches = self._process.inputs.function(TRAIN)()
        model = self._model(batches, strategy, trains=True)
        done = self._process.global_step()  # Keras counts the end of data as a step
        if last_step is not None and done >= last_step:
            return done
        epochs = settings.epochs or math.ceil((last_step or steps) / steps)
        hooks = [
            v1.train.NanTensorHook("loss:0"),
            v1.train.CheckpointSaverHook(settings.model_dir, save_secs=SAVE_SECS),
            *([v1.train.StopAtStepHook(last_step=last_step)] if last_step else []),
        ]
        hooks += progress_callbacks(keras_of(model), settings, last_step, guests)
        _check_rates(model, guests)
        validation, validation_steps = self._validation()
        model.fit(
            batches,
            epochs=epochs,
            steps_per_epoch=steps,
            initial_epoch=min(done // steps, epochs - 1),
            validation_data=validation,
            validation_steps=validation_steps,
            shuffle=False,  # left to the dataset
            verbose=0,
            callbacks=self._callbacks([*guests, *hooks]),
        )
        return self._process.global_step()

    def evaluate(self, guests: list[Any]) -> dict[str, float]:
        """Evaluate the newest checkpoint."""
        self._process.trained_checkpoint()
        batches = self._process.inputs.function(EVAL)()
        model = self._model(batches)
        metrics = model.evaluate(
            batches, verbose=0, return_dict=True, callbacks=self._callbacks(guests)
        )
        step = float(self._process.global_step())
        return {**{k: float(v) for k, v in metrics.items()}, "global_step": step}

    def predict(self) -> Iterator[Any]:
        """Yield the predictions, as one batch."""
        self._process.trained_checkpoint()
        batches = self._process.inputs.function(PREDICT)().map(_features_only)
        guests = self._process.definition.guests(PREDICT)
        outputs = self._model(batches).predict(
            batches, verbose=0, callbacks=self._callbacks(guests)
        )
        yield outputs if isinstance(outputs, dict) else {"predictions": outputs}

    def _validation(self) -> tuple[Any, int | None]:
        """Return the batches of the validation, and how many if they never end."""
        if not self._process.inputs.has(EVAL):
            return None, None
        batches = self._process.inputs.function(EVAL)()
        if not self._process.config.cluster:
            return batches, None
        # The first worker whose data end would end the whole evaluation.
        return batches.repeat(), sum(1 for _ in batches)

    def _model(
        self, batches: Any, strategy: Any = None, *, trains: bool = False
    ) -> Any:
        """Return the compiled model, with the newest checkpoint's weights if any."""
        process = self._process
        model = process.model(batches, strategy and strategy.scope())
        with strategy.scope() if strategy else contextlib.nullcontext():
            compile_model(model, process.definition, batches)
        path = process.checkpoint()
        if path is not None:
            restore(model, path, must_restore_optimizer=trains)
        return model

    def _callbacks(self, guests: list[Any]) -> list[Any]:
        return as_callbacks([_Params(self._process.params), *guests])


def _check_rates(model: KerasModel, guests: Sequence[Any]) -> None:
    """Refuse a callback that sets a rate which the model's optimizer does not show."""
    if v1_inside(model.optimizer) is None:
        return
    for guest in records(guests):
        if guest.keras_row.sets_rate or isinstance(guest.item, LearningRateScheduler):
            raise errors.RefusedError(
                f"`{guest.name}` sets the learning rate, and in `fit` an optimizer "
                "of `tf.compat.v1.train` has none that can be set. Instead, let "
                "`optimizer()` return one of Keras; or train with --loop=session or "
                "--loop=estimator.",
                see="model definition file",
            )


class _Params(ReadyMade):
    """Adds entries to `params`, the dict that Keras gives to all callbacks."""

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__("all")
        self._entries = params

    def set_params(self, params: dict[str, Any]) -> None:
        """Act first of all callbacks."""
        params.update({**self._entries, **params})
        super().set_params(params)


def _features_only(*batch: Any) -> Any:
    return features_of(batch) if len(batch) > 1 else batch[0]


def mirrored_strategy(num_towers: int) -> Any:
    """Return the strategy for the towers' devices: TensorFlow's default for one."""
    if num_towers == 1:
        return tf.distribute.get_strategy()
    devices = tower_devices(num_towers)
    here = {device.name for device in tf.config.list_logical_devices()}
    if not here.issuperset(devices):
        raise errors.InvalidArgumentError(
            f"Received --num_towers={num_towers} with --loop=fit and the logical "
            f"devices {', '.join(sorted(here))}; expected {', '.join(devices)}. Call "
            "`tf.config.set_logical_device_configuration` at the top of the file."
        )
    return tf.distribute.MirroredStrategy(devices)

"""The demo's two runs: the same list, data and initial weights in either loop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import tensorflow as tf

import hookbridge as hb
from hookbridge.demo import data as data_lib
from hookbridge.demo import model as model_lib
from hookbridge.demo.guests import DemoGuest, GuestList
from hookbridge.demo.loop_run import LoopRun
from hookbridge.demo.settings import DemoSettings
from hookbridge.lifecycle import Host
from hookbridge.loops import TowerLoop
from hookbridge.testing import EventLog, spy


class DemoRunner:
    """Runs the list in one loop or the other."""

    def __init__(self, settings: DemoSettings, guests: GuestList) -> None:
        """Loads the data and draws the initial weights.

        Args:
          settings: the demo's configuration.
          guests: the one list.
        """
        self._settings = settings
        self._guests = guests
        self._digits = data_lib.load_digits(settings.seed)
        self._weights = model_lib.initial_weights(settings.seed)

    def run_session(self) -> LoopRun:
        """`MonitoredTrainingSession` with in-graph towers."""
        settings, log = self._settings, EventLog()
        listed = self._listed("session", log)
        loop = TowerLoop(
            model_lib.make_model_fn(self._weights),
            optimizer=model_lib.make_session_optimizer,
            learning_rate=settings.learning_rate,
            num_towers=settings.num_towers,
            devices=settings.devices(),
        )
        start = time.perf_counter()
        result = loop.train(
            self._training,
            guests=[guest.guest for guest in listed],
            steps_per_epoch=settings.steps_per_epoch,
            epochs=settings.epochs,
            validation_fn=lambda: data_lib.evaluation_dataset(self._digits.validation),
        )
        seconds = time.perf_counter() - start
        scores = loop.evaluate(
            lambda: data_lib.evaluation_dataset(self._digits.test),
            variables=result.variables,
        )
        return self._report("session", log, listed, result.global_step, scores, seconds)

    def run_fit(self) -> LoopRun:
        """`Model.fit` of `tf.keras`."""
        settings, log = self._settings, EventLog()
        listed = self._listed("fit", log)
        model = model_lib.make_keras_model(self._weights, settings.learning_rate)
        start = time.perf_counter()
        model.fit(
            self._training(),
            epochs=settings.epochs,
            steps_per_epoch=settings.steps_per_epoch,
            validation_data=data_lib.evaluation_dataset(self._digits.validation),
            shuffle=False,  # the dataset does
            verbose=0,
            callbacks=hb.as_callbacks([guest.guest for guest in listed]),
        )
        seconds = time.perf_counter() - start
        scores = model.evaluate(
            data_lib.evaluation_dataset(self._digits.test), verbose=0, return_dict=True
        )
        steps = int(model.optimizer.iterations)  # the data has no end to count twice
        return self._report("fit", log, listed, steps, scores, seconds)

    def _training(self) -> Any:
        return data_lib.training_dataset(
            self._digits.train,
            batch_size=self._settings.batch_size,
            seed=self._settings.seed,
        )

    def _directory(self, host: Host) -> Path:
        return Path(self._settings.model_dir) / host

    def _listed(self, host: Host, log: EventLog) -> list[DemoGuest]:
        listed = self._guests.for_run(self._directory(host))
        for guest in listed:
            spy(guest.guest, log, guest.name)
        # The writers that hooks share are kept for each directory, and would go on
        # with the files of an earlier demo in this process.
        tf.compat.v1.summary.FileWriterCache.clear()
        return listed

    def _report(
        self,
        host: Host,
        log: EventLog,
        listed: list[DemoGuest],
        steps: int,
        scores: Any,
        seconds: float,
    ) -> LoopRun:
        activity = self._guests.activity
        return LoopRun(
            host=host,
            log=log,
            guests=listed,
            steps=steps,
            steps_per_epoch=self._settings.steps_per_epoch,
            validation_batches=data_lib.VALIDATION_IMAGES // data_lib.EVALUATION_BATCH,
            test_accuracy=float(scores["accuracy"]),
            test_loss=float(scores["loss"]),
            seconds=seconds,
            history=list(self._guests.progress.history),
            activity={
                "steps": activity.steps,
                "learning_rates": list(activity.learning_rates),
                "mean_activation": activity.mean_activation,
                "silent_units": activity.silent_units,
            },
            directory=self._directory(host),
        )

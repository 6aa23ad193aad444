"""One process of the distributed demo: a worker, a server or the coordinator.

    TF_CONFIG=... python -m hookbridge.demo.cluster_task LOOP SETTINGS

LOOP is `session` or `fit`, SETTINGS the fields of `DemoSettings` as JSON. What the
process saw is left in `<model_dir>/<LOOP>/<task>.json`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

import hookbridge as hb
from hookbridge import lifecycle
from hookbridge.adapters.guests import roles
from hookbridge.cluster import ClusterConfig
from hookbridge.demo import data as data_lib
from hookbridge.demo import model as model_lib
from hookbridge.demo.cluster_guests import cluster_guests, keras_with_parameter_servers
from hookbridge.demo.console import hook_lines, make_emit
from hookbridge.demo.guests import DemoGuest
from hookbridge.demo.settings import DemoSettings
from hookbridge.testing import EventLog, spy


class ClusterTask:
    """This process's part of one loop."""

    def __init__(self, loop: str, settings: DemoSettings) -> None:
        """Reads the data and `TF_CONFIG`.

        Args:
          loop: `"session"` or `"fit"`.
          settings: the demo's configuration.
        """
        self._loop = loop
        self._settings = settings
        self._config = ClusterConfig.from_environment()
        self._keras = keras_with_parameter_servers()
        self._emit = make_emit(to_stderr=False)
        self._digits = data_lib.load_digits(settings.seed)
        self._weights = model_lib.initial_weights(settings.seed)
        self._directory = Path(settings.model_dir) / loop
        self._log = EventLog()

    def run(self) -> None:
        """Trains or serves until the job is over."""
        with hook_lines(self._emit):
            if self._loop == "session":
                self._run_session()
            else:
                self._run_fit()

    def _run_session(self) -> None:
        """`MonitoredTrainingSession` with towers, synchronous over the workers."""
        settings = self._settings
        with hb.loops.SessionCluster(self._config) as cluster:
            if cluster.is_server:
                cluster.serve()
                return
            loop = hb.loops.TowerLoop(
                model_lib.make_model_fn(self._weights),
                optimizer=model_lib.make_session_optimizer,
                learning_rate=settings.learning_rate,
                num_towers=settings.num_towers,
                devices=settings.devices(),
                cluster=cluster,
                replicas_to_aggregate=cluster.num_workers,
            )
            guests, start = self._listed(), time.perf_counter()
            result = loop.train(
                self._workers_part,
                guests=[each.guest for each in guests],
                steps_per_epoch=settings.steps_per_epoch,
                epochs=settings.epochs,
                validation_fn=lambda: data_lib.evaluation_dataset(
                    self._digits.validation
                ),
            )
            seconds = time.perf_counter() - start
        scores: Any = {}
        if cluster.is_chief:
            scores = loop.evaluate(
                lambda: data_lib.evaluation_dataset(self._digits.test),
                variables=result.variables,
            )
        self._report(guests, result.global_step, scores, seconds)

    def _run_fit(self) -> None:
        """`Model.fit` under `ParameterServerStrategy`."""
        # Workers and servers do not come back from this.
        strategy = hb.loops.parameter_server_strategy(self._config)
        settings, digits = self._settings, self._digits
        with strategy.scope():
            model = model_lib.make_keras_model(
                self._weights, settings.learning_rate, self._keras
            )
        validation, test = (
            data_lib.evaluation_dataset(part, batch_size=len(part.labels)).repeat()
            for part in (digits.validation, digits.test)
        )
        guests, start = self._listed(), time.perf_counter()
        model.fit(
            self._training(settings.batch_size),
            epochs=settings.epochs,
            steps_per_epoch=settings.steps_per_epoch,
            validation_data=validation,
            validation_steps=1,
            verbose=0,
            callbacks=hb.as_callbacks([each.guest for each in guests]),
        )
        seconds = time.perf_counter() - start
        scores = model.evaluate(test, steps=1, verbose=0, return_dict=True)
        self._report(guests, int(model.optimizer.iterations), scores, seconds)

    def _training(self, batch_size: int) -> Any:
        return data_lib.training_dataset(
            self._digits.train, batch_size=batch_size, seed=self._settings.seed
        )

    def _workers_part(self) -> Any:
        """Every worker draws the same batches and takes its own share of each."""
        chief = int("chief" in self._config.cluster)
        index = self._config.task_index
        index += chief if self._config.task_type == "worker" else 0
        workers = self._settings.num_workers
        return self._training(self._settings.batch_size).map(
            lambda images, labels: (images[index::workers], labels[index::workers])
        )

    def _listed(self) -> list[DemoGuest]:
        listed = cluster_guests(self._keras, self._directory, self._emit)
        for guest in listed:
            spy(guest.guest, self._log, guest.name)
        return listed

    def _report(
        self, guests: list[DemoGuest], steps: int, scores: Any, seconds: float
    ) -> None:
        task = f"{self._config.task_type} {self._config.task_index}"
        report = {
            "task": task,
            "steps": steps,
            "seconds": seconds,
            "test_accuracy": float(scores["accuracy"]) if scores else None,
            "test_loss": float(scores["loss"]) if scores else None,
            "guests": {
                guest.name: {
                    "kind": guest.kind,
                    **_expected(guest, in_fit=self._loop == "fit"),
                    "events": [list(each) for each in self._log.of(guest.name)],
                }
                for guest in guests
            },
        }
        path = self._directory / f"{task.replace(' ', '_')}.json"
        path.write_text(json.dumps(report), encoding="utf-8")


def _expected(guest: DemoGuest, *, in_fit: bool) -> dict[str, Any]:
    """The guest's role, and the events that it can see in this process."""
    role = roles.role_of(guest.guest)
    found = lifecycle.overridden(guest.guest, guest.kind)
    return {
        "role": role,
        # The coordinator of `fit` runs every guest.
        "runs_here": in_fit or roles.runs_here(role),
        "expected": [
            event
            for event in found
            if event not in lifecycle.ALIASES
            and (in_fit or roles.delivers(role, event))
        ],
    }


def main(arguments: list[str]) -> None:
    """Runs the task that `TF_CONFIG` names."""
    loop, settings = arguments
    ClusterTask(loop, DemoSettings(**json.loads(settings))).run()


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    main(sys.argv[1:])

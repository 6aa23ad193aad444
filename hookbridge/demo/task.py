"""One process of the demo: a worker, a server, the coordinator, or all in one.

    TF_CONFIG=... python -m hookbridge.demo.task LOOP SETTINGS

LOOP is `session` or `fit`; SETTINGS are the fields of `DemoSettings` as JSON. The
process writes what its guests saw to `<model_dir>/<LOOP>/<task>.json`.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import tensorflow as tf

import hookbridge as hb
from hookbridge import lifecycle
from hookbridge.adapters.guests import roles
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.adapters.guests.record import record_of
from hookbridge.callbacks.progress import Progress
from hookbridge.cluster import ClusterConfig
from hookbridge.demo import data as data_lib
from hookbridge.demo import model as model_lib
from hookbridge.demo.activity_hook import ActivityHook
from hookbridge.demo.console import Emit, hook_lines, make_emit
from hookbridge.demo.guests import (
    demo_guests,
    keras_package,
    keras_with_parameter_servers,
)
from hookbridge.demo.progress_callback import EpochLines
from hookbridge.demo.report import TIMELINES, to_json
from hookbridge.demo.settings import DemoSettings
from hookbridge.demo.story import complaints, shortened
from hookbridge.lifecycle import Host
from hookbridge.profiling import Profile
from hookbridge.report.timeline import Timeline
from hookbridge.testing import EventLog, differences, spy


class DemoTask:
    """This process's part of one loop."""

    def __init__(
        self, loop: Host, settings: DemoSettings, config: ClusterConfig, emit: Emit
    ) -> None:
        """Reads the data and draws the initial weights.

        Args:
          loop: `"session"` or `"fit"`.
          settings: the demo's configuration.
          config: the cluster; without one, this process does everything.
          emit: where progress lines go.
        """
        self._loop = loop
        self._settings = settings
        self._config = config
        self._emit = emit
        self._keras = keras_with_parameter_servers() if config.cluster else tf.keras
        self._digits = data_lib.load_digits(settings.seed)
        self._weights = model_lib.initial_weights(settings.seed)
        self._directory = Path(settings.model_dir) / loop
        self._started = time.time()
        self._log = EventLog()

    def run(self) -> None:
        """Trains or serves until the job is over, then writes the account."""
        # Hooks share summary writers by directory. Without this, the writers of an
        # earlier demo in this process would go on writing to that demo's files.
        tf.compat.v1.summary.FileWriterCache.clear()
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
                replicas_to_aggregate=settings.num_workers or None,
            )
            guests, start = self._guests(), time.perf_counter()
            with hb.profile(guests) as profile:
                result = loop.train(
                    self._share_of_worker,
                    guests=[*self._progress(), *guests],
                    steps_per_epoch=settings.steps_per_epoch,
                    epochs=settings.epochs,
                    validation_fn=lambda: data_lib.whole(self._digits.validation),
                )
            seconds = time.perf_counter() - start
        scores: Any = {}
        if cluster.is_chief:
            scores = loop.evaluate(
                lambda: data_lib.whole(self._digits.test), variables=result.variables
            )
        self._write(guests, result.global_step, scores, seconds, profile)

    def _run_fit(self) -> None:
        """`Model.fit`, under `ParameterServerStrategy` if there is a cluster."""
        # In workers and parameter servers this call does not return.
        strategy = hb.loops.parameter_server_strategy(self._config)
        settings, digits = self._settings, self._digits
        with strategy.scope():
            model = model_lib.make_keras_model(
                self._weights, settings.learning_rate, self._keras
            )
        validation, test = (
            data_lib.whole(part).repeat() for part in (digits.validation, digits.test)
        )
        guests, start = self._guests(), time.perf_counter()
        with hb.profile(guests) as profile:
            model.fit(
                self._training(),
                epochs=settings.epochs,
                steps_per_epoch=settings.steps_per_epoch,
                validation_data=validation,
                validation_steps=1,
                shuffle=False,  # the dataset shuffles
                verbose=0,
                callbacks=hb.as_callbacks([*self._progress(), *guests]),
            )
        seconds = time.perf_counter() - start
        scores = model.evaluate(test, steps=1, verbose=0, return_dict=True)
        steps = int(model.optimizer.iterations)
        self._write(guests, steps, scores, seconds, profile)

    def _training(self) -> Any:
        return data_lib.training_dataset(
            self._digits.train,
            batch_size=self._settings.batch_size,
            seed=self._settings.seed,
        )

    def _share_of_worker(self) -> Any:
        """Every worker draws the same batches and takes its own share of each."""
        index, workers = self._config.task_index, self._settings.num_workers or 1
        return self._training().map(
            lambda images, labels: (images[index::workers], labels[index::workers])
        )

    def _guests(self) -> list[Any]:
        guests = demo_guests(self._keras, self._directory, self._emit)
        return [spy(guest, self._log) for guest in guests]

    def _progress(self) -> list[Any]:
        """The callback for the line of progress; the report leaves it out."""
        size = self._settings.batch_size
        return [Progress(batch_size=size)] if self._settings.progress else []

    def _write(
        self,
        guests: list[Any],
        steps: int,
        scores: Any,
        seconds: float,
        profile: Profile,
    ) -> None:
        (activity,) = (each for each in guests if isinstance(each, ActivityHook))
        (progress,) = (each for each in guests if isinstance(each, EpochLines))
        keras = keras_package(self._keras)
        kind, index = self._config.task_type, self._config.task_index
        task = f"{kind} {index}" if self._config.cluster else "this process"
        account = {
            "task": task,
            "is_chief": self._config.is_chief,
            "steps": steps,
            "result": scores
            and {
                "keras": f"{keras.__name__} {keras.__version__}",
                "stop_step": steps,
                "epochs": len(progress.history),
                "test_accuracy": float(scores["accuracy"]),
                "test_loss": float(scores["loss"]),
                "seconds": seconds,
            },
            "history": progress.history,
            "activity": activity.found,
            "profile": profile.timings.as_dict(),
            "guests": {name_of(guest): self._seen(guest, steps) for guest in guests},
        }
        if self._config.is_chief:
            profile.save(self._directory / "tensorboard")
        file_name = f"{task.replace(' ', '_')}.json"
        (self._directory / file_name).write_text(to_json(account), encoding="utf-8")
        timelines = self._directory / TIMELINES
        timelines.mkdir(exist_ok=True)
        names = [name_of(guest) for guest in guests]
        timeline = Timeline.of(task, self._started, names, self._log.to_json())
        timeline.save(timelines / file_name)

    def _seen(self, guest: Any, steps: int) -> dict[str, Any]:
        """What a guest saw in this process, and where that differs from the mapping."""
        record = record_of(guest)
        kind, role, events = record.kind, record.role, self._log.of(record.name)
        # The coordinator of `fit` runs every guest.
        in_fit = self._loop == "fit"
        runs_here = in_fit or roles.runs_here(role)
        overridden = [
            event
            for event in lifecycle.overridden(guest, kind)
            if event not in lifecycle.ALIASES
        ]
        if not runs_here:
            found = [f"received {len(events)} events, expected none"] if events else []
        elif not self._config.cluster:
            expected = lifecycle.expected_events(
                kind,
                self._loop,
                steps=steps,
                steps_per_epoch=self._settings.steps_per_epoch,
                validation_batches=1,
                only=overridden,
            )
            found = differences(events, expected)
        else:
            found = complaints(
                kind,
                events,
                [e for e in overridden if in_fit or roles.delivers(role, e)],
                lagging=in_fit,
                interrupted=not self._config.is_chief,
                late=not self._config.is_chief,
            )
        return {
            "kind": kind,
            "role": role,
            "runs_here": runs_here,
            "events": dict(Counter(event for event, _ in events)),
            "story": shortened("".join(f"{event} " for event, _ in events)).strip(),
            "differences": found,
        }


def main(arguments: list[str]) -> None:
    """Runs the task that `TF_CONFIG` names."""
    loop, settings = arguments
    config = ClusterConfig.from_environment()
    emit = make_emit(to_stderr=False)
    host: Host = "session" if loop == "session" else "fit"
    DemoTask(host, DemoSettings(**json.loads(settings)), config, emit).run()


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    main(sys.argv[1:])

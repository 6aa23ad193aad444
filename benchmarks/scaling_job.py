"""One process of `scaling.py`, which gets its task in `TF_CONFIG`."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

if importlib.util.find_spec("tf_keras"):
    # `tf.keras` is Keras 2: Keras 3 does not have `ParameterServerStrategy`.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks.fit_cases import server_model
from benchmarks.overhead_cases import BATCH_SIZE, SIZES, LossCallback, LossHook
from hookbridge.ground.processes.tf_config import ClusterConfig

v1: Any = tf.compat.v1
keras: Any = tf.keras
INPUTS, HIDDEN, OUTPUTS = SIZES
MANY = 10**9


class Meter:
    """Reads the counters when the warm-up ends and again when the time is up."""

    def __init__(self, secs: float, warm_up: float) -> None:
        self._secs, self._warm_up = secs, warm_up
        self._made = time.monotonic()
        self._start: tuple[float, ...] | None = None
        self._own = 0
        self.result: dict[str, float] = {}

    def step(self, global_step: Any) -> bool:
        """Counts one step of this process; returns whether the time is up."""
        self._own += 1
        if self._start is None:
            if time.monotonic() - self._made > self._warm_up:
                self._start = self._read(global_step())
            return False
        if time.monotonic() - self._start[0] < self._secs:
            return False
        if not self.result:
            end = self._read(global_step())
            keys = ("secs", "cpu", "packets", "bytes", "own_steps", "steps")
            self.result = {
                key: b - a for key, a, b in zip(keys, self._start, end, strict=True)
            }
            self.result["until"] = time.time()
        return True

    def _read(self, step: int) -> tuple[float, ...]:
        lines = Path("/proc/net/dev").read_text().splitlines()
        (loopback,) = (line.split() for line in lines if line.strip().startswith("lo:"))
        packets, size = int(loopback[2]), int(loopback[1])
        now = time.monotonic()
        return now, time.process_time(), packets, size, self._own, step


def guests(wanted: bool) -> list[Any]:
    """Five hooks and five callbacks, or none."""
    if not wanted:
        return []
    return [kind() for kind in (LossHook, LossCallback) for _ in range(5)]


def batch() -> tuple[Any, Any]:
    """One batch, the same each time, since input pipelines are not measured."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=[BATCH_SIZE, INPUTS]).astype(np.float32)
    return x, rng.integers(OUTPUTS, size=[BATCH_SIZE])


def run_session(meter: Meter, wanted: bool, pause: float) -> None:
    """Asynchronous workers around a `MonitoredTrainingSession`."""
    with hb.loops.SessionCluster() as cluster:
        if cluster.is_server:
            cluster.serve()
            return
        with tf.Graph().as_default(), v1.device(cluster.device_setter()):
            x, y = (tf.constant(each) for each in batch())
            hidden = v1.get_variable("hidden", [INPUTS, HIDDEN])
            output = v1.get_variable("output", [HIDDEN, OUTPUTS])
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, hidden)), output)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_mean(losses, name="loss")
            step = v1.train.get_or_create_global_step()
            optimizer = v1.train.GradientDescentOptimizer(1e-6)
            train_op = optimizer.minimize(loss, step)
            hooks = hb.as_hooks(guests(wanted), steps_per_epoch=MANY)
            with cluster.training_session(hooks) as session:
                while not session.should_stop():
                    session.run(train_op)
                    time.sleep(pause)
                    if cluster.is_chief and meter.step(lambda: _step(session, step)):
                        break


def _step(session: Any, step: Any) -> int:
    def read(step_context: Any) -> Any:
        return step_context.session.run(step)

    return int(session.run_step_fn(read))


def run_fit(meter: Meter, wanted: bool) -> None:
    """`Model.fit` under `ParameterServerStrategy`."""
    model = server_model()

    class Measures(keras.callbacks.Callback):  # type: ignore[misc]
        """Counts steps as they are scheduled, as Keras's own callbacks do."""

        def __init__(self) -> None:
            super().__init__()
            self._supports_tf_logs = True

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if meter.step(lambda: int(self.model.optimizer.iterations)):
                self.model.stop_training = True

    data = keras.utils.experimental.DatasetCreator(
        lambda _: tf.data.Dataset.from_tensors(batch()).repeat()
    )
    bridged = hb.as_callbacks(guests(wanted)) if wanted else []
    # The number of epochs has no effect: `Measures` stops the training.
    model.fit(
        data,
        epochs=MANY,
        steps_per_epoch=100,
        verbose=0,
        callbacks=[*bridged, Measures()],
    )


def main(arguments: list[str]) -> None:
    """Runs the task that `TF_CONFIG` names."""
    folder, text = arguments
    options = json.loads(text)
    meter = Meter(options["secs"], options["warm_up"])
    if options["loop"] == "session":
        run_session(meter, options["guests"], options["pause"])
    else:
        run_fit(meter, options["guests"])
    config = ClusterConfig.from_environment()
    name = f"{config.task_type}_{config.task_index}.json"
    Path(folder, name).write_text(json.dumps(meter.result))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Many fits under `MultiWorkerMirroredStrategy`; the results go to `EVENTS`.

TF_CONFIG=... python tests/adapters/multi_worker/workers_job.py EVENTS CASE...
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from job_notes import EVENTS, note  # noqa: E402
from quick_traces import look_often  # noqa: E402

import hookbridge as hb  # noqa: E402
from hookbridge.adapters.multi_worker import agreement  # noqa: E402

look_often()
HAS_TF_KERAS = importlib.util.find_spec("tf_keras") is not None
keras: Any = importlib.import_module("tf_keras") if HAS_TF_KERAS else tf.keras
v1: Any = tf.compat.v1
CASES = sys.argv[2:]
CONFIG = json.loads(os.environ["TF_CONFIG"])["task"]
TASK = 0 if CONFIG["type"] == "chief" else 1 + CONFIG["index"]
DEVICES = int(os.environ.get("DEVICES", "1"))
EPOCHS, BATCHES = 3, 4


def with_devices() -> Any:
    """The strategy; of `DEVICES` processors of each process, as of so many GPUs."""
    if DEVICES > 1:
        processors = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(
            processors[0], [tf.config.LogicalDeviceConfiguration()] * DEVICES
        )
        extended = tf.distribute.MultiWorkerMirroredStrategy.__init__.__globals__[
            "CollectiveAllReduceExtended"
        ]
        extended._initialize_local_devices = lambda self, resolver, worker_device: (
            tuple(f"{worker_device}/device:CPU:{i}" for i in range(DEVICES)),
            "CPU",
        )
    return tf.distribute.MultiWorkerMirroredStrategy()


# The processes of `mirrored` train on their own.
STRATEGY = tf.distribute.get_strategy() if CASES == ["mirrored"] else with_devices()


def batches() -> Any:
    """Each replica's rows of batch b of process p have the mean 10 p + b + 1.

    Keras takes a batch for that of all replicas: each process gets it in as many parts.
    """
    rows = tf.constant([[-0.5], [0.5]] * STRATEGY.num_replicas_in_sync)
    data = tf.data.Dataset.range(BATCHES).map(
        lambda b: (rows + tf.cast(10 * TASK + b + 1, tf.float32), 0 * rows)
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    return data.repeat().with_options(options)


def compiled_model(rate: float = 0.0, *layers: Any, **options: Any) -> Any:
    """A model whose output is its input, as long as the rate is 0."""
    with STRATEGY.scope():
        ones = {"kernel_initializer": "ones", "input_shape": (1,)}
        dense = keras.layers.Dense(1, name="dense", **ones)
        model = keras.Sequential([dense, *(make(name="norm") for make in layers)])
        optimizer = keras.optimizers.SGD(rate)
        model.compile(optimizer, "mae", metrics=["mse"], **options)
    return model


def fit(model: Any, items: Any, **options: Any) -> Any:
    return model.fit(
        batches(),
        verbose=0,
        callbacks=hb.as_callbacks(items),
        **{"epochs": EPOCHS, "steps_per_epoch": BATCHES, **options},
    ).history


class Watch(v1.train.SessionRunHook):  # type: ignore[misc]
    """Counts, and calls a function after each run."""

    def __init__(
        self,
        after: Callable[[Any, int], Any] = lambda context, run: None,
        before: Callable[[Any, int], Any] = lambda context, run: None,
        fetches: Any = None,
    ) -> None:
        self.after, self.before, self.fetches = after, before, fetches
        self.runs, self.ends = 0, 0
        self.values: list[Any] = []

    def before_run(self, run_context: Any) -> Any:
        self.before(run_context, self.runs + 1)
        return self.fetches and v1.train.SessionRunArgs(self.fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1
        self.values.append(run_values.results)
        self.after(run_context, self.runs)

    def end(self, session: Any) -> None:
        self.ends += 1


class Log(keras.callbacks.Callback):  # type: ignore[misc]
    """Notes the logs of each batch, and calls a function after it and each epoch."""

    def __init__(self, after_batch: Any = None, after_epoch: Any = None) -> None:
        super().__init__()
        self.after_batch, self.after_epoch = after_batch, after_epoch
        self.logs: list[Any] = []
        self.epochs: list[int] = []
        self.steps = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps += 1
        self.logs.append(dict(logs))
        if self.after_batch is not None:
            self.after_batch(self.model, self.steps)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epochs.append(epoch)
        if self.after_epoch is not None:
            self.after_epoch(self.model, epoch)


def stops(context: Any) -> Any:
    return context.request_stop()


def fails(context: Any) -> Any:
    raise StopIteration


def stop_fit(model: Any) -> None:
    model.stop_training = True


def at(place: int, task: int, act: Callable[[Any], None]) -> Any:
    """A function that acts at one place of one process."""
    return lambda it, number: act(it) if (task, place) == (TASK, number) else None


@functools.cache
def still(steps: int) -> Any:
    """A model that learns nothing, for all who want one: a trace takes long."""
    return compiled_model(steps_per_execution=steps)


def values() -> None:
    watch, log = Watch(fetches=["loss:0", "mse:0", "global_step:0"]), Log()
    model = still(1)
    history = fit(model, [watch, log])
    note(
        "values",
        values=watch.values,
        logs=log.logs,
        history=history,
        steps=int(model.optimizer.iterations.numpy()),
    )


STOPS: dict[str, Callable[[], list[Any]]] = {
    "hook of 1": lambda: [Watch(at(5, 1, stops))],
    "at the end of an epoch": lambda: [Watch(at(BATCHES, 1, stops))],
    "in the last step": lambda: [Watch(at(EPOCHS * BATCHES, 1, stops))],
    "in before_run": lambda: [Watch(before=at(5, 1, stops))],
    "error in after_run": lambda: [Watch(at(5, 1, fails))],
    "error in before_run": lambda: [Watch(before=at(5, 1, fails))],
    "StopAtStepHook": lambda: [v1.train.StopAtStepHook(num_steps=5), Watch()],
    "batch of 1": lambda: [Watch(), Log(after_batch=at(5, 1, stop_fit))],
    "epoch of 1": lambda: [Watch(), Log(after_epoch=at(1, 1, stop_fit))],
    "epoch of all": lambda: [keras.callbacks.EarlyStopping("loss"), Watch()],
    "no hook but in 0": lambda: [
        hb.set_role(Watch(at(5, 0, stops)), "chief"),
        keras.callbacks.History(),
    ],
    "two at once": lambda: [
        Watch(at(5, 0, stops)),
        Log(after_batch=at(5, 1, stop_fit)),
    ],
}


def stop(name: str, steps: int = 1) -> None:
    items, count, model = STOPS[name](), Log(), still(steps)
    before = int(model.optimizer.iterations.numpy())
    fit(model, [*items, count])
    watches = [each for each in items if isinstance(each, Watch)]
    note(
        f"stop {name}" + (f", {steps} steps a call" if steps > 1 else ""),
        batches=count.steps,
        epochs=count.epochs,
        steps=int(model.optimizer.iterations.numpy()) - before,
        runs=[watch.runs for watch in watches],
        ends=[watch.ends for watch in watches],
    )


def roles() -> None:
    chief, worker = hb.set_role(Watch(), "chief"), hb.set_role(Log(), "worker")
    everywhere = Watch()
    fit(still(1), [chief, worker, everywhere], epochs=1)
    note("roles", runs=[chief.runs, worker.steps, everywhere.runs])


def weights() -> None:
    """Real steps: with hooks in one process only, and without hookbridge."""
    found = []
    for items in ([Watch(fetches="loss:0")] if TASK == 0 else [], None):
        model = compiled_model(0.01)
        if items is None:
            options = {"epochs": EPOCHS, "steps_per_epoch": BATCHES, "verbose": 0}
            model.fit(batches(), **options)
        else:
            fit(model, items)
        found.append([w.numpy().tolist() for w in model.trainable_weights])
    note("weights", hooked=found[0], native=found[1])


def restart() -> None:
    """A job that saves, and one that goes on from its checkpoint."""
    folder = str(EVENTS.parent / "saved")
    for steps in (5, 3):
        model = compiled_model(0.01, keras.layers.BatchNormalization)
        if os.path.exists(folder):
            hb.checkpoints.restore(model, folder)
        saver, log = v1.train.CheckpointSaverHook(folder, save_steps=1), Log()
        before = int(model.optimizer.iterations.numpy())
        end = v1.train.StopAtStepHook(num_steps=steps)
        fit(model, [log, saver, end], epochs=9)
        note(
            "restart",
            before=before,
            after=int(model.optimizer.iterations.numpy()),
            state=log.steps,
            files=sorted(os.listdir(folder)),
            by=len(list(Path(folder).glob("events*"))),
        )


def other_loops() -> None:
    """`evaluate`, `predict`, and the validation in `fit`."""
    model, seen = still(1), {}
    for name in ("evaluate", "predict"):
        watch = Watch(fetches="loss:0" if name == "evaluate" else None)
        loop = getattr(model, name)
        loop(batches(), steps=BATCHES, verbose=0, callbacks=hb.as_callbacks(watch))
        seen[name] = [watch.runs, watch.ends]
        stopped = Watch(at(1, TASK, stops))
        loop(batches(), steps=BATCHES, verbose=0, callbacks=hb.as_callbacks(stopped))
        seen[f"stopped {name}"] = [stopped.runs, stopped.ends]
    watch = Watch()
    fit(model, watch, epochs=2, validation_data=batches(), validation_steps=2)
    note("loops", fit=[watch.runs, watch.ends], **seen)


def lone_stop(loop: str) -> None:
    """The chief alone asks for a stop in `evaluate` or `predict`."""
    watch = Watch(at(2, 0, stops))
    try:
        getattr(still(1), loop)(
            batches(), steps=BATCHES, verbose=0, callbacks=hb.as_callbacks(watch)
        )
    except tf.errors.OpError as e:
        note("failed", error=type(e).__name__)
        raise


def mirrored() -> None:
    """Processes that train on their own, on two devices each."""
    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    global STRATEGY
    STRATEGY = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    watch = Watch(at(5, 1, stops), fetches="loss:0")
    fit(compiled_model(), watch)
    note("mirrored", values=watch.values)


def killed(task: int) -> None:
    def kill(it: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        fit(compiled_model(), [Watch(at(3, task, kill)), Log()])
    except tf.errors.OpError as e:
        note("lost", error=type(e).__name__)
        raise


def refused() -> None:
    """Only the chief gives `fit` what `as_callbacks` returned."""
    agreement.BEGIN_SECS = 1.0
    try:
        if TASK == 0:
            fit(compiled_model(), Watch())
        else:
            options = {"epochs": EPOCHS, "steps_per_epoch": BATCHES, "verbose": 0}
            compiled_model().fit(batches(), **options)
    except hb.errors.RefusedError as e:
        note("refused", error=str(e))
        os._exit(1)  # TensorFlow would wait for the other process, which waits for it
    except tf.errors.OpError:
        note("lost")


def run_case(name: str) -> None:
    word, *rest = name.split(":")
    if word == "stop":
        stop(rest[0], *map(int, rest[1:]))
    elif word == "lone_stop":
        lone_stop(*rest)
    elif word == "every_stop":
        for each in STOPS:
            stop(each)
    else:
        globals()[word](*map(int, rest))


if __name__ == "__main__":
    np.random.seed(0)
    for case in CASES:
        run_case(case)
    note("done")

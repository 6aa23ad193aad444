"""What the first loop of a Keras model costs with hooks, and what the second costs.

    python -m benchmarks.startup --json=startup.json
    python -m benchmarks.startup --keras=tf_keras --loop=evaluate

MobileNetV2 for images of 64x64 pixels runs two loops of 2 batches of 8 images: with a
native callback, with a hook that fetches the loss, with `CheckpointSaverHook`,
`LoggingTensorHook` and `StepCounterHook`, and with a callback that does by hand what
these three do. The hooks of the second loop are new objects. Making and compiling the
model is not counted.
"""

from __future__ import annotations

import functools
import gc
import importlib
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base

v1: Any = tf.compat.v1

BATCH_SIZE, CLASSES, SHAPE = 8, 10, (64, 64, 3)
NATIVE = "native callback"
# What a hook fetches in each loop: `predict` has no loss.
FETCHED = {"fit": "loss:0", "evaluate": "loss:0", "predict": "outputs/predictions:0"}


def native_callback(keras: Any) -> Any:
    """A callback that keeps what it gets after each batch."""

    class Keeping(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.seen = logs

        on_test_batch_end = on_predict_batch_end = on_train_batch_end

    return Keeping()


def by_hand(keras: Any, directory: str, steps: int) -> Any:
    """A callback that saves, logs and counts as the three stock hooks do."""

    class ByHand(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.count = 0
            self.writer = tf.summary.create_file_writer(directory)
            saved = tf.train.Checkpoint(model=self.model)
            self.manager = tf.train.CheckpointManager(saved, directory, max_to_keep=5)
            self.manager.save(0)
            self.began = time.perf_counter()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.count += 1
            v1.logging.info("%s", logs)
            now = time.perf_counter()
            with self.writer.as_default():
                tf.summary.scalar("steps/sec", 1 / (now - self.began), self.count)
            self.began = now
            if self.count == steps:
                self.manager.save(self.count)

        def on_train_end(self, logs: Any = None) -> None:
            self.writer.close()

        on_test_begin = on_predict_begin = on_train_begin
        on_test_batch_end = on_predict_batch_end = on_train_batch_end
        on_test_end = on_predict_end = on_train_end

    return ByHand()


class FetchingHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Fetches one tensor in each step."""

    def __init__(self, name: str) -> None:
        self._args = v1.train.SessionRunArgs(name)

    def before_run(self, run_context: Any) -> Any:
        return self._args

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen = run_values.results


def guests(keras: Any, loop: str, steps: int) -> dict[str, Callable[[], list[Any]]]:
    """The callbacks of each case, new in each call."""
    name = FETCHED[loop]

    def stock() -> list[Any]:
        directory = tempfile.mkdtemp()
        hooks = [
            v1.train.CheckpointSaverHook(directory, save_steps=steps),
            v1.train.LoggingTensorHook([name], every_n_iter=1),
            v1.train.StepCounterHook(every_n_steps=1, output_dir=directory),
        ]
        return hb.as_callbacks(hooks)

    return {
        NATIVE: lambda: [native_callback(keras)],
        "hook that fetches": lambda: hb.as_callbacks([FetchingHook(name)]),
        "three stock hooks": stock,
        "the three by hand": lambda: [by_hand(keras, tempfile.mkdtemp(), steps)],
    }


def new_model(keras: Any, tiny: bool) -> Any:
    """Keras's MobileNetV2, or a small model, with the same weights each time."""
    keras.utils.set_random_seed(1)
    if tiny:
        layers = keras.layers
        inputs = layers.Input(SHAPE)
        outputs = layers.Dense(CLASSES, "softmax", name="predictions")
        model = keras.Model(inputs, outputs(layers.Flatten()(inputs)))
    else:
        model = keras.applications.MobileNetV2(
            input_shape=SHAPE, weights=None, classes=CLASSES
        )
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def two_loops(
    options: Any, keras: Any, loop: str, callbacks: Callable[[], list[Any]]
) -> tuple[base.Sample, base.Sample]:
    """The seconds of the first loop of a new model, and those of the second."""
    random = np.random.RandomState(0)
    count = BATCH_SIZE * options.steps
    x = random.rand(count, *SHAPE).astype("float32")
    y = random.randint(0, CLASSES, count)
    keras.backend.clear_session()
    model = new_model(keras, options.tiny)

    def sample() -> base.Sample:
        guests = callbacks()
        gc.collect()
        secs = -base.clock()
        loss = run(model, loop, x, y, guests)
        return base.Sample(secs + base.clock(), loss)

    return sample(), sample()


def measure(options: Any, keras: Any, loop: str) -> list[dict[str, base.Timing]]:
    """The timings of all first loops, and those of all second loops."""
    cases = {
        name: functools.partial(two_loops, options, keras, loop, callbacks)
        for name, callbacks in guests(keras, loop, options.steps).items()
    }
    pairs = base.in_turn(cases, options.repeats + 1)
    return [
        base.timings_of(
            {name: [pair[which] for pair in found] for name, found in pairs.items()},
            tolerance=1e-3,
        )
        for which in (0, 1)
    ]


def run(model: Any, loop: str, x: Any, y: Any, callbacks: list[Any]) -> float:
    """One loop; returns a number that shows what it has computed."""
    options = {"batch_size": BATCH_SIZE, "verbose": 0, "callbacks": callbacks}
    if loop == "fit":
        return float(model.fit(x, y, shuffle=False, **options).history["loss"][-1])
    if loop == "evaluate":
        return float(model.evaluate(x, y, **options))
    return float(np.mean(model.predict(x, **options)[:, 0]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = base.parser(str(__doc__), steps=2, repeats=3, clock="cpu")
    parser.add_argument("--keras", choices=("keras", "tf_keras"), default="keras")
    parser.add_argument("--loop", choices=(*FETCHED, "all"), default="all")
    parser.add_argument(
        "--tiny", action="store_true", help="a small model, to try the benchmark"
    )
    options = base.options_of(parser, arguments)
    v1.logging.set_verbosity(v1.logging.ERROR)
    # Keras 2 may be beside Keras 3.
    is_beside = options.keras == "tf_keras"
    keras: Any = importlib.import_module("tf_keras") if is_beside else tf.keras
    base.print_facts(options)
    found: dict[str, dict[str, base.Timing]] = {}
    for loop in FETCHED if options.loop == "all" else (options.loop,):
        timings = measure(options, keras, loop)
        rows = [
            [
                name,
                *(
                    text
                    for each in timings
                    for text in (
                        f"{each[name].microsecs / 1e6:.2f}",
                        f"{each[name].ratio_to(each[NATIVE]):.2f}",
                    )
                ),
            ]
            for name in timings[0]
        ]
        header = [f"`{loop}`", "first, s", "ratio", "second, s", "ratio"]
        print(base.markdown(rows, header))
        found |= {f"{loop}, first": timings[0], f"{loop}, second": timings[1]}
    base.write_json(options, **found)


if __name__ == "__main__":
    base.one_thread_per_op()
    main()

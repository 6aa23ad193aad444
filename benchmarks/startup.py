"""What the first loop of a Keras model costs with hooks, and what the second costs.

    python benchmarks/startup.py --json=startup.json
    python benchmarks/startup.py --keras=tf_keras --loop=evaluate

MobileNetV2 for images of 64x64 pixels runs two loops of 2 batches of 8 images: with a
native callback, with a hook that fetches nothing, with one that fetches the loss, and
with `CheckpointSaverHook`, `LoggingTensorHook` and `StepCounterHook`. The hooks of the
second loop are new objects. Making and compiling the model is not counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.overhead_cases import IdleHook

v1: Any = tf.compat.v1

BATCH_SIZE, STEPS, CLASSES = 8, 2, 10
LOOPS = ("fit", "evaluate", "predict")
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


class FetchingHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Fetches one tensor in each step."""

    def __init__(self, name: str) -> None:
        self._name = name

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(self._name)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen = run_values.results


def stock_hooks(name: str, directory: str) -> list[Any]:
    """Three of TensorFlow's own hooks."""
    return [
        v1.train.CheckpointSaverHook(directory, save_steps=STEPS),
        v1.train.LoggingTensorHook([name], every_n_iter=1),
        v1.train.StepCounterHook(every_n_steps=1, output_dir=directory),
    ]


def guests(keras: Any, loop: str) -> dict[str, Callable[[], list[Any]]]:
    """The callbacks of each case, new in each call."""
    name = FETCHED[loop]

    def stock() -> list[Any]:
        return hb.as_callbacks(stock_hooks(name, tempfile.mkdtemp()))

    return {
        NATIVE: lambda: [native_callback(keras)],
        "hook without fetches": lambda: hb.as_callbacks([IdleHook()]),
        "hook that fetches": lambda: hb.as_callbacks([FetchingHook(name)]),
        "three stock hooks": stock,
    }


def new_model(keras: Any, size: int, tiny: bool) -> Any:
    """Keras's MobileNetV2, or a small model, with the same weights each time."""
    keras.utils.set_random_seed(1)
    if tiny:
        layers = keras.layers
        inputs = layers.Input([size, size, 3])
        outputs = layers.Dense(CLASSES, "softmax", name="predictions")
        model = keras.Model(inputs, outputs(layers.Flatten()(inputs)))
    else:
        model = keras.applications.MobileNetV2(
            input_shape=(size, size, 3), weights=None, classes=CLASSES
        )
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


class Result:
    """The seconds of one case: one list for the first loop, one for the second."""

    def __init__(self) -> None:
        self.secs: tuple[list[float], list[float]] = ([], [])

    def median(self, which: int) -> float:
        return statistics.median(self.secs[which])

    def ratio_to(self, other: Result, which: int) -> float:
        """Median of the ratios within each repeat, where both saw the same machine."""
        pairs = zip(self.secs[which], other.secs[which], strict=True)
        return statistics.median(own / its for own, its in pairs)


def measure(
    keras: Any, loop: str, size: int, repeats: int, tiny: bool
) -> dict[str, Result]:
    """All cases in turn, with a new model each time; the first repeat is dropped."""
    random = np.random.RandomState(0)
    x = random.rand(BATCH_SIZE * STEPS, size, size, 3).astype("float32")
    y = random.randint(0, CLASSES, BATCH_SIZE * STEPS)
    cases = guests(keras, loop)
    results = {name: Result() for name in cases}
    for repeat in range(repeats + 1):
        order = list(cases) if repeat % 2 == 0 else list(reversed(cases))
        losses: dict[str, float] = {}
        for name in order:
            keras.backend.clear_session()
            model = new_model(keras, size, tiny)
            for which in (0, 1):
                callbacks = cases[name]()
                gc.collect()  # garbage of the previous case
                secs = -base.clock()
                losses[name] = run(model, loop, x, y, callbacks)
                secs += base.clock()
                if repeat:
                    results[name].secs[which].append(secs)
        base.check_losses(losses, tolerance=1e-3)
    return results


def run(model: Any, loop: str, x: Any, y: Any, callbacks: list[Any]) -> float:
    """One loop; returns a number that shows what it has computed."""
    options = {"batch_size": BATCH_SIZE, "verbose": 0, "callbacks": callbacks}
    if loop == "fit":
        return float(model.fit(x, y, shuffle=False, **options).history["loss"][-1])
    if loop == "evaluate":
        return float(model.evaluate(x, y, **options))
    return float(np.mean(model.predict(x, **options)[:, 0]))


def parse(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--keras", choices=("keras", "tf_keras"), default="keras")
    parser.add_argument("--loop", choices=(*LOOPS, "all"), default="all")
    parser.add_argument("--size", type=int, default=64, help="pixels of an edge")
    parser.add_argument(
        "--tiny", action="store_true", help="a small model, to try the benchmark"
    )
    parser.add_argument("--repeats", type=int, default=3, help="new models of a case")
    parser.add_argument("--clock", choices=base.CLOCKS, default="cpu")
    parser.add_argument("--json", help="file to write the results to")
    options = parser.parse_args(arguments)
    if options.repeats < 1 or options.size < 32:
        parser.error("--repeats has to be 1 or more, --size 32 or more")
    return options


def keras_of(name: str) -> Any:
    """The Keras of `tf.keras`, or Keras 2 beside Keras 3."""
    if name == "tf_keras":
        import tf_keras

        return tf_keras
    return tf.keras


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    base.use_clock(options.clock)
    v1.logging.set_verbosity(v1.logging.ERROR)
    keras = keras_of(options.keras)
    print(", ".join(f"{key} {value}" for key, value in base.machine().items()))
    print(f"{keras.__name__}, {options.clock} seconds, {options.repeats} repeats\n")
    content: dict[str, Any] = {"machine": base.machine(), "clock": options.clock}
    for loop in LOOPS if options.loop == "all" else (options.loop,):
        results = measure(keras, loop, options.size, options.repeats, options.tiny)
        native = results[NATIVE]
        rows = [
            [
                name,
                *(
                    text
                    for which in (0, 1)
                    for text in (
                        f"{found.median(which):.2f}",
                        f"{found.ratio_to(native, which):.2f}",
                    )
                ),
            ]
            for name, found in results.items()
        ]
        header = [f"`{loop}`", "first, s", "ratio", "second, s", "ratio"]
        print(base.markdown(rows, header))
        content[loop] = {name: found.secs for name, found in results.items()}
    if options.json:
        Path(options.json).write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())

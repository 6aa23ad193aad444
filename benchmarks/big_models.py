"""What callbacks in a session cost with big models: saves, restores, the first step.

    python -m benchmarks.big_models --clock=cpu

A Keras 2 model of `--megabytes` trains in `Model.fit` and in a session (`model=`), with
the same callbacks. The time of a save is the time of an epoch with the guest, minus the
time of an epoch without it. The time to the first step begins before `as_hooks` and
ends with the first run; it is compared with a session that has one native hook. Every
measurement has its own process.
"""

from __future__ import annotations

import importlib
import itertools
import os
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.child import measured, peak_mb

is_old = tf.__version__.startswith("2.15.")
keras: Any = tf.keras if is_old else importlib.import_module("tf_keras")
v1: Any = tf.compat.v1

# Not timed: the first epoch, which pays for what is made once, and the last one, whose
# end nothing notes.
NOT_TIMED = 2
INPUTS = 64


class Looks(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Keeps all layers, uses no weight, and overrides batch and epoch events."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.kept = self.model.layers

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        pass

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        pass


class Keeps(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Keeps the weights of each epoch, as `EarlyStopping` does with the best ones."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.best = self.model.get_weights()


class Restores(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Sets weights that it has read, as `EarlyStopping` does with the best ones."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.best = self.model.get_weights()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.set_weights(self.best)


def checkpoint(**options: Any) -> Any:
    """A `ModelCheckpoint` of weights that writes in a folder of its own."""
    path = os.path.join(tempfile.mkdtemp(prefix="big_models"), "weights.h5")
    return keras.callbacks.ModelCheckpoint(path, save_weights_only=True, **options)


def best_weights() -> Any:
    """An `EarlyStopping` that never stops."""
    return keras.callbacks.EarlyStopping(
        "loss", patience=10**6, restore_best_weights=True
    )


GUESTS: dict[str, Callable[[], Any]] = {
    "ModelCheckpoint, weights": checkpoint,
    "best weights kept": Keeps,
    "best weights restored": Restores,
    "History": keras.callbacks.History,
    "layers kept, not used": Looks,
}


def big_model(megabytes: int) -> Any:
    """Big layers that are not trained, so that a step is quick, and a head."""
    side = max(int((megabytes * 1e6 / 8) ** 0.5), 8)
    big = [
        keras.layers.Dense(side, trainable=False, name=name)
        for name in ("first", "big_1", "big_2")
    ]
    head = keras.layers.Dense(1, name="head")
    return keras.Sequential([keras.layers.Input([INPUTS]), *big, head])


class Epochs(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Notes when each epoch begins."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.times.append(base.clock())

    def result(self) -> dict[str, float]:
        """Median seconds of an epoch but the first and the last; the peak of memory."""
        pairs = zip(self.times[2:], self.times[1:], strict=False)
        secs = statistics.median(later - earlier for later, earlier in pairs)
        timed = len(self.times) - NOT_TIMED
        return {"secs": secs, "epochs": timed, "mb": peak_mb()}


def fit_epochs(
    megabytes: int, make: Callable[[], Any] | None, epochs: int
) -> dict[str, float]:
    """Seconds of an epoch of `fit`, and the peak of memory."""
    model = big_model(megabytes)
    model.compile(keras.optimizers.legacy.SGD(0.01), "mse")
    clock = Epochs()
    guests = [] if make is None else [make()]
    data = np.ones([1, INPUTS], "float32"), np.ones([1, 1], "float32")
    epochs += NOT_TIMED
    model.fit(*data, epochs=epochs, verbose=0, callbacks=[clock, *guests])
    return clock.result()


def session_epochs(
    megabytes: int, make: Callable[[], Any] | None, epochs: int
) -> dict[str, float]:
    """Seconds of an epoch in a session, and the peak of memory."""
    with tf.Graph().as_default():
        model = big_model(megabytes)
        train_op = graph_step(model, [INPUTS], 1)
        clock = Epochs()
        guests = [] if make is None else [make()]
        hooks = hb.as_hooks(
            [clock, *guests], steps_per_epoch=1, epochs=epochs + NOT_TIMED, model=model
        )
        train(train_op, hooks)
    return clock.result()


def graph_step(model: Any, inputs: list[int], outputs: int) -> Any:
    """Builds the loss and the train op of a model in the default graph."""
    step = v1.train.get_or_create_global_step()
    predictions = model(tf.ones([1, *inputs]))
    loss = tf.reduce_mean(tf.square(predictions - tf.ones([1, outputs])), name="loss")
    v1.losses.add_loss(loss)
    return v1.train.GradientDescentOptimizer(0.01).minimize(loss, step)


def train(train_op: Any, hooks: list[Any]) -> None:
    """Runs steps until a hook asks for a stop."""
    with v1.train.MonitoredTrainingSession(
        hooks=hooks, log_step_count_steps=None
    ) as session:
        while not session.should_stop():
            session.run(train_op)


# --- the first step -----------------------------------------------------------------


def mobile_net(_: bool) -> tuple[Any, list[int], int]:
    """The model, the shape of its inputs and the number of its outputs."""
    shape = [64, 64, 3]
    model = keras.applications.MobileNetV2(
        input_shape=tuple(shape), weights=None, classes=10
    )
    return model, shape, 10


def many_variables(tiny: bool) -> tuple[Any, list[int], int]:
    """A model of 1,000 variables."""
    inputs = outputs = keras.layers.Input([8])
    for _ in range(5 if tiny else 500):
        outputs = keras.layers.Dense(8)(outputs)
    return keras.Model(inputs, outputs), [8], 8


def many_operations(tiny: bool) -> tuple[Any, list[int], int]:
    """A small model in a graph of 100,000 operations, which are all in the step."""

    def chain(x: Any) -> Any:
        for _ in range(100 if tiny else 50_000):
            x = tf.abs(x)  # and one operation for its gradient
        return x

    inputs = keras.layers.Input([8])
    outputs = keras.layers.Lambda(chain)(keras.layers.Dense(8)(inputs))
    return keras.Model(inputs, outputs), [8], 8


MODELS = {
    "MobileNetV2": mobile_net,
    "1,000 variables": many_variables,
    "100,000 operations": many_operations,
}


def native_hook(_: Any) -> list[Any]:
    """One hook of TensorFlow's own that fetches the loss."""
    return [v1.train.LoggingTensorHook(["loss:0"], every_n_iter=10**6)]


def bridged(*makes: Callable[[], Any]) -> Callable[[Any], list[Any]]:
    """Makes hooks of callbacks, given the model."""
    return lambda model: list(
        hb.as_hooks([make() for make in makes], steps_per_epoch=100, model=model)
    )


LISTS: dict[str, Callable[[Any], list[Any]]] = {
    "native hook": native_hook,
    "History, EarlyStopping": bridged(keras.callbacks.History, best_weights),
    "and ModelCheckpoint": bridged(keras.callbacks.History, best_weights, checkpoint),
}


def first_step(
    make: Callable[[bool], Any], hooks: Callable[[Any], list[Any]], tiny: bool
) -> dict[str, float]:
    """Seconds from the making of the hooks to the end of the first run."""
    with tf.Graph().as_default():
        model, inputs, outputs = make(tiny)
        train_op = graph_step(model, inputs, outputs)
        start = base.clock()
        with v1.train.MonitoredTrainingSession(
            hooks=hooks(model), log_step_count_steps=None
        ) as session:
            session.run(train_op)
            secs = base.clock() - start
    return {"secs": secs, "mb": peak_mb()}


# --- tables -------------------------------------------------------------------------

Results = dict[str, list[dict[str, float]]]


def measure_weights(options: Any) -> Results:
    """Measures each guest, and no guest, in both loops, in epochs of one step."""
    makes: dict[str, Any] = {"none": None, **GUESTS}
    if options.tiny:
        makes = dict(itertools.islice(makes.items(), 2))
    megabytes, epochs = options.megabytes, options.steps
    loops = {"fit": fit_epochs, "session": session_epochs}
    cases = {
        f"{loop}: {name}": (lambda run=run, make=make: run(megabytes, make, epochs))
        for name, make in makes.items()
        for loop, run in loops.items()
    }
    return measured(cases, options.repeats)


def measure_first_steps(repeats: int, tiny: bool) -> Results:
    """Measures each list of hooks on each model; on small models if `tiny`."""
    cases = {
        f"{model}: {name}": (
            lambda make=make, hooks=hooks: first_step(make, hooks, tiny)
        )
        for model, make in list(MODELS.items())[-1 if tiny else 0 :]
        for name, hooks in LISTS.items()
    }
    return measured(cases, repeats)


def weight_rows(found: Results) -> list[list[str]]:
    """A row for each guest: the seconds it adds to an epoch in each loop, and peaks."""
    rows = []
    for name in (name for name in GUESTS if f"fit: {name}" in found):
        secs = {}
        for loop in ("fit", "session"):
            own, none = found[f"{loop}: {name}"], found[f"{loop}: none"]
            secs[loop] = statistics.median(
                a["secs"] - b["secs"] for a, b in zip(own, none, strict=True)
            )
        quick = secs["fit"] < 0.01  # too short for a ratio
        ratio = "" if quick else f"{secs['session'] / secs['fit']:.2f}"
        peaks = [
            statistics.median(result["mb"] for result in found[f"{loop}: {name}"])
            for loop in secs
        ]
        cells = [f"{s:.3f}" for s in secs.values()]
        rows.append([name, *cells, ratio, *(f"{mb:.0f}" for mb in peaks)])
    return rows


def first_step_rows(found: Results) -> list[list[str]]:
    """A row for each model and list of hooks."""
    rows = []
    for model in dict.fromkeys(case.partition(": ")[0] for case in found):
        native = found[f"{model}: {next(iter(LISTS))}"]
        for name in LISTS:
            own = found[f"{model}: {name}"]
            ratio = statistics.median(
                a["secs"] / b["secs"] for a, b in zip(own, native, strict=True)
            )
            secs = statistics.median(result["secs"] for result in own)
            rows.append([model, name, f"{secs:.2f}", f"{ratio:.2f}"])
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = base.parser(str(__doc__), steps=4, repeats=3)
    parser.add_argument("--megabytes", type=int, default=200, help="of the big model")
    parser.add_argument("--tiny", action="store_true", help="small models, to try it")
    parser.add_argument("--only", choices=("weights", "first_step"))
    options = base.options_of(parser, arguments)
    found: dict[str, Results] = {}
    if options.only != "first_step":
        found["weights"] = measure_weights(options)
        header = ["guest", "fit, s", "session, s", "ratio", "fit, peak MB", "session"]
        print(base.markdown(weight_rows(found["weights"]), header))
    if options.only != "weights":
        found["first_steps"] = measure_first_steps(options.repeats, options.tiny)
        header = ["model", "hooks", "first step, s", "of the native hook's"]
        print(base.markdown(first_step_rows(found["first_steps"]), header))
    base.print_facts(options)
    base.write_results(options, **found)


if __name__ == "__main__":
    main()

"""Every stock callback of every Keras in every loop: how it is made, run and reported.

`write_tables.py` writes the tables of `docs/callbacks-in-sessions.md`.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from callback_loops import STEPS, X, Y, session_loop
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

# The Keras modules of this environment; the last is Keras 2: its models can be in a
# graph.
FLAVOURS = ["keras"] if tf.__version__.startswith("2.15") else ["keras", "tf_keras"]
KERAS2 = importlib.import_module(FLAVOURS[-1])
Make = Callable[[Any, Path], Any]

# Class name -> how it is constructed. `test_no_class_is_unknown` fails for a class of
# Keras that is missing here.
STOCK: dict[str, Make] = {
    "BackupAndRestore": lambda c, d: c.BackupAndRestore(str(d / "backup")),
    "BaseLogger": lambda c, d: c.BaseLogger(),
    "CSVLogger": lambda c, d: c.CSVLogger(str(d / "log.csv")),
    "Callback": lambda c, d: c.Callback(),
    "EarlyStopping": lambda c, d: c.EarlyStopping("loss"),
    "History": lambda c, d: c.History(),
    "LambdaCallback": lambda c, d: c.LambdaCallback(on_epoch_end=lambda e, logs: None),
    "LearningRateScheduler": lambda c, d: c.LearningRateScheduler(lambda e: 0.1),
    "ModelCheckpoint": lambda c, d: c.ModelCheckpoint(
        str(d / "w.weights.h5"), save_weights_only=True
    ),
    "OrbaxCheckpoint": lambda c, d: c.OrbaxCheckpoint.__new__(c.OrbaxCheckpoint),
    "ProgbarLogger": lambda c, d: c.ProgbarLogger(),
    "ReduceLROnPlateau": lambda c, d: c.ReduceLROnPlateau("loss"),
    "RemoteMonitor": lambda c, d: c.RemoteMonitor(root="http://localhost:9"),
    "SidecarEvaluatorModelExport": lambda c, d: c.SidecarEvaluatorModelExport(
        export_filepath=str(d / "export"),
        checkpoint_filepath=str(d / "ckpt"),
        save_weights_only=True,
        monitor="loss",
    ),
    "SwapEMAWeights": lambda c, d: c.SwapEMAWeights(),
    "TensorBoard": lambda c, d: c.TensorBoard(str(d / "tb")),
    "TerminateOnNaN": lambda c, d: c.TerminateOnNaN(),
    "UpdateEmbeddingCallback": lambda c, d: (
        c.experimental.UpdateEmbeddingCallback.__new__(
            c.experimental.UpdateEmbeddingCallback
        )
    ),
    "experimental.BackupAndRestore": lambda c, d: c.experimental.BackupAndRestore(
        str(d / "backup")
    ),
}
REFUSED = {"OrbaxCheckpoint", "SwapEMAWeights", "UpdateEmbeddingCallback"}
_CONTAINERS = {"CallbackList"}


def stock_of(keras: Any) -> list[str]:
    """Names of all callback classes that a Keras offers."""
    found = [
        name
        for name in dir(keras.callbacks)
        if isinstance(getattr(keras.callbacks, name), type) and name not in _CONTAINERS
    ]
    experimental = getattr(keras.callbacks, "experimental", None)
    for name in dir(experimental) if experimental is not None else ():
        if isinstance(getattr(experimental, name), type):
            inner = f"experimental.{name}"
            found.append(inner if inner in STOCK else name)
    return sorted(set(found))


LOOPS = (
    "bare graph",
    "Keras model in the graph",
    "Estimator.train",
    "train_and_evaluate",
    "Estimator.evaluate",
    "Estimator.predict",
    "Estimator.train, 2 towers",
)
ALONE = ("bare graph", "Estimator.train")


def carry(keras: Any, folder: Path) -> dict[str, dict[str, str]]:
    """Runs all stock callbacks in every loop.

    In the loops of `ALONE` each callback runs alone. In the other loops, those that are
    not refused share one run.
    """
    names = stock_of(keras)
    # A Keras model can have one backup callback only.
    together = [n for n in names if n not in REFUSED and "experimental" not in n]
    cells: dict[str, dict[str, str]] = {name: {} for name in names}
    for loop in LOOPS:
        groups = [[name] for name in names if loop in ALONE or name not in together]
        groups += [] if loop in ALONE else [together]
        for number, group in enumerate(groups):
            place = folder / loop.replace(" ", "_") / str(number)
            outcome = _carry_in(loop, keras, group, place)
            for name in group:
                cells[name][loop] = outcome
    return cells


def _carry_in(loop: str, keras: Any, names: list[str], place: Path) -> str:
    """Runs some callbacks in one run of a loop."""
    seen: list[str] = []

    class Count(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        """Shows that each run reached its end with the stock callbacks."""

        def on_train_end(self, logs: Any = None) -> None:
            assert int(self.model.optimizer.iterations.numpy()) == 2 * STEPS
            seen.append("train")

        def on_test_end(self, logs: Any = None) -> None:
            seen.append("test")

        def on_predict_end(self, logs: Any = None) -> None:
            seen.append("predict")

    run, expected = _RUNS[loop]
    callbacks = []
    for name in names:
        (place / name).mkdir(parents=True)
        callbacks.append(STOCK[name](keras.callbacks, place / name))
    try:
        run([*callbacks, Count()], place)
    except errors.RefusedError as e:
        reason = str(e).split(": ", 1)[1].partition(" See `hookbridge")[0]
        return f"refused: {reason}"
    gc.collect()  # later, dropping an iterator may take TensorFlow 60 s
    assert seen == expected, (names, loop, seen)
    return "carried"


def _estimator(folder: Path, towers: int = 1) -> Any:
    estimator = importlib.import_module("hookbridge.estimator")

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        kernel = tf.compat.v1.get_variable("dense/kernel", [2, 1])
        outputs = features @ kernel
        if mode == estimator.ModeKeys.PREDICT:
            return estimator.EstimatorSpec(mode, predictions={"y": outputs})
        loss = tf.reduce_mean(tf.square(outputs - labels))
        train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, global_step=tf.compat.v1.train.get_global_step()
        )
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    config = estimator.RunConfig(
        str(folder / "model_dir"), save_checkpoints_steps=STEPS
    )
    replicated = hb.replicate_model_fn(model_fn, ["/device:CPU:0"] * towers)
    return estimator.Estimator(replicated if towers > 1 else model_fn, config=config)


def _data() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)


def _train(callbacks: list[Any], folder: Path, towers: int = 1) -> None:
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS, epochs=2)
    _estimator(folder, towers).train(lambda: _data().repeat(), hooks=hooks)


def _train_and_evaluate(callbacks: list[Any], folder: Path) -> None:
    estimator = importlib.import_module("hookbridge.estimator")
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS)
    estimator.train_and_evaluate(
        _estimator(folder),
        estimator.TrainSpec(lambda: _data().repeat(), max_steps=2 * STEPS, hooks=hooks),
        estimator.EvalSpec(
            _data, steps=2, hooks=hooks, throttle_secs=0, start_delay_secs=0
        ),
    )


@functools.cache
def _checkpoint() -> str:
    """The checkpoint of one step, for all evaluations and predictions."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    estimator = _estimator(folder)
    estimator.train(_data, steps=1)
    return str(estimator.latest_checkpoint())


def _evaluate(callbacks: list[Any], folder: Path) -> None:
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS)
    _estimator(folder).evaluate(
        _data, steps=2, hooks=hooks, checkpoint_path=_checkpoint()
    )


def _predict(callbacks: list[Any], folder: Path) -> None:
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS)
    predictions = _estimator(folder).predict(
        _data, hooks=hooks, checkpoint_path=_checkpoint()
    )
    assert len(list(predictions)) == len(X)


# Loop -> (runs callbacks in it, the `on_*_end` events that they get in order).
_RUNS: dict[str, tuple[Callable[[list[Any], Path], Any], list[str]]] = dict(
    zip(
        LOOPS,
        (
            (lambda c, d: session_loop(c, epochs=2, validate=False), ["train"]),
            (lambda c, d: keras_graph_loop(KERAS2, c, epochs=2), ["train"]),
            (_train, ["train"]),
            (_train_and_evaluate, ["test", "test", "train"]),
            (_evaluate, ["test"]),
            (_predict, ["predict"]),
            (functools.partial(_train, towers=2), ["train"]),
        ),
        strict=True,
    )
)
TABLE = Path(__file__).resolve().parents[3] / "docs" / "callbacks-in-sessions.md"


def table_of(keras: Any, outcomes: dict[str, dict[str, str]]) -> str:
    """The lines of one Keras, from what `carry` found for each of its callbacks.

    A callback has the same outcome in each loop, as the test checks.
    """
    carried = [name for name, cells in outcomes.items() if name not in REFUSED]
    lines = [f"### {title_of(keras)}", ""]
    lines += [f"- carried: {', '.join(f'`{name}`' for name in carried)}"]
    for name, cells in outcomes.items():
        if name in REFUSED:
            lines.append(f"- `{name}` is {cells[LOOPS[0]]}")
    return "\n".join(lines) + "\n"


def title_of(keras: Any) -> str:
    if keras.__name__ == "tf_keras":
        return "tf_keras (TF 2.16 and later)"
    return "Keras 3" if keras.__version__.startswith("3") else "tf.keras 2.15"

"""Every stock callback of every Keras: how it is made, run in each loop, reported."""

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

import estimator_models as models
from callback_loops import STEPS, X, session_loop
from callback_recorder import noting
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

KERAS2 = importlib.import_module(models.KERAS2)  # its models can be in a graph
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


MODES = ("train", "test", "predict")


def carry(keras: Any, folder: Path) -> dict[str, dict[str, str]]:
    """Runs all stock callbacks in every loop.

    In a bare graph each runs alone; in the other loops, those that are not refused
    share one run.
    """
    names = stock_of(keras)
    # A Keras model can have one backup callback only.
    together = [n for n in names if n not in REFUSED and "experimental" not in n]
    cells: dict[str, dict[str, str]] = {name: {} for name in names}
    for loop in LOOPS:
        is_alone = loop == "bare graph"
        groups = [[name] for name in names if is_alone or name not in together]
        groups += [] if is_alone else [together]
        for number, group in enumerate(groups):
            place = folder / loop.replace(" ", "_") / str(number)
            outcome = _carry_in(loop, keras, group, place)
            for name in group:
                cells[name][loop] = outcome
    return cells


def _carry_in(loop: str, keras: Any, names: list[str], place: Path) -> str:
    """Runs some callbacks in one run of a loop; all of them must get to its end."""
    seen: list[str] = []

    def note(self: Any, event: str, logs: Any) -> None:
        seen.append(event)
        steps = int(self.model.optimizer.iterations.numpy())
        assert event != "on_train_end" or steps == 2 * STEPS

    run, expected = _RUNS[loop]
    callbacks = [noting(keras, note, [f"on_{x}_end" for x in MODES])]
    for name in names:
        (place / name).mkdir(parents=True)
        callbacks.insert(-1, STOCK[name](keras.callbacks, place / name))
    try:
        run(callbacks, place)
    except errors.RefusedError as e:
        reason = str(e).split(": ", 1)[1].partition(" See `hookbridge")[0]
        return f"refused: {reason}"
    gc.collect()  # later, dropping an iterator may take TensorFlow 60 s
    assert seen == [f"on_{x}_end" for x in expected], (names, loop, seen)
    return "carried"


def _estimator(folder: Path, towers: int = 1) -> Any:
    config = models.estimators.RunConfig(
        str(folder / "model_dir"), save_checkpoints_steps=STEPS
    )
    replicated = hb.replicate_model_fn(models.bare_model_fn, ["/device:CPU:0"] * towers)
    return models.estimators.Estimator(
        replicated if towers > 1 else models.bare_model_fn, config=config
    )


def _train(callbacks: list[Any], folder: Path, towers: int = 1) -> None:
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS, epochs=2)
    _estimator(folder, towers).train(models.train_input, hooks=hooks)


def _train_and_evaluate(callbacks: list[Any], folder: Path) -> None:
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS)
    times = {"throttle_secs": 0, "start_delay_secs": 0}
    models.estimators.train_and_evaluate(
        _estimator(folder),
        models.estimators.TrainSpec(
            models.train_input, max_steps=2 * STEPS, hooks=hooks
        ),
        models.estimators.EvalSpec(models.eval_input, steps=2, hooks=hooks, **times),
    )


@functools.cache
def _checkpoint() -> str:
    """The checkpoint of one step, for all evaluations and predictions."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    estimator = _estimator(folder)
    estimator.train(models.train_input, steps=1)
    return str(estimator.latest_checkpoint())


def _evaluate(callbacks: list[Any], folder: Path) -> None:
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS)
    options = {"hooks": hooks, "checkpoint_path": _checkpoint()}
    _estimator(folder).evaluate(models.eval_input, steps=2, **options)


def _predict(callbacks: list[Any], folder: Path) -> None:
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS)
    options = {"hooks": hooks, "checkpoint_path": _checkpoint()}
    predictions = _estimator(folder).predict(models.predict_input, **options)
    assert len(list(predictions)) == len(X)


# Loop -> (runs callbacks in it, the modes whose end they see in order).
_RUNS: dict[str, tuple[Callable[[list[Any], Path], Any], list[str]]] = {
    "bare graph": (lambda c, d: session_loop(c, epochs=2, validate=False), ["train"]),
    "Keras model in the graph": (
        lambda c, d: keras_graph_loop(KERAS2, c, epochs=2),
        ["train"],
    ),
    "Estimator.train": (_train, ["train"]),
    "train_and_evaluate": (_train_and_evaluate, ["test", "test", "train"]),
    "Estimator.evaluate": (_evaluate, ["test"]),
    "Estimator.predict": (_predict, ["predict"]),
    "Estimator.train, 2 towers": (functools.partial(_train, towers=2), ["train"]),
}
LOOPS = tuple(_RUNS)
TABLE = Path(__file__).resolve().parents[3] / "docs" / "callbacks-in-sessions.md"


def table_of(keras: Any, outcomes: dict[str, dict[str, str]]) -> str:
    """The lines of one Keras, from what `carry` found for each of its callbacks.

    A callback has the same outcome in each loop, as the test checks.
    """
    carried = [name for name, cells in outcomes.items() if name not in REFUSED]
    lines = [f"### {title_of(keras)}", ""]
    lines += [f"- work: {', '.join(f'`{name}`' for name in carried)}"]
    for name, cells in outcomes.items():
        if name in REFUSED:
            lines.append(f"- `{name}` is {cells[LOOPS[0]]}")
    return "\n".join(lines) + "\n"


def title_of(keras: Any) -> str:
    if keras.__name__ == "tf_keras":
        return "tf_keras (TF 2.16 and later)"
    return "Keras 3" if keras.__version__.startswith("3") else "tf.keras 2.15"

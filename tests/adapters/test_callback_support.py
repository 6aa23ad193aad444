"""Every stock callback of every Keras: carried, or refused by name with a reason.

The table in `docs/callbacks_in_sessions.md` is what this file finds; regenerate it
with `python tests/adapters/test_callback_support.py`.
"""

from __future__ import annotations

import http.server
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, X, Y, build, feeds, session_loop
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

# The Keras modules of this environment; the last is the one that can live in a graph.
FLAVOURS = ["keras"] if tf.__version__.startswith("2.15") else ["keras", "tf_keras"]
Make = Callable[[Any, Path], Any]

# Class name -> how it is constructed. A class that a Keras has and that is not
# here fails `test_no_class_is_unknown`.
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


def _v1_names(module: Any) -> bool:
    return hasattr(module, "__path__") or not isinstance(module, type)


def stock_of(keras: Any) -> list[str]:
    """Names of all callback classes that a Keras offers."""
    found = [
        name
        for name in dir(keras.callbacks)
        if not _v1_names(getattr(keras.callbacks, name)) and name not in _CONTAINERS
    ]
    experimental = getattr(keras.callbacks, "experimental", None)
    for name in dir(experimental) if experimental is not None else ():
        if not _v1_names(getattr(experimental, name)):
            inner = f"experimental.{name}"
            found.append(inner if inner in STOCK else name)
    return sorted(set(found))


LOOPS = (
    "bare graph",
    "Keras model in the graph",
    "Estimator.train",
    "TowerLoop, 2 towers",
)


def test_no_class_is_unknown(keras: Any) -> None:
    assert [n for n in stock_of(keras) if n not in STOCK] == []
    assert len(stock_of(keras)) >= 12


def carry(keras: Any, name: str, folder: Path, loop: str) -> str:
    """Runs a stock callback in a loop; "carried" or the reason of its refusal."""
    ran: list[int] = []

    class Count(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_end(self, logs: Any = None) -> None:
            ran.append(int(self.model.optimizer.iterations.numpy()))

    try:
        callbacks = [STOCK[name](keras.callbacks, folder), Count()]
        if loop == "bare graph":
            session_loop(callbacks, epochs=2, validate=False)
        elif loop == "Estimator.train":
            _estimator_loop(callbacks, folder)
        elif loop == "TowerLoop, 2 towers":
            _tower_loop(callbacks)
        else:
            keras2 = importlib.import_module(FLAVOURS[-1])
            keras_graph_loop(keras2, callbacks, epochs=2)
    except errors.RefusedError as e:
        return "refused: " + str(e).split(": ", 1)[1]
    assert ran == [2 * STEPS]
    return "carried"


def _estimator_loop(callbacks: list[Any], folder: Path) -> None:
    estimator = importlib.import_module("hookbridge.estimator")

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        kernel = tf.compat.v1.get_variable("dense/kernel", [2, 1])
        loss = tf.reduce_mean(tf.square(features @ kernel - labels))
        train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, global_step=tf.compat.v1.train.get_global_step()
        )
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat()

    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS, epochs=2)
    estimator.Estimator(model_fn, str(folder / "model_dir")).train(
        input_fn, hooks=hooks
    )


def _tower_loop(callbacks: list[Any]) -> None:
    loops = importlib.import_module("hookbridge.loops")

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        del mode
        kernel = tf.compat.v1.get_variable("dense/kernel", [2, 1])
        error = features @ kernel - labels
        return loops.TowerSpec(tf.reduce_mean(tf.square(error)))

    loops.TowerLoop(
        model_fn,
        optimizer=tf.compat.v1.train.GradientDescentOptimizer,
        learning_rate=0.1,
        num_towers=2,
    ).train(
        lambda: tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat(),
        guests=callbacks,
        steps_per_epoch=STEPS,
        epochs=2,
    )


@pytest.mark.filterwarnings("ignore:Could not reach RemoteMonitor")
@pytest.mark.parametrize("name", STOCK)
def test_carried_or_refused_by_name(keras: Any, name: str, tmp_path: Path) -> None:
    if name not in stock_of(keras):
        return  # another Keras has it
    for loop in LOOPS:
        outcome = carry(keras, name, tmp_path, loop)
        assert (outcome != "carried") == (name in REFUSED), (loop, outcome)
    if name in REFUSED:
        assert "Instead, " in outcome
        with pytest.raises(errors.RefusedError, match=f"`{name}`"):
            hb.as_hooks(STOCK[name](keras.callbacks, tmp_path), steps_per_epoch=2)


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    """A local HTTP server; what was posted to it."""
    posted: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            del arguments

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", posted
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_remote_monitor_posts_the_logs(
    keras: Any, server: tuple[str, list[Any]]
) -> None:
    url, posted = server
    run = session_loop(
        [keras.callbacks.RemoteMonitor(root=url, send_as_json=True)], epochs=2
    )
    assert [p[0] for p in posted] == ["/publish/epoch/end/"] * 2
    for epoch, (_, body) in enumerate(posted):
        assert body["epoch"] == epoch
        assert body["val_mae"] == pytest.approx(run.history["val_mae"][epoch])


def test_progress_bar_shows_the_epochs(
    keras: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    session_loop([keras.callbacks.ProgbarLogger()], epochs=2)
    out = capsys.readouterr().out
    assert "Epoch 1/2" in out
    assert "Epoch 2/2" in out
    assert "3/3" in out
    assert "val_loss" in out


def test_progress_bar_without_epochs(
    keras: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    session_loop([keras.callbacks.ProgbarLogger()], epochs=None, max_steps=4)
    assert "3/3" in capsys.readouterr().out


WITHOUT_V2 = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import importlib, pathlib, tempfile
import tensorflow as tf
tf.compat.v1.disable_v2_behavior()
sys.path.insert(0, "tests/adapters")
import callback_loops as loops
keras = importlib.import_module(sys.argv[1])
c = keras.callbacks
with tempfile.TemporaryDirectory() as d:
    seen = []
    class Mine(c.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(tf.executing_eagerly() and len(self.model.get_weights()))
    run = loops.session_loop([
        c.LearningRateScheduler(lambda epoch, lr: lr * 0.5),
        c.ReduceLROnPlateau("val_loss"),
        c.EarlyStopping("val_loss", patience=9, restore_best_weights=True),
        c.ModelCheckpoint(d + "/w{epoch}.weights.h5", save_weights_only=True),
        c.CSVLogger(d + "/log.csv"), c.TensorBoard(d + "/tb", histogram_freq=1),
        c.TerminateOnNaN(), c.RemoteMonitor(root="http://localhost:9"), Mine(),
    ])
    assert seen == [2] * 4, seen
    assert run.steps == 12
    files = sorted(p.name for p in pathlib.Path(d).rglob("*") if p.is_file())
    assert sum(f.endswith(".h5") for f in files) == 4, files
    assert any("tfevents" in f for f in files), files
    key = "lr" if "lr" in run.history else "learning_rate"
    assert [round(float(x), 6) for x in run.history[key]] == [
        0.05, 0.025, 0.0125, 0.00625], run.history
print("FINE")
"""


@pytest.mark.slow
def test_with_v2_behavior_disabled(keras: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_V2, keras.__name__],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "FINE" in done.stdout, done.stderr[-3000:]


def test_mixed_flavours_in_one_loop(keras: Any, keras2: Any, tmp_path: Path) -> None:
    stop = keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=1)
    csv = keras2.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    plateau = keras2.callbacks.ReduceLROnPlateau("loss", min_delta=100.0, patience=0)
    rates: list[float] = []

    class Rate(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            rates.append(float(self.model.optimizer.learning_rate.numpy()))

    hook_runs: list[Any] = []

    class Native(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            hook_runs.append(run_values.results)

    with tf.Graph().as_default():
        net = build()
        native = Native()
        hooks = hb.as_hooks([stop, native, plateau, csv, Rate()], steps_per_epoch=2)
        assert hooks[1] is native
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(net.train_op, feeds(net, 0))
    assert len(hook_runs) == 4
    assert rates == pytest.approx([0.1, 0.1])
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3


# --- the table in the documentation -----------------------------------------------

TABLE = Path(__file__).resolve().parents[2] / "docs" / "callbacks_in_sessions.md"


def table_of(keras: Any, title: str, folder: Path) -> str:
    """The rows of one Keras."""
    rows = [
        f"### {title}",
        "",
        f"| Callback | {' | '.join(LOOPS)} |",
        "|---" * (1 + len(LOOPS)) + "|",
    ]
    for name in stock_of(keras):
        cells = []
        for loop in LOOPS:
            place = folder / name / loop.replace(" ", "_")
            place.mkdir(parents=True)
            cells.append(carry(keras, name, place, loop))
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def _title(keras: Any) -> str:
    if keras.__name__ == "tf_keras":
        return "tf_keras (TF 2.16 and later)"
    return "Keras 3" if keras.__version__.startswith("3") else "tf.keras 2.15"


@pytest.mark.filterwarnings("ignore:Could not reach RemoteMonitor")
def test_documented_table_is_what_happens(keras: Any, tmp_path: Path) -> None:
    assert table_of(keras, _title(keras), tmp_path) in TABLE.read_text(encoding="utf-8")


def main() -> None:
    """Prints the rows of the Keras flavours of this environment."""
    import tempfile

    for name in FLAVOURS:
        keras = importlib.import_module(name)
        with tempfile.TemporaryDirectory() as folder:
            print(table_of(keras, _title(keras), Path(folder)), end="\n\n")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()

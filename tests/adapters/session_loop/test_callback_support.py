"""Every stock callback of every Keras: carried, or refused by name with a reason.

The table in `docs/callbacks-in-sessions.md` is what this file finds; see
`callback_support.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import callback_support as support
import pytest
import tensorflow as tf
from callback_loops import build, feeds, session_loop
from fork_server import ForkServer

import hookbridge as hb
from hookbridge import errors


def test_no_class_is_unknown(keras: Any) -> None:
    found = support.stock_of(keras)
    assert [n for n in found if n not in support.STOCK] == []
    assert len(found) >= 12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Could not reach RemoteMonitor")
def test_documented_table_is_what_happens(keras: Any, tmp_path: Path) -> None:
    """Each callback runs in each loop, in some with all others; no cell is unknown."""
    outcomes = support.carry(keras, tmp_path)
    for name, cells in outcomes.items():
        assert tuple(cells) == support.LOOPS
        for loop, outcome in cells.items():
            refused = name in support.REFUSED
            assert (outcome != "carried") == refused, (name, loop, outcome)
            assert not refused or "Instead, " in outcome
        if name in support.REFUSED:
            callback = support.STOCK[name](keras.callbacks, tmp_path)
            with pytest.raises(errors.RefusedError, match=f"`{name}`"):
                hb.as_hooks(callback, steps_per_epoch=2)
    page = support.TABLE.read_text(encoding="utf-8")
    # The page shows the newest Keras 3; an older one has fewer callbacks.
    is_older = keras.__version__[0] == "3" and "OrbaxCheckpoint" not in outcomes
    assert is_older or support.table_of(keras, outcomes) in page


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
sys.path.insert(0, "tests/adapters/helpers")
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
def test_with_v2_behavior_disabled(keras: Any, fork_server: ForkServer) -> None:
    done = fork_server.run("-c", WITHOUT_V2, keras.__name__)
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

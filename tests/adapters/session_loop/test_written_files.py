"""Files that callbacks write in a session loop, read back."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import native_and_bridged, session_loop
from fork_server import ForkServer

CHECKPOINTS: dict[str, dict[str, Any]] = {
    "best_only": {
        "filepath": "w{epoch}.weights.h5",
        "save_best_only": True,
        "monitor": "val_loss",
    },
    "best_of_metric": {
        "filepath": "w{epoch}-{mae:.3f}.weights.h5",
        "save_best_only": True,
        "monitor": "mae",
        "mode": "max",
    },
    "threshold": {
        "filepath": "w{epoch}.weights.h5",
        "save_best_only": True,
        "monitor": "loss",
        "initial_value_threshold": 1.0,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHECKPOINTS)
def test_model_checkpoint_writes_what_it_writes_in_fit(
    keras: Any, case: str, tmp_path: Path
) -> None:
    options = CHECKPOINTS[case]

    def make(folder: Path) -> Any:
        return keras.callbacks.ModelCheckpoint(
            **{**options, "filepath": str(folder / options["filepath"])},
            save_weights_only=True,
        )

    native, bridged = native_and_bridged(keras, make, tmp_path, epochs=5)
    assert native == bridged
    assert native
    for name in bridged:
        with h5py.File(tmp_path / "session" / name) as file:
            assert file["dense/dense/kernel:0"].shape == (2, 1)


def test_tf_format_of_a_bare_graph_loads_in_a_v1_saver(
    keras2: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "ckpt-{epoch}")
    run = session_loop([keras2.callbacks.ModelCheckpoint(path, save_weights_only=True)])
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "ckpt-4")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.compat.v1.variable_scope("dense"):
            kernel = tf.compat.v1.get_variable("kernel", [2, 1])
        tf.compat.v1.train.Saver([kernel]).restore(session, str(tmp_path / "ckpt-4"))
        np.testing.assert_array_equal(session.run(kernel), run.weights[0])


BACKUP = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, "tests/adapters/helpers")
import importlib
import callback_loops as loops


keras = importlib.import_module(sys.argv[1])
folder, die_at, freq = sys.argv[2], int(sys.argv[3]), sys.argv[4]


class Die(keras.callbacks.Callback):
    epochs = []
    batches = 0
    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(epoch)
    def on_train_batch_begin(self, batch, logs=None):
        if self.batches == die_at:
            os._exit(9)
        Die.batches += 1


option = {} if freq == "epoch" else {"save_freq": int(freq)}


run = loops.session_loop(
    [keras.callbacks.BackupAndRestore(folder, **option), Die()], validate=False
)
print("RESULT", Die.epochs, Die.batches, run.steps, run.weights[0].ravel().tolist(),
      os.path.exists(folder) and os.listdir(folder))
"""


@pytest.mark.slow
@pytest.mark.parametrize("freq", ["epoch", "2"])
def test_backup_and_restore_continues_after_a_kill(
    keras2: Any, freq: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    """Two epochs were backed up, and with `save_freq` batches of the third one."""
    folder = str(tmp_path / "backup")
    whole = session_loop([keras2.callbacks.Callback()], validate=False)
    arguments = ("-c", textwrap.dedent(BACKUP), keras2.__name__, folder)
    killed = fork_server.run(*arguments, "7", freq)
    assert killed.returncode == 9, killed.stderr
    assert os.listdir(folder)
    again = fork_server.run(*arguments, "-1", freq)
    assert again.returncode == 0, again.stderr
    line = next(x for x in again.stdout.splitlines() if x.startswith("RESULT"))
    assert line.startswith("RESULT [2, 3] 6 12 ")
    weights = [float(w) for w in line.split("[")[2].split("]")[0].split(",")]
    np.testing.assert_allclose(weights, whole.weights[0].ravel(), rtol=1e-5)

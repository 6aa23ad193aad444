"""The demo in one process, and what it does when a guest misses an event."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from fork_server import ForkServer

from hookbridge.cli import main
from hookbridge.demo import guests as guests_lib
from hookbridge.demo import model, report
from hookbridge.demo.progress_callback import EpochLines

pytestmark = pytest.mark.slow

GUESTS = {
    "LoggingTensorHook": "hook",
    "StepCounterHook": "hook",
    "CheckpointSaverHook": "hook",
    "ActivityHook": "hook",
    "ReduceLROnPlateau": "callback",
    "EarlyStopping": "callback",
    "ModelCheckpoint": "callback",
    "TensorBoard": "callback",
    "CSVLogger": "callback",
    "ProgressCallback": "callback",
}
STEPS_PER_EPOCH = 39
HERE = "this process"


def demo(server: ForkServer, *flags: str) -> subprocess.CompletedProcess[str]:
    return server.run("-m", "hookbridge", "demo", "--local", *flags)


@pytest.fixture(scope="module")
def default_run(
    fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The demo with its default settings: exit code, stdout, stderr, directory."""
    directory = tmp_path_factory.mktemp("demo") / "new"
    done = demo(fork_server, "--format=json", f"--model_dir={directory}")
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout), done.stderr, directory


def test_both_loops_learn_and_stop_at_the_same_step(default_run: Any) -> None:
    result, progress, _ = default_run
    loops = result["loops"]
    here = {host: loops[host]["processes"][HERE] for host in loops}
    for host, loop in loops.items():
        assert loop["test_accuracy"] >= 0.95
        assert loop["steps_per_epoch"] == STEPS_PER_EPOCH
        assert loop["stop_step"] == len(here[host]["history"]) * STEPS_PER_EPOCH
        assert here[host]["activity"]["steps"] == loop["stop_step"]
        assert here[host]["activity"]["learning_rates"][0] == pytest.approx(3e-3)
    # Same data, weights and guests: the same run, up to rounding.
    session, fit = here["session"], here["fit"]
    assert session["steps"] == fit["steps"] < 30 * STEPS_PER_EPOCH
    assert session["activity"]["learning_rates"] == pytest.approx(
        fit["activity"]["learning_rates"]
    )
    assert len(fit["activity"]["learning_rates"]) > 1  # ReduceLROnPlateau has acted
    for ours, theirs in zip(session["history"], fit["history"], strict=True):
        for key in ("loss", "accuracy", "val_loss", "val_accuracy"):
            assert ours[key] == pytest.approx(theirs[key], rel=0.02, abs=0.01), key
    assert "LoggingTensorHook: " in progress
    assert f"epoch   1/30  step {STEPS_PER_EPOCH:>5}  loss" in progress
    # The progress line of each loop, which `--noprogress` turns off.
    first = f"epoch 1/30  step 1/{30 * STEPS_PER_EPOCH}  "
    assert progress.count(first) == 2
    assert "examples/s" in progress


def test_the_report_counts_every_event_in_both_loops(default_run: Any) -> None:
    result, _, directory = default_run
    assert result["ok"] is True
    assert result["tensorflow"] == tf.__version__
    for loop in result["loops"].values():
        steps, guests = loop["stop_step"], loop["processes"][HERE]["guests"]
        assert {name: guest["kind"] for name, guest in guests.items()} == GUESTS
        assert guests["ActivityHook"]["events"] == {
            "begin": 1,
            "before_run": steps,
            "after_run": steps,
            "end": 1,
        }
        assert guests["ProgressCallback"]["events"]["on_train_batch_end"] == steps
        assert [guest["differences"] for guest in guests.values()] == [[]] * 10
    assert json.loads((directory / "report.json").read_text()) == result
    assert (directory / "report.html").read_text().count("<polyline") >= 10
    table = report.as_table(result)
    assert "CheckpointSaverHook (hook, chief)" in table and "on_epoch_end" in table
    for loop in result["loops"].values():
        assert f"{loop['test_accuracy']:.2%}" in table


def test_every_guest_wrote_the_same_kind_of_files_in_both_loops(
    default_run: Any,
) -> None:
    result, _, directory = default_run
    for host, loop in result["loops"].items():
        steps = loop["stop_step"]
        checkpoint = str(directory / host / "checkpoints" / f"model.ckpt-{steps}")
        saved = dict(tf.train.list_variables(checkpoint))
        assert [64, 64] in saved.values() and [64, 10] in saved.values()
        lines = (directory / host / "metrics.csv").read_text().splitlines()
        assert len(lines) == 1 + steps // STEPS_PER_EPOCH
        assert (directory / host / "weights" / "best.weights.h5").stat().st_size
        folders = {Path(file).parts[0] for file in loop["files"]}
        assert folders == {
            "checkpoints",
            "metrics.csv",
            "step_counter",
            "tensorboard",
            "weights",
        }


def test_the_best_weights_are_the_same_in_both_loops(default_run: Any) -> None:
    _, _, directory = default_run
    kernels: dict[str, dict[tuple[int, ...], Any]] = {"session": {}, "fit": {}}
    for host, found in kernels.items():

        def keep(name: str, item: Any, found: dict[Any, Any] = found) -> None:
            if "optimizer" in name:  # its slots have the weights' shapes
                return
            if isinstance(item, h5py.Dataset) and item.ndim == 2:
                found[item.shape] = item[()]

        with h5py.File(directory / host / "weights" / "best.weights.h5") as file:
            file.visititems(keep)
    assert kernels["session"].keys() == kernels["fit"].keys() == {(64, 64), (64, 10)}
    initial = model.initial_weights(0)["logits/kernel"]
    assert np.abs(kernels["fit"][64, 10] - initial).max() > 0.1
    for shape, kernel in kernels["session"].items():
        np.testing.assert_allclose(kernel, kernels["fit"][shape], atol=0.02)


def test_a_second_demo_replaces_the_first_and_takes_other_settings(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    flags = ["--epochs=2", "--batch_size=100", "--noprogress"]
    flags.append(f"--model_dir={tmp_path}/run")
    for towers in (1, 4):
        done = demo(fork_server, *flags, f"--num_towers={towers}")
        assert done.returncode == 0, done.stderr + done.stdout
        assert "Every guest saw the documented events in every process." in done.stdout
        assert "examples/s" not in done.stdout + done.stderr
        rows = (tmp_path / "run" / "session" / "metrics.csv").read_text().splitlines()
        assert len(rows) == 3
        checkpoints = (tmp_path / "run" / "fit" / "checkpoints").glob("*.index")
        assert sorted(path.name for path in checkpoints) == [
            "model.ckpt-0.index",
            "model.ckpt-24.index",
        ]


class Deserter(EpochLines):
    """Misses the batches of the second epoch, as if its host did not deliver them."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        if epoch == 1:
            self.__dict__["on_train_batch_end"] = lambda batch, logs=None: None


def test_a_guest_that_misses_an_event_makes_the_demo_fail(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def deserter(keras: Any, emit: Any) -> Any:
        return type("Deserter", (Deserter, keras.callbacks.Callback), {})(emit)

    monkeypatch.setattr(guests_lib, "progress_callback", deserter)
    flags = [
        "--epochs=2",
        "--batch_size=200",
        "--format=json",
        f"--model_dir={tmp_path}/run",
    ]
    assert main(["demo", "--local", *flags]) == 1
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["ok"] is False
    guests = result["loops"]["fit"]["processes"][HERE]["guests"]
    line = "on_train_batch_end: received 6 times, expected 12"
    assert line in guests["Deserter"]["differences"]
    assert guests["EarlyStopping"]["differences"] == []
    assert f"Deserter in fit, {HERE}: {line}" in err
    assert "A guest did not see the documented events." in report.as_table(result)


def test_a_report_is_json_whatever_the_losses_are() -> None:
    values = {"loss": math.nan, "history": [{"val_loss": math.inf}, 1.5, 2]}
    text = report.to_json(values)
    assert json.loads(text) == {"loss": None, "history": [{"val_loss": None}, 1.5, 2]}
    assert "NaN" not in text and "Infinity" not in text

"""Callbacks and hooks of experiment trackers, offline, in both loops.

Each is skipped where its package is not installed; docs/if-you-had.md says with which
version it was tried.
"""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

v1: Any = tf.compat.v1
ONE_TENSORFLOW = True
LOOPS = ("session", "fit")
X, Y = np.ones([16, 2], np.float32), np.ones([16, 1], np.float32)


def train(loop: str, make_guests: Callable[[], list[Any]]) -> None:
    """Two epochs of four steps."""
    if loop == "fit":
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        callbacks = hb.as_callbacks(make_guests())
        model.fit(X, Y, 4, epochs=2, verbose=0, callbacks=callbacks)
        return
    with tf.Graph().as_default():
        w = v1.get_variable("w", [2, 1])
        loss = tf.reduce_mean((X @ w - Y) ** 2)
        v1.summary.scalar("loss", loss)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.01).minimize(loss, step)
        options: Any = {"steps_per_epoch": 4, "epochs": 2, "logs": {"loss": loss}}
        hooks = hb.as_hooks(make_guests(), **options)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train_op)


@pytest.fixture
def wandb_run(tmp_path: Path) -> Any:
    wandb = pytest.importorskip("wandb", reason="needs `pip install wandb`")
    run = wandb.init(mode="offline", dir=str(tmp_path))
    yield run
    run.finish()


@pytest.mark.parametrize("loop", LOOPS)
def test_wandb_callback(loop: str, wandb_run: Any) -> None:
    keras = importlib.import_module("wandb.integration.keras")
    train(loop, lambda: [keras.WandbMetricsLogger(log_freq=1)])
    summary = dict(wandb_run.summary)
    assert summary["epoch/epoch"] == 1 and summary["epoch/loss"] > 0
    assert summary["batch/batch_step"] == 7
    assert summary["epoch/learning_rate"] == pytest.approx(0.01)


@pytest.mark.parametrize("loop", LOOPS)
def test_wandb_hook(loop: str, wandb_run: Any) -> None:
    """In `fit` it needs a summary that is made in `begin`."""
    wandb_hook = importlib.import_module("wandb.integration.tensorflow").WandbHook

    def hook() -> Any:
        if loop == "session":
            return wandb_hook(steps_per_log=1)
        loss = v1.get_default_graph().get_tensor_by_name("loss:0")
        return wandb_hook(v1.summary.scalar("loss", loss), steps_per_log=1)

    train(loop, lambda: [hb.in_begin(hook)])
    assert any("loss" in key for key in dict(wandb_run.summary))


@pytest.mark.parametrize("every_epoch", [True, False])
@pytest.mark.parametrize("loop", LOOPS)
def test_mlflow(
    loop: str, every_epoch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs `pip install mlflow`")
    callback = importlib.import_module("mlflow.tensorflow").MlflowCallback
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    mlflow.create_experiment("trackers", f"file://{tmp_path / 'artifacts'}")
    mlflow.set_experiment("trackers")
    options: Any = (
        {} if every_epoch else {"log_every_epoch": False, "log_every_n_steps": 1}
    )
    with mlflow.start_run() as run:
        train(loop, lambda: [callback(**options)])
    mlflow.flush_async_logging()
    client = mlflow.MlflowClient()
    history = client.get_metric_history(run.info.run_id, "loss")
    assert len(history) == (2 if every_epoch else 8)
    assert "opt_name" in client.get_run(run.info.run_id).data.params
    if loop == "session":  # it has no `model.summary`, of which the callback warns
        return
    summary = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/model_summary.txt")
    assert "Total params" in summary


@pytest.mark.parametrize("loop", LOOPS)
def test_optuna(loop: str) -> None:
    """A pruned trial ends its training: the callback raises in both loops."""
    optuna = pytest.importorskip("optuna", reason="needs `pip install optuna`")
    integration = pytest.importorskip(
        "optuna_integration", reason="needs `pip install optuna-integration`"
    )

    class Never(optuna.pruners.BasePruner):  # type: ignore[misc, name-defined]
        def prune(self, study: Any, trial: Any) -> bool:
            return bool(trial.last_step == 1)

    def objective(trial: Any) -> float:
        train(loop, lambda: [integration.KerasPruningCallback(trial, "loss")])
        raise AssertionError("it was not pruned")

    study = optuna.create_study(pruner=Never())
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    assert trial.state == optuna.trial.TrialState.PRUNED
    assert sorted(trial.intermediate_values) == [0, 1]


def comet_metrics(folder: Path) -> set[str]:
    """The names of metrics in the archive of an offline experiment."""
    (archive,) = folder.glob("*.zip")
    with zipfile.ZipFile(archive) as file:
        lines = file.read("messages.json").decode().splitlines()
    messages = [json.loads(line)["payload"] for line in lines]
    return {m["metric"]["metricName"] for m in messages if m.get("metric")}


@pytest.mark.parametrize("kind", ["keras", "tf-keras"])
@pytest.mark.parametrize("loop", LOOPS)
def test_comet(loop: str, kind: str, tmp_path: Path) -> None:
    comet = pytest.importorskip("comet_ml", reason="needs `pip install comet_ml`")
    experiment = comet.OfflineExperiment(
        project_name="trackers", offline_directory=str(tmp_path), log_code=False
    )
    train(loop, lambda: [experiment.get_callback(kind)])
    experiment.end()
    assert any("loss" in name for name in comet_metrics(tmp_path))


@pytest.mark.parametrize("loop", LOOPS)
def test_clearml(loop: str, tmp_path: Path) -> None:
    """It has no callback of its own: it reads what TensorBoard writes."""
    clearml = pytest.importorskip("clearml", reason="needs `pip install clearml`")
    clearml.Task.set_offline(True)
    task = clearml.Task.init("trackers", loop, auto_resource_monitoring=False)
    logs = str(tmp_path / "logs")
    train(loop, lambda: [tf.keras.callbacks.TensorBoard(logs)])
    task.flush(wait_for_uploads=True)
    folder = Path(task.get_offline_mode_folder())
    task.close()
    text = "".join(f.read_text(errors="replace") for f in folder.glob("*.jsonl"))
    assert "epoch_loss" in text

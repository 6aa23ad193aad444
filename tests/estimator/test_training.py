"""What an Estimator does, in TensorFlow's own package or the restored one."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import numpy as np
import pytest
import tensorflow as tf
from fork_server import ForkServer

import hookbridge as hb

ONE_TENSORFLOW = True  # 2.15 has the package itself

v1 = tf.compat.v1
CANNED = [  # each kind once, both namespaces; the last one has the two before it
    ("v1", "BaselineClassifier"),
    pytest.param("v2", "LinearClassifier", marks=pytest.mark.exhaustive),
    pytest.param("v1", "DNNClassifier", marks=pytest.mark.exhaustive),
    ("v2", "DNNLinearCombinedClassifier"),
]


def canned(name: str, model_dir: Path, namespace: Any) -> Any:
    columns = scenarios.columns()
    deep = {"dnn_feature_columns": columns, "dnn_hidden_units": [4]}
    arguments: dict[str, Any] = {
        "BaselineClassifier": {},
        "LinearClassifier": {"feature_columns": columns},
        "DNNClassifier": {"feature_columns": columns, "hidden_units": [4]},
        "DNNLinearCombinedClassifier": {"linear_feature_columns": columns, **deep},
    }[name]
    make = getattr(namespace, name)
    return make(n_classes=3, model_dir=str(model_dir), **arguments)


def accuracy_again(labels: Any, predictions: dict[str, Any]) -> dict[str, Any]:
    return {"again": v1.metrics.accuracy(labels, predictions["class_ids"])}


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), CANNED)
def test_canned_estimators(version: str, name: str, tmp_path: Path) -> None:
    namespace = hb.estimator.v1 if version == "v1" else hb.estimator
    estimator = canned(name, tmp_path, namespace)
    train_input_fn = scenarios.input_fn(3)
    if name.startswith("Baseline"):
        train_input_fn = hb.estimator.inputs.numpy_input_fn(
            *scenarios.data(3), batch_size=8, num_epochs=None, shuffle=False
        )
    else:
        estimator = hb.estimator.add_metrics(estimator, accuracy_again)
    held_out = scenarios.input_fn(3, repeat=False)
    result = scenarios.check_validation(estimator, train_input_fn, held_out, 4, 2)
    assert result["global_step"] == 4 and np.isfinite(result["loss"])
    assert result.get("again", result["accuracy"]) == result["accuracy"]
    assert ("again" in result) is not name.startswith("Baseline")
    predictions = list(estimator.predict(held_out))
    assert len(predictions) == 24
    assert predictions[0]["probabilities"].sum() == pytest.approx(1, abs=1e-5)


def serving_input_fn() -> Any:
    x = v1.placeholder(tf.float32, [None, 3], name="x")
    return hb.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def test_export_takes_what_was_trained(tmp_path: Path) -> None:
    estimator = scenarios.custom(tmp_path / "first")
    estimator.train(scenarios.input_fn(), steps=4)
    rows = estimator.predict(scenarios.input_fn(repeat=False), ["y"])
    path = estimator.export_saved_model(str(tmp_path / "export"), serving_input_fn)
    loaded = tf.saved_model.load(path.decode())
    served = loaded.signatures["serving_default"]
    x = tf.constant(scenarios.data()[0]["x"])
    np.testing.assert_allclose(served(x)["y"], [row["y"] for row in rows], rtol=1e-5)


@pytest.mark.slow
def test_train_and_evaluate_with_exporters(tmp_path: Path) -> None:
    estimator = scenarios.custom(tmp_path, save_checkpoints_steps=4)
    exporters = [
        hb.estimator.LatestExporter("latest", serving_input_fn, exports_to_keep=2),
        hb.estimator.BestExporter("best", serving_input_fn),
        hb.estimator.FinalExporter("final", serving_input_fn),
    ]
    result, exported = hb.estimator.train_and_evaluate(
        estimator,
        hb.estimator.TrainSpec(scenarios.input_fn(), max_steps=12),
        scenarios.evaluation(exporters=exporters),
    )
    assert result["global_step"] == 12 and all(exported)
    steps = sorted({step for step, _, _ in scenarios.events(tmp_path / "eval")})
    assert steps == [4, 8, 12]
    counts = {
        name: len(list((tmp_path / "export" / name).iterdir()))
        for name in ("latest", "best", "final")
    }
    assert counts["latest"] == 2 and counts["final"] == 1 and counts["best"] >= 1


def test_early_stopping_hook_reads_the_evaluations(tmp_path: Path) -> None:
    estimator = scenarios.custom(tmp_path, save_checkpoints_steps=2)
    stop = hb.estimator.experimental.stop_if_lower_hook(
        estimator, "loss", threshold=1e9, run_every_secs=None, run_every_steps=2
    )
    hb.estimator.train_and_evaluate(
        estimator,
        hb.estimator.TrainSpec(scenarios.input_fn(), max_steps=50, hooks=[stop]),
        scenarios.evaluation(),
    )
    assert estimator.get_variable_value("global_step") < 10


@pytest.mark.slow
def test_example_trains_evaluates_and_exports(
    repo_root: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    done = fork_server.run(
        str(repo_root / "examples" / "estimator_csv.py"),
        f"--model_dir={tmp_path / 'model'}",
        "--epochs=4",
        folder=tmp_path,
        PATH="",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    accuracy, steps = re.findall(
        r"^accuracy (\S+) after (\d+) steps$", done.stdout, re.M
    )[0]
    served = re.findall(r"^served accuracy (\S+)$", done.stdout, re.M)[0]
    assert float(accuracy) > 0.8 and served == accuracy
    with (tmp_path / "model" / "epochs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and int(steps) % 4 == 0
    assert float(rows[-1]["val_accuracy"]) == pytest.approx(float(accuracy), abs=1e-3)

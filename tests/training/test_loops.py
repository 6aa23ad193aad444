"""One model definition file in three loops: the same weights, metrics and events."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import DIGITS, ROOT, hookbridge, printed, weights
from fork_server import ForkServer

from hookbridge import compat
from hookbridge.loops.tasks.local_cluster import LocalCluster
from hookbridge.training.definition import ModelDefinition
from hookbridge.training.inputs import Inputs
from hookbridge.training.part import Part
from hookbridge.training.session_training import SessionTraining
from hookbridge.training.settings import TrainingSettings
from hookbridge.training.user_file import load_file

LOOPS = ("fit", "towers", "estimator")
WEIGHTS = ("hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias")
# The model of the example, with guests that note what they see.
NOTED = """
import json
import os
import sys

sys.path.insert(0, {examples!r})
from digits_keras import *

import tensorflow as tf


def note(**values):
    with open(os.environ["NOTES"], "a") as file:
        print(json.dumps(values), file=file)


class Notes(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        wanted = ("batch_size", "epochs", "saved_model_path", "checkpoint_path")
        note(event="params", **{{name: self.params.get(name) for name in wanted}})

    def on_train_batch_end(self, batch, logs=None):
        note(event="step", accuracy=float(logs["accuracy"]))

    def on_epoch_end(self, epoch, logs=None):
        note(event="epoch", epoch=epoch, **{{k: float(v) for k, v in logs.items()}})

    def on_test_begin(self, logs=None):
        note(event="test")

    def on_predict_batch_end(self, batch, logs=None):
        note(event="predict", shape=list(logs["predictions"].shape))


class Losses(tf.compat.v1.train.SessionRunHook):
    def before_run(self, context):
        return tf.compat.v1.train.SessionRunArgs(["loss:0", "learning_rate:0"])

    def after_run(self, context, values):
        loss, rate = values.results
        note(event="loss", loss=float(loss), learning_rate=float(rate))


def callbacks():
    return [Notes()]


def hooks():
    return [Losses()]
"""

# The same model, in a file that sets up the devices of two towers.
CHOOSES = """
import sys

sys.path.insert(0, {examples!r})
from digits_keras import *

import tensorflow as tf

(cpu, *_) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
"""


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Any:
    """Trains, evaluates and predicts in each loop; `{loop: (folder, results)}`."""
    folder = tmp_path_factory.mktemp("loops")
    file = folder / "noted.py"
    file.write_text(NOTED.format(examples=str(ROOT / "examples")))
    (folder / "few.csv").write_text(
        "".join(DIGITS.read_text().splitlines(keepends=True)[:301])
    )
    found = {}
    for loop in LOOPS:
        model_dir = folder / loop
        common = (f"--model_def={file}", f"--loop={loop}", f"--model_dir={model_dir}")
        data = f"{folder}/few.csv"
        results = {}
        for command, *flags in (
            ("train", f"--train_files={data}", f"--eval_files={data}", "--epochs=2"),
            ("evaluate", f"--eval_files={data}"),
            ("predict", f"--predict_files={data}"),
        ):
            if loop == "estimator" and command != "train":
                continue  # `towers` has the same Estimator for these
            seed = "--seed=3"
            notes = folder / f"{loop}-{command}.jsonl"
            arguments = (command, *common, *flags, "--header_lines=1", seed)
            done = hookbridge(fork_server, *arguments, NOTES=str(notes))
            assert done.returncode == 0, done.stdout + done.stderr
            lines = [json.loads(line) for line in notes.read_text().splitlines()]
            results[command] = (printed(done), lines, done.stderr)
        found[loop] = (model_dir, results)
    return found


def _events(noted: Any, loop: str, command: str, event: str) -> list[dict[str, Any]]:
    lines = noted[loop][1][command][1]
    return [
        {k: v for k, v in each.items() if k != "event"}
        for each in lines
        if each["event"] == event
    ]


@pytest.mark.parametrize(
    ("flags", "workers", "expected"),
    [
        ({}, 2, 57),  # each worker's step is a global step
        ({"sync": True}, 2, 29),
        ({"sync": True, "batch_per_tower": True, "num_towers": 2}, 3, 10),
    ],
)
def test_an_epoch_reads_the_data_once(
    flags: dict[str, Any], workers: int, expected: int
) -> None:
    path = str(ROOT / "examples" / "digits_towers.py")
    settings = TrainingSettings(
        path, "towers", train_files=(str(DIGITS),), header_lines=1, **flags
    )
    definition = ModelDefinition(load_file(path))
    assert Inputs(definition, settings, (workers, 0)).steps_per_epoch() == expected


def test_a_late_worker_of_an_estimator_does_not_wait_for_a_chief_that_has_ended(
    tmp_path: Path,
) -> None:
    path = str(ROOT / "examples" / "distributed_trainer.py")
    settings = TrainingSettings(path, "estimator", str(tmp_path), ("list.csv",))
    definition = ModelDefinition(load_file(path))
    config = LocalCluster(num_workers=2, num_ps=1).configs()[1]
    part = Part(definition, settings, Inputs(definition, settings), config, {})
    session_config = SessionTraining(part).estimator.config.session_config
    filters = ["/job:ps", f"/job:{config.task_type}/task:{config.task_index}"]
    assert list(session_config.device_filters) == filters


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS[1:])
def test_the_loops_train_alike(noted: Any, loop: str) -> None:
    """The same weights, events and logs as in `fit`."""
    fit, other = (weights(noted[each][0]) for each in ("fit", loop))
    assert fit["global_step"] == other["global_step"] == 20  # ceil(300 / 32) * 2
    for name in WEIGHTS:
        np.testing.assert_allclose(other[name], fit[name], atol=2e-5)
    for event, count in (("loss", 20), ("step", 20), ("epoch", 2)):
        native, ours = (_events(noted, each, "train", event) for each in ("fit", loop))
        assert len(native) == len(ours) == count
        for one, two in zip(native, ours, strict=True):
            assert one.keys() <= two.keys()
            assert {k: two[k] for k in one} == pytest.approx(one, rel=1e-4)


@pytest.mark.slow
def test_towers_of_fit_train_as_one_device(
    noted: Any, fork_server: ForkServer, tmp_path: Path
) -> None:
    file, (folder, _) = tmp_path / "chooses.py", noted["fit"]
    file.write_text(CHOOSES.format(examples=str(ROOT / "examples")))
    done = hookbridge(
        fork_server,
        *("train", f"--model_def={file}", "--loop=fit", "--num_towers=2"),
        *(f"--train_files={folder.parent}/few.csv", "--header_lines=1"),
        *("--epochs=2", "--seed=3", f"--model_dir={tmp_path / 'model'}"),
    )
    assert done.returncode == 0, done.stderr
    one, two = weights(folder), weights(tmp_path / "model")
    assert two["global_step"] == one["global_step"]
    for name in WEIGHTS:
        np.testing.assert_allclose(two[name], one[name], atol=2e-5)


@pytest.mark.slow
@pytest.mark.skipif(compat.tf_version() < (2, 16), reason="there is no Keras 3")
def test_a_fit_of_keras_3_with_servers_is_refused(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    done = hookbridge(
        fork_server,
        *("train", f"--model_def={ROOT}/examples/digits_keras.py", "--loop=fit"),
        *("--num_ps=1", "--epochs=1", "--header_lines=1"),
        *(f"--model_dir={tmp_path}", f"--train_files={DIGITS}"),
        TF_USE_LEGACY_KERAS="0",
    )
    assert done.returncode == 2
    message = "[chief 0] hookbridge: train: Keras 3 cannot train under"
    assert message in done.stderr


@pytest.mark.slow
def test_an_older_keras_optimizer_trains_alike(
    noted: Any, fork_server: ForkServer, tmp_path: Path
) -> None:
    file = tmp_path / "older.py"
    text = CHOOSES.format(examples=str(ROOT / "examples"))
    older = "def optimizer():\n    return tf.keras.optimizers.legacy.SGD(0.1)\n"
    file.write_text(f"{text}\n\n{older}")
    found = {}
    for loop in ("fit", "towers"):
        done = hookbridge(
            fork_server,
            *("train", str(file), f"--loop={loop}", f"--job-dir={tmp_path / loop}"),
            *(f"--data_dir={noted['fit'][0].parent}/few.csv", "--header_lines=1"),
            *("--max_steps=5", "--seed=3", "--num_gpus=1"),
        )
        assert done.returncode == 0, done.stderr
        found[loop] = weights(tmp_path / loop, WEIGHTS)
    for name in WEIGHTS:
        np.testing.assert_allclose(found["towers"][name], found["fit"][name], atol=2e-5)


@pytest.mark.slow
def test_params_progress_and_report(noted: Any) -> None:
    for loop, (folder, results) in noted.items():
        (params,) = _events(noted, loop, "train", "params")
        assert params == {
            "batch_size": 32,
            "epochs": 2,
            "saved_model_path": f"{folder}/saved_model",
            "checkpoint_path": str(folder),
        }
        # A pipe gets plain lines of progress, among them the first and the last one.
        told = results["train"][2]
        assert re.search(r"^epoch 2/2  step 20/20 .* loss \d", told, re.M), told
        page = (folder / "report.html").read_text("utf-8")
        assert "Training of noted.py" in page and "epoch_loss" in page
        assert "<script" not in page


@pytest.mark.slow
def test_evaluate_and_predict_drive_their_events(noted: Any) -> None:
    (fit, *_), (found, *_) = (noted[each][1]["evaluate"] for each in LOOPS[:2])
    assert found == pytest.approx(fit, rel=1e-4)
    assert set(found) == {"loss", "accuracy", "global_step"}
    for loop in LOOPS[:2]:
        assert len(_events(noted, loop, "evaluate", "test")) == 1
        batches = _events(noted, loop, "predict", "predict")
        assert [each["shape"] for each in batches] == [[64, 10]] * 4 + [[44, 10]]


@pytest.mark.slow
def test_a_loop_goes_on_with_the_weights_of_another(
    noted: Any, fork_server: ForkServer
) -> None:
    model_dir, _ = noted["towers"]
    done = hookbridge(
        fork_server,
        *("evaluate", f"--model_def={ROOT}/examples/digits_keras.py", "--loop=fit"),
        *(f"--model_dir={model_dir}", f"--eval_files={model_dir.parent}/few.csv"),
        "--header_lines=1",
    )
    assert done.returncode == 0, done.stderr
    towers, *_ = noted["towers"][1]["evaluate"]
    assert printed(done) == pytest.approx(towers, rel=1e-4)

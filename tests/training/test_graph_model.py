"""A definition file with a `graph_model`: names, epochs, restarts, errors."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import testing
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.training.job import TrainingJob
from hookbridge.jobs.training.training_settings import TrainingSettings

v1 = tf.compat.v1
STEPS = 4
KERNEL = np.array([[1.5], [-2.0]], np.float32)
NAMES = ("loss:0", "mae:0", "learning_rate:0", "global_step:0", "hidden/Relu:0")


def data(batches: int = STEPS, batch_size: int = 4) -> Any:
    x = np.linspace(-1, 1, 8 * batches, dtype=np.float32).reshape(-1, 2)
    return tf.data.Dataset.from_tensor_slices((x, x @ KERNEL)).batch(batch_size)


def graph_model(features: Any, mode: str) -> Any:
    kernel = v1.get_variable("kernel", initializer=np.ones([2, 1], np.float32))
    outputs = features @ kernel
    with v1.name_scope("hidden"):
        tf.nn.relu(outputs, name="Relu")
    tf.reduce_mean(outputs, name="loss")  # a name like ours
    return outputs


def unshared(features: Any, mode: str) -> Any:
    return features @ tf.Variable(np.ones([2, 1], np.float32), name="kernel")


def job(folder: Path, *, towers: int = 2, steps: Any = None, **changes: Any) -> Any:
    """A job in this process; `changes` replace what its file has."""
    module = ModuleType("job")
    module.__file__ = "job.py"
    found = {
        "custom_model": lambda: None,
        "loss": lambda labels, predictions: (predictions - labels) ** 2,
        "optimizer": lambda learning_rate=0.1: v1.train.GradientDescentOptimizer(
            learning_rate
        ),
        "eval_metrics_fn": lambda: {"mae": lambda y, predicted: abs(predicted - y)},
        "graph_model": graph_model,
        "train_input_fn": lambda: data().repeat(),
        **changes,
    }
    vars(module).update({k: v for k, v in found.items() if v is not None})
    epochs = 3 if steps is None else None
    settings = TrainingSettings(
        *("job.py", "session", str(folder)),
        num_towers=towers,
        train_steps=steps,
        epochs=epochs,
        steps_per_epoch=STEPS,
        progress=False,
    )
    return TrainingJob(module, settings, ClusterConfig())


def kernel_of(folder: Path) -> Any:
    return tf.train.load_variable(str(folder), "kernel")


def test_guests_in_towers(subtests: pytest.Subtests, tmp_path: Path) -> None:
    """One and two towers show the same; the names are those of `fit`."""
    recorded, logs = {}, {}
    for towers in (1, 2):
        with subtests.test(str(towers)):
            log = testing.EventLog()
            hook = testing.RecordingHook(log, "hook", fetches={n: n for n in NAMES})
            schedule = tf.keras.callbacks.LearningRateScheduler(lambda e: 0.1 / (e + 1))
            guests = [hook, schedule, testing.RecordingCallback(log, "callback")]
            made = job(
                tmp_path / str(towers),
                towers=towers,
                guests=lambda found=guests: found,
                eval_input_fn=lambda: data(2, 3),  # the last batch is smaller
            )
            _, results = made.train()
            assert results["global_step"] == 3 * STEPS
            steps: Any = {"host": "session", "steps": 3 * STEPS}
            testing.assert_conforms(log, "hook", guest="hook", **steps)
            steps |= {"steps_per_epoch": STEPS, "validation_batches": 3}
            testing.assert_conforms(log, "callback", guest="callback", **steps)
            recorded[towers] = hook.results()
            logs[towers] = log.logs("callback", "on_epoch_end")
            # The evaluation of the last checkpoint is the last validation.
            for name in ("loss", "mae"):
                val = logs[towers][-1][f"val_{name}"]
                assert results[name] == pytest.approx(val, rel=1e-5)
    np.testing.assert_allclose(
        kernel_of(tmp_path / "1"), kernel_of(tmp_path / "2"), rtol=1e-5
    )
    for one, two in zip(logs[1], logs[2], strict=True):
        assert one == pytest.approx(two, rel=1e-5)
    for one, two in zip(recorded[1], recorded[2], strict=True):
        for name in NAMES[:-1]:
            assert np.shape(two[name]) == ()
            np.testing.assert_allclose(one[name], two[name], rtol=1e-5)
        assert two["hidden/Relu:0"].shape == (2, 1)
    rates = [each["learning_rate:0"] for each in recorded[2]]
    np.testing.assert_allclose(rates[::STEPS], [0.1, 0.05, 0.1 / 3], rtol=1e-5)
    # The evaluation is the mean over the examples, whatever the batches.
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(-1, 2)
    mae = np.mean(np.abs(x @ kernel_of(tmp_path / "2") - x @ KERNEL))
    assert results["mae"] == pytest.approx(mae, rel=1e-5)


def test_the_best_weights_are_in_the_last_checkpoint(tmp_path: Path) -> None:
    early = tf.keras.callbacks.EarlyStopping(
        monitor="val_loss", mode="max", patience=1, restore_best_weights=True
    )
    log = testing.EventLog()
    watch = testing.RecordingCallback(log, "watch", only=["on_epoch_end"])
    made = job(tmp_path, guests=[watch, early], eval_input_fn=lambda: data(2))
    _, results = made.train()
    # The loss falls and the callback wants it to rise, so epoch 0 is the best.
    assert results["global_step"] == 2 * STEPS
    best = log.logs("watch", "on_epoch_end")[0]["val_loss"]
    assert results["loss"] == pytest.approx(best, rel=1e-5)


def test_a_run_goes_on_and_a_finished_one_does_nothing(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for steps in (3, 6, 6):
        with subtests.test(str(steps)):
            log = testing.EventLog()
            hook = testing.RecordingHook(log, "hook")
            assert job(tmp_path, steps=steps, guests=[hook]).train()[1] == {
                "global_step": steps
            }
    assert "after_run" not in log.counts("hook")


def test_a_hook_feeds_the_learning_rate_and_a_schedule_is_read(tmp_path: Path) -> None:
    feed = testing.RecordingHook(
        testing.EventLog(), feed_dict={"learning_rate:0": np.float32(0.0)}
    )
    job(tmp_path / "fed", steps=2, guests=[feed]).train()
    np.testing.assert_array_equal(kernel_of(tmp_path / "fed"), np.ones([2, 1]))
    read = testing.RecordingHook(testing.EventLog(), fetches="learning_rate:0")

    def optimizer(
        learning_rate: Any = lambda step: 0.5 / (1.0 + tf.cast(step, "float32")),
    ) -> Any:
        return v1.train.AdamOptimizer(learning_rate)

    job(tmp_path / "read", steps=2, guests=[read], optimizer=optimizer).train()
    np.testing.assert_allclose(read.results(), [0.5, 0.25])


# What the file has instead -> the message.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "arguments": ({"graph_model": lambda features: features}, "features, mode"),
    "unshared": (
        {"graph_model": unshared, "eval_input_fn": data},
        "evaluation.kernel'., which nothing trains",
    ),
    "keras_metric": (
        {
            "eval_input_fn": data,
            "eval_metrics_fn": lambda: {"mae": tf.keras.metrics.MeanAbsoluteError()},
        },
        "expected functions of labels and predictions",
    ),
    "no_pairs": (
        {"train_input_fn": lambda: data().map(lambda x, y: x)},
        r"\(features, labels\)",
    ),
    "endless": ({"eval_input_fn": lambda: data().repeat()}, "never ends"),
    "no_validation": ({"eval_input_fn": lambda: data().take(0)}, "gave no batch"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_what_cannot_train_is_refused(case: str, tmp_path: Path) -> None:
    changes, message = BAD[case]
    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        job(tmp_path, **changes).train()


def test_an_estimator_evaluates_and_predicts_with_guests(tmp_path: Path) -> None:
    made = job(tmp_path, steps=1, eval_input_fn=lambda: data(2, 3))
    _, wanted = made.train()
    log = testing.EventLog()
    guests = [testing.RecordingCallback(log, "callback")]
    inputs: Any = {"eval_input_fn": lambda: data(2, 3), "predict_input_fn": data}
    made = job(tmp_path, callbacks=lambda: guests, **inputs)
    assert made.evaluate() == pytest.approx(wanted, rel=1e-5)
    assert made.predict() == 4 * STEPS
    assert log.counts("callback")["on_test_batch_end"] == 3
    assert log.counts("callback")["on_predict_batch_end"] == STEPS

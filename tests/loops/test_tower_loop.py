"""The tower loop as a host: its ends, its directory, its evaluation, its errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import testing
from hookbridge.loops import TowerLoop, TowerSpec

v1 = tf.compat.v1
STEPS_PER_EPOCH = 4


def data(batches: int = STEPS_PER_EPOCH, *, repeat: bool = True) -> Any:
    x = np.linspace(-1, 1, 8 * batches, dtype=np.float32).reshape(-1, 2)
    y = x @ np.array([[1.5], [-2.0]], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(4, drop_remainder=True)
    return dataset.repeat() if repeat else dataset


def model(features: Any, labels: Any, mode: str) -> TowerSpec:
    kernel = v1.get_variable("kernel", [2, 1], initializer=v1.zeros_initializer())
    error = tf.matmul(features, kernel) - labels
    return TowerSpec(
        loss=tf.reduce_mean(error**2), metrics={"mae": tf.reduce_mean(tf.abs(error))}
    )


def loop(**config: Any) -> TowerLoop:
    config = {"learning_rate": 0.1, "num_towers": 2, **config}
    return TowerLoop(model, optimizer=v1.train.GradientDescentOptimizer, **config)


def test_epochs_and_max_steps_end_the_run_without_any_callback() -> None:
    assert loop().train(data, max_steps=3).global_step == 3
    run = loop().train(data, steps_per_epoch=4, epochs=2)
    assert run.global_step == 8
    run = loop().train(data, steps_per_epoch=4, epochs=2, max_steps=5)
    assert run.global_step == 5


def test_the_end_of_the_data_is_a_clean_end() -> None:
    log = testing.EventLog()
    run = loop().train(
        lambda: data(3, repeat=False), guests=testing.RecordingHook(log, "hook")
    )
    assert run.global_step == 3
    testing.assert_conforms(
        log, "hook", guest="hook", host="session", steps=3, ending="end_of_data"
    )


def test_hooks_get_the_documented_events() -> None:
    log = testing.EventLog()
    hook = testing.RecordingHook(log, "hook")
    for _ in range(2):  # a second run of the same loop and hook starts clean
        log.clear()
        loop().train(data, guests=hook, max_steps=5)
        testing.assert_conforms(log, "hook", guest="hook", host="session", steps=5)


def test_global_step_is_a_value_by_name() -> None:
    log = testing.EventLog()
    hook = testing.RecordingHook(log, fetches="global_step:0")
    loop().train(data, guests=hook, max_steps=2)
    assert [np.shape(value) for value in hook.results()] == [(), ()]


def test_a_hook_may_stop_the_run() -> None:
    hook = testing.RecordingHook(testing.EventLog(), stop_after_runs=2)
    assert loop().train(data, guests=hook, max_steps=9).global_step == 2


def test_an_exception_of_a_hook_escapes_and_nobody_gets_end() -> None:
    class Fails(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            raise ZeroDivisionError

    log = testing.EventLog()
    with pytest.raises(ZeroDivisionError):
        loop().train(data, guests=[testing.RecordingHook(log, "hook"), Fails()])
    assert log.counts("hook")["after_run"] == 1
    assert "end" not in log.counts("hook")


def test_a_run_goes_on_from_the_checkpoint_and_a_finished_one_does_nothing(
    tmp_path: Path,
) -> None:
    def train(max_steps: int) -> Any:
        saver = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=100)
        return loop().train(data, guests=saver, max_steps=max_steps, model_dir=tmp_path)

    train(3)
    assert v1.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-3")
    resumed = train(6)
    straight = loop().train(data, max_steps=6)
    assert resumed.global_step == 6
    # A restart begins the input again, so the resumed run has seen the same three
    # batches twice.
    again = train(6)
    assert again.global_step == 6
    np.testing.assert_array_equal(
        again.variables["kernel"], resumed.variables["kernel"]
    )
    assert not np.array_equal(resumed.variables["kernel"], straight.variables["kernel"])


def test_model_dir_gets_no_file_that_no_guest_wrote(tmp_path: Path) -> None:
    loop().train(data, max_steps=2, model_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_evaluate_is_the_mean_over_examples_whatever_the_batches() -> None:
    kernel = np.array([[1.0], [1.0]], np.float32)

    def evaluate(batch_size: int) -> dict[str, float]:
        return loop().evaluate(
            lambda: data(4, repeat=False).unbatch().take(7).batch(batch_size),
            variables={"kernel": kernel},
        )

    whole, parts = evaluate(7), evaluate(2)
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(-1, 2)[:7]
    error = x @ kernel - x @ np.array([[1.5], [-2.0]], np.float32)
    np.testing.assert_allclose(whole["loss"], np.mean(error**2), rtol=1e-5)
    np.testing.assert_allclose(whole["mae"], np.mean(np.abs(error)), rtol=1e-5)
    assert parts == pytest.approx(whole, rel=1e-5)


def test_callbacks_get_epochs_logs_and_validation_on_the_live_variables() -> None:
    log = testing.EventLog()
    callback = testing.RecordingCallback(log, "callback")
    run = loop().train(
        data,
        guests=callback,
        steps_per_epoch=STEPS_PER_EPOCH,
        epochs=3,
        validation_fn=lambda: data(2, repeat=False),
    )
    assert run.global_step == 3 * STEPS_PER_EPOCH
    testing.assert_conforms(
        log,
        "callback",
        guest="callback",
        host="session",
        steps=3 * STEPS_PER_EPOCH,
        steps_per_epoch=STEPS_PER_EPOCH,
        validation_batches=2,
    )
    ends = log.logs("callback", "on_epoch_end")
    assert set(ends[-1]) >= {"loss", "mae", "val_loss", "val_mae"}
    losses = [logs["val_loss"] for logs in ends]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    final = loop().evaluate(lambda: data(2, repeat=False), variables=run.variables)
    assert ends[-1]["val_loss"] == pytest.approx(final["loss"], rel=1e-5)
    assert ends[-1]["val_mae"] == pytest.approx(final["mae"], rel=1e-5)


def test_a_callback_sets_the_learning_rate_of_the_running_loop() -> None:
    rates = testing.RecordingHook(testing.EventLog(), fetches="learning_rate:0")
    schedule = tf.keras.callbacks.LearningRateScheduler(lambda e: 0.1 / (e + 1))
    loop().train(
        data, guests=[rates, schedule], steps_per_epoch=STEPS_PER_EPOCH, epochs=3
    )
    np.testing.assert_allclose(
        rates.results()[::STEPS_PER_EPOCH], [0.1, 0.05, 0.1 / 3], rtol=1e-5
    )


def test_a_callback_stops_the_loop_and_restores_the_best_weights() -> None:
    early = tf.keras.callbacks.EarlyStopping(
        monitor="val_loss", mode="max", patience=1, restore_best_weights=True
    )
    log = testing.EventLog()
    watch = testing.RecordingCallback(log, "watch", only=["on_epoch_end"])
    run = loop().train(
        data,
        guests=[watch, early],
        steps_per_epoch=STEPS_PER_EPOCH,
        epochs=9,
        validation_fn=lambda: data(2, repeat=False),
    )
    # The loss falls and the callback wants it to rise, so epoch 0 is the best.
    assert run.global_step == 2 * STEPS_PER_EPOCH
    best = log.logs("watch", "on_epoch_end")[0]["val_loss"]
    final = loop().evaluate(lambda: data(2, repeat=False), variables=run.variables)
    assert final["loss"] == pytest.approx(best, rel=1e-5)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "num_towers": (lambda: loop(num_towers=0), "num_towers=0"),
    "num_towers_type": (lambda: loop(num_towers="2"), "num_towers='2'"),
    "devices": (
        lambda: loop(num_towers=2, devices=["/device:CPU:0"]),
        "one device for each tower",
    ),
    "device_string": (
        lambda: loop(num_towers=6, devices="/cpu:0"),
        "devices='/cpu:0'; expected a list",
    ),
    "learning_rate_text": (lambda: loop(learning_rate="a"), "learning_rate='a'"),
    "learning_rate_number_as_text": (
        lambda: loop(learning_rate="0.1"),
        "learning_rate='0.1'",
    ),
    "learning_rate_nan": (
        lambda: loop(learning_rate=float("nan")),
        "learning_rate=nan",
    ),
    "learning_rate": (lambda: loop(learning_rate=0.0), "learning_rate=0.0"),
    "optimizer": (
        lambda: TowerLoop(model, optimizer=None, learning_rate=1.0),  # type: ignore[arg-type]
        "optimizer=None",
    ),
    "epochs_alone": (lambda: loop().train(data, epochs=2), "without steps_per_epoch"),
    "epochs": (
        lambda: loop().train(data, epochs=0, steps_per_epoch=1),
        "epochs=0`; expected an integer of at least 1",
    ),
    "input": (lambda: loop().train(data()), "expected a function"),
    "no_dataset": (lambda: loop().train(lambda: 3), "expected a `tf.data.Dataset`"),
    "no_pairs": (
        lambda: loop().train(lambda: data().map(lambda x, y: x)),
        r"\(features, labels\)",
    ),
    "no_spec": (
        lambda: TowerLoop(
            lambda features, labels, mode: 1.0,  # type: ignore[arg-type,return-value]
            optimizer=v1.train.GradientDescentOptimizer,
            learning_rate=1.0,
        ).train(data),
        "TowerSpec",
    ),
    "arguments_of_the_model": (
        lambda: TowerLoop(
            lambda x: x,  # type: ignore[arg-type,misc]
            optimizer=v1.train.GradientDescentOptimizer,
            learning_rate=1.0,
        ),
        r"`model_fn\(features, labels, mode\)`",
    ),
    "list_of_metrics": (
        lambda: TowerLoop(
            lambda *_: TowerSpec(tf.constant(1.0), metrics=[1]),  # type: ignore[arg-type]
            optimizer=v1.train.GradientDescentOptimizer,
            learning_rate=1.0,
        ).train(data),
        r"metrics=\[1\]`; expected a dict",
    ),
    "seed": (lambda: loop(seed="a"), "`seed='a'` of type `str`; expected an integer"),
    "cluster": (lambda: loop(cluster=5), "cluster=5; expected a `hb.loops.Session"),
    "no_mean": (
        lambda: TowerLoop(
            lambda features, labels, mode: TowerSpec(loss=features),
            optimizer=v1.train.GradientDescentOptimizer,
            learning_rate=1.0,
        ).train(data),
        "reduce_mean",
    ),
    "no_variables": (
        lambda: TowerLoop(
            lambda features, labels, mode: TowerSpec(loss=tf.reduce_mean(features)),
            optimizer=v1.train.GradientDescentOptimizer,
            learning_rate=1.0,
        ).train(data),
        "trainable variable",
    ),
    "endless_validation": (
        lambda: loop().train(data, validation_fn=data, max_steps=1),
        "never ends",
    ),
    "missing_variable": (
        lambda: loop().evaluate(lambda: data(1, repeat=False), variables={}),
        "kernel",
    ),
    "empty_training": (
        lambda: loop().train(lambda: data(0)),
        "`input_fn` has no batch",
    ),
    "empty_evaluation": (
        lambda: loop().evaluate(
            lambda: data(1, repeat=False).take(0),
            variables={"kernel": np.zeros((2, 1), np.float32)},
        ),
        "no batch",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_refused_with_what_to_do(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        call()


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(hb.errors.UnwritableError, match="model_dir="):
        loop().train(data, max_steps=1, model_dir=tmp_path / "file" / "run")

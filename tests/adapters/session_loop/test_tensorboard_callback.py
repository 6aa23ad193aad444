"""What the TensorBoard callback writes in a session loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, X, native_and_bridged, session_loop
from event_files import events

import hookbridge as hb
from hookbridge import errors


def _tags(found: dict[str, Any]) -> list[str]:
    return sorted(found)


@pytest.mark.slow
def test_tensorboard_writes_the_scalars_of_fit(keras: Any, tmp_path: Path) -> None:
    def make(folder: Path) -> Any:
        return keras.callbacks.TensorBoard(
            str(folder), update_freq=1, write_graph=False, histogram_freq=1
        )

    native_and_bridged(keras, make, tmp_path)
    native, bridged = events(tmp_path / "fit"), events(tmp_path / "session")

    # In `fit` of Keras 2 the batch scalars come from inside the train step.
    def scalars(found: dict[str, Any]) -> dict[str, Any]:
        return {
            k: v
            for k, v in found.items()
            if ("epoch_" in k or "evaluation_" in k or "batch_" in k)
            and "steps_per_second" not in k
        }

    assert _tags(scalars(bridged)) == _tags(scalars(native))
    for tag, points in scalars(native).items():
        assert [p[0] for p in bridged[tag]] == [p[0] for p in points], tag
        np.testing.assert_allclose(
            [p[1] for p in bridged[tag]], [p[1] for p in points], rtol=2e-5, err_msg=tag
        )
    histograms = [t for t in bridged if "histogram" in t]
    assert len(histograms) == len([t for t in native if "histogram" in t]) == 2


def test_tensorboard_writes_the_sessions_graph(keras: Any, tmp_path: Path) -> None:
    # Keras 2 writes the graph in `on_train_batch_end`. Only options such as this one
    # make it call that, in `fit` too.
    session_loop(
        [keras.callbacks.TensorBoard(str(tmp_path), write_steps_per_second=True)]
    )
    assert any(t.endswith(":graph") for t in events(tmp_path))


def test_tensorboard_profiles_a_range(keras: Any, tmp_path: Path) -> None:
    session_loop([keras.callbacks.TensorBoard(str(tmp_path), profile_batch=(2, 4))])
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_tensorboard_made_inside_the_graph(
    keras2: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It profiles too: the second batch unless another is named, as in `fit`."""
    told: list[str] = []
    monkeypatch.setattr(tf.get_logger(), "warning", lambda m, *args: told.append(m))
    with tf.Graph().as_default():
        callback = keras2.callbacks.TensorBoard(
            str(tmp_path), histogram_freq=1, write_grads=True, embeddings_data=X
        )
    session_loop([callback])
    assert any("`write_grads` will be ignored" in t for t in told)
    assert any("`embeddings_data` is not supported" in t for t in told)
    assert "train:epoch_loss" in events(tmp_path)
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_a_subclass_of_tensorboard_made_inside_the_graph(
    keras2: Any, tmp_path: Path
) -> None:
    class Own(keras2.callbacks.TensorBoard):  # type: ignore[misc, name-defined]
        def __init__(self, folder: Path, name: str) -> None:
            options = {"write_graph": False, "profile_batch": 0}
            super().__init__(str(folder), histogram_freq=1, **options)
            self.name = name
            self.losses: list[float] = []

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.losses.append(logs["loss"])
            super().on_epoch_end(epoch, {**logs, self.name: epoch})

    with tf.Graph().as_default():
        inside = Own(tmp_path / "inside", "mine")
    session_loop([inside])
    outside = Own(tmp_path / "outside", "mine")
    session_loop([outside])
    assert inside.losses == outside.losses and len(inside.losses)
    found, expected = events(tmp_path / "inside"), events(tmp_path / "outside")
    assert "train:epoch_mine" in found and set(found) == set(expected)


def test_tensorboard_without_its_package_says_so(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    callback = keras.callbacks.TensorBoard(str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(errors.MissingExtraError, match=r"hookbridge\[tensorboard\]"):
        hb.as_hooks(callback, steps_per_epoch=2)


def test_tensorboard_writes_the_rate_of_a_schedule(keras: Any, tmp_path: Path) -> None:
    """Keras 2 writes it for a `LearningRateSchedule` only, Keras 3 always."""
    train = tf.compat.v1.train

    def rate() -> Any:
        step = train.get_or_create_global_step()
        return train.exponential_decay(0.1, step, STEPS, 0.5)

    session_loop([keras.callbacks.TensorBoard(str(tmp_path))], rate=rate, epochs=3)
    points = events(tmp_path)["train:epoch_learning_rate"]
    assert [p[1] for p in points] == pytest.approx([0.05, 0.025, 0.0125])


def test_setting_a_schedule_has_the_words_of_keras(keras: Any) -> None:
    train = tf.compat.v1.train

    class Sets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.optimizer.learning_rate = 1.0

    def rate() -> Any:
        step = train.get_or_create_global_step()
        return train.exponential_decay(0.1, step, STEPS, 0.5)

    model = keras.Sequential([keras.layers.Dense(1)])
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 3, 0.5)
    model.compile(keras.optimizers.SGD(schedule), "mse")
    with pytest.raises(TypeError) as of_keras:
        model.optimizer.learning_rate = 1.0
    with pytest.raises(TypeError) as ours:
        session_loop([Sets()], rate=rate, epochs=1)
    assert str(ours.value).startswith(str(of_keras.value))

"""The global step under `fit` where the optimizer's own count differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, sequential

import hookbridge as hb
from hookbridge.adapters.hook_to_callback import HookToCallback

train: Any = tf.compat.v1.train


def unknown_size() -> Any:
    """Four batches: Keras makes a call for a fifth, which the optimizer counts."""
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    return data.filter(lambda *_: True)


def steps_of(model: Any, data: Any, epochs: int, *hooks: Any) -> list[int]:
    hook = Fetch()
    callbacks = [HookToCallback(h) for h in (hook, *hooks)]
    model.fit(data, epochs=epochs, verbose=0, callbacks=callbacks)
    return hook.steps


def test_a_new_optimizer_after_data_of_unknown_size_counts_from_zero(
    keras: Any,
) -> None:
    model = sequential(keras)
    assert steps_of(model, unknown_size(), 2) == list(range(8))
    assert steps_of(model, unknown_size(), 1) == list(range(8, 12))
    model.compile("sgd", "mse")
    assert steps_of(model, unknown_size(), 1) == list(range(4))


@pytest.mark.parametrize("is_new", [False, True], ids=["same model", "new model"])
def test_a_restored_model_goes_on_at_the_checkpoint_s_step(
    keras: Any, tmp_path: Path, is_new: bool
) -> None:
    model = sequential(keras)
    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=4)
    steps_of(model, unknown_size(), 2, saver)
    first = str(tmp_path / "model.ckpt-4")
    later = sequential(keras) if is_new else model
    hb.checkpoints.restore(later, first)
    assert steps_of(later, unknown_size(), 1) == list(range(4, 8))


def with_an_optimizer_of_its_own(keras: Any) -> Any:
    class Own(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.out = keras.layers.Dense(1, name="out")
            self.own = keras.optimizers.SGD(0.05)

        def call(self, inputs: Any) -> Any:
            return self.out(inputs)

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            variables = self.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.own.apply_gradients(zip(gradients, variables, strict=True))
            return {"own_loss": loss}

    return Own()


@pytest.mark.parametrize("is_eager", [False, True], ids=["graph", "eager"])
def test_several_steps_of_a_model_whose_optimizer_is_not_used(
    keras: Any, is_eager: bool
) -> None:
    model = with_an_optimizer_of_its_own(keras)
    model(X[:1])
    model.compile(steps_per_execution=2, run_eagerly=is_eager)
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    stop = train.StopAtStepHook(num_steps=6)
    assert steps_of(model, data, 3, stop) == [0, 2, 4, 6]


def test_several_steps_in_mixed_precision(keras: Any) -> None:
    policy = keras.mixed_precision
    policy.set_global_policy("mixed_float16")
    try:
        model = sequential(keras, steps_per_execution=2)
        data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
        stop = train.StopAtStepHook(num_steps=6)
        assert steps_of(model, data, 3, stop) == [0, 2, 4, 6]
    finally:
        policy.set_global_policy("float32")

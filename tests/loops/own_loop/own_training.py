"""The classifier of `hook_loops` in `fit` and in a loop of the user's own."""

from __future__ import annotations

from typing import Any

import hook_loops
import tensorflow as tf

import hookbridge as hb


def batches() -> Any:
    return tf.data.Dataset.from_tensor_slices((hook_loops.X, hook_loops.Y)).batch(
        hook_loops.BATCH
    )


def loss_of(keras: Any, model: Any, batch: Any) -> Any:
    x, y = batch
    losses = keras.losses.sparse_categorical_crossentropy(
        y, model(x, training=True), from_logits=True
    )
    return tf.reduce_mean(losses)


def train_step_of(keras: Any, model: Any, strategy: Any = None) -> Any:
    """A step as users write it; with a strategy, it calls `strategy.run`."""
    optimizer = model.optimizer

    def update(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(keras, model, batch)
            if strategy is not None:
                loss /= strategy.num_replicas_in_sync
        weights = model.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    if strategy is None:
        return tf.function(update)

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(batch: Any) -> Any:
        losses = strategy.run(update, args=(batch,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    return train_step


def in_own_loop(
    keras: Any, guests: Any, *, strategy: Any = None, epochs: int = 1, **options: Any
) -> Any:
    """Trains in a loop of its own; returns the model and the history."""
    model = options.pop("model", None) or hook_loops.keras_model(keras, strategy)
    step = options.pop("step", None) or train_step_of(keras, model, strategy)
    data = batches()
    if strategy is not None:
        data = strategy.experimental_distribute_dataset(data)
    options = {"steps_per_epoch": hook_loops.BATCHES, "epochs": epochs, **options}
    with hb.loops.OwnLoop(guests, model=model, **options) as loop:
        while not loop.should_stop():
            for batch in data:
                loop.step(step, batch)
                if loop.should_stop():
                    break
    return model, loop.history


def in_fit(
    keras: Any, guests: Any, *, strategy: Any = None, epochs: int = 1, **options: Any
) -> Any:
    """The same in `fit`."""
    model = options.pop("model", None) or hook_loops.keras_model(keras, strategy)
    history = model.fit(
        batches(), epochs=epochs, verbose=0, callbacks=hb.as_callbacks(guests)
    )
    return model, history.history

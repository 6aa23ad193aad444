"""A training loop of one's own, with a hook, a checkpoint and early stopping.

python examples/own_loop.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

import hookbridge as hb

DATA = Path(__file__).parent / "data" / "digits.csv"
rows = np.loadtxt(DATA, delimiter=",", skiprows=1, dtype="float32")
images, labels = rows[:, :-1] / 16, rows[:, -1].astype("int64")
data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(64)
train, test = data.skip(5), data.take(5)

keras = tf.keras
model = keras.Sequential(
    [keras.layers.Dense(64, activation="relu", name="hidden"), keras.layers.Dense(10)]
)
model.build([None, images.shape[1]])
optimizer = keras.optimizers.Adam(1e-3)
losses = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(batch):
    x, y = batch
    with tf.GradientTape() as tape:
        loss = losses(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def test_step(batch):
    x, y = batch
    return losses(y, model(x))


guests = [
    tf.compat.v1.train.LoggingTensorHook(["loss:0", "global_step:0"], every_n_iter=50),
    tf.compat.v1.train.CheckpointSaverHook("runs/own_loop", save_steps=100),
    keras.callbacks.EarlyStopping("val_loss", patience=2),
]
with hb.loops.OwnLoop(
    guests, model=model, optimizer=optimizer, steps_per_epoch=len(train), epochs=20
) as loop:
    while not loop.should_stop():
        for batch in train:
            loop.step(train_step, batch)
            if loop.should_evaluate():
                loop.evaluate(test_step, test)

best = min(loop.history["val_loss"])
print(f"{len(loop.history['loss'])} epochs, best val_loss {best:.3f}")

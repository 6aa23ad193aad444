"""Two models in `fit`, and one in a loop of its own.

With the argument `inside` it gives the guests to `fit` itself.
"""

import os
import sys

import numpy as np
import tensorflow as tf

x = np.arange(40, dtype=np.float32).reshape([40, 1]) / 40


def more_callbacks():
    if "inside" not in sys.argv:
        return []
    import guests
    import hookbridge as hb

    return hb.as_callbacks(guests.guests())


def make_model():
    model = tf.keras.Sequential(
        [tf.keras.Input([1]), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    )
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model


for name in ("first", "second"):
    os.makedirs(name)
    os.chdir(name)
    print("now", name)
    model = make_model()
    callbacks = more_callbacks()
    if name == "first":
        kept = tf.keras.callbacks.History()
        callbacks = [kept, *callbacks]
    arguments = {"callbacks": callbacks} if callbacks else {}
    history = model.fit(
        x, 3 * x, batch_size=10, epochs=5, shuffle=False, verbose=0,
        validation_data=(x, 3 * x), **arguments
    )
    print(name, "ends with", [round(loss, 6) for loss in history.history["loss"]])
    os.chdir("..")

print("now batches")
model = make_model()
for _ in range(2):
    model.train_on_batch(x, 3 * x)
print("model is", model.name)

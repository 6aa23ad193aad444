"""A Keras training script: linear regression in `fit`, with one callback."""

import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).normal(size=[512, 4]).astype("float32")
y = x @ np.array([[1.0], [-2.0], [3.0], [0.5]], "float32")

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")

callbacks = [tf.keras.callbacks.CSVLogger("log.csv")]
model.fit(x, y, epochs=50, verbose=0, callbacks=callbacks)
print(f"stopped after {int(model.optimizer.iterations)} steps")

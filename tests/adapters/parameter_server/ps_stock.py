"""The callbacks that Keras ships, in a fit under `ParameterServerStrategy`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tensorflow as tf
from ps_guests import Recorder, batches, keras, mean_output, note, noting_callback


def stock_callbacks(job: Any) -> None:
    """Fits with them; notes the results, and the error of plain Keras."""
    folder, c = Path(sys.argv[1]).parent, keras.callbacks
    plain = ""
    try:
        job.model(mean_output, 0.125).fit(
            keras.utils.experimental.DatasetCreator(batches),
            steps_per_epoch=1,
            callbacks=[noting_callback(Recorder(), "plain")],
            verbose=0,
        )
    except ValueError as e:
        plain = str(e)
    ended: list[float] = []
    guests = [
        c.LearningRateScheduler(lambda epoch, rate: rate / (epoch + 1)),
        c.ReduceLROnPlateau("loss", factor=0.1, patience=10),
        c.EarlyStopping("loss", mode="max", patience=1),
        c.ModelCheckpoint(str(folder / "stock-{batch:02d}.h5"), save_freq=3),
        c.CSVLogger(str(folder / "stock.csv")),
        c.TerminateOnNaN(),
        c.TensorBoard(str(folder / "board"), update_freq=2),
        c.LambdaCallback(
            on_batch_end=lambda batch, logs: ended.append(float(logs["mae"]))
        ),
        tf.compat.v1.train.StepCounterHook(3, output_dir=str(folder / "also")),
    ]
    made = job.model(mean_output, 0.125, metrics=["mae"])
    job.fit(made, guests, epochs=9)
    note(
        "stock callbacks",
        plain=plain,
        epochs=len(made.history.epoch),
        batches=len(ended),
        bias=float(made.layers[1].bias.numpy()[0]),
    )

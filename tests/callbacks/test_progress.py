"""The progress line, and tqdm's bar, in both loops."""

from __future__ import annotations

import importlib
import io
import re
from typing import Any

import callback_loops as loops
import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of

import hookbridge as hb
from hookbridge.jobs.callbacks.progress import Progress, clock


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def run(loop: str, keras: Any, guests: list[Any], **options: Any) -> loops.Loop:
    if loop == "fit":
        hook = tf.compat.v1.train.SessionRunHook()
        return loops.fit(keras, hb.as_callbacks([*guests, hook]), **options)
    return loops.session_loop(guests, **options)


def without_rates(text: str) -> list[str]:
    """The lines without rates and the time left, which are measured."""
    return [
        re.sub(r"  \S+ (examples/s|steps/s|left)", "", s) for s in text.splitlines()
    ]


@pytest.mark.parametrize("loop", ["session", "fit"])
def test_both_loops_print_the_same_lines(loop: str, keras: Any) -> None:
    stream = io.StringIO()
    progress = Progress(stream=stream, every_secs=0, batch_size=loops.BATCH)
    result = run(loop, keras, [progress], epochs=2)
    lines = without_rates(stream.getvalue())
    # A line for each step, one for the end of each epoch, and one for the end.
    assert [re.findall(r"epoch \S+|step \S+", line) for line in lines] == [
        [f"epoch {1 + (step > 3)}/2", f"step {step}/6"]
        for step in (1, 2, 3, 3, 4, 5, 6, 6, 6)
    ]
    for name, values in result.history.items():
        assert f"  {name} {values[-1]:.4g}" in lines[-1]
        assert f"  {name} {values[0]:.4g}" in lines[3]
    assert " examples/s" in stream.getvalue() and " left" in stream.getvalue()


def test_a_session_without_epochs_counts_steps() -> None:
    stream = io.StringIO()
    progress = Progress(stream=stream, every_secs=0, last_step=5)
    with tf.Graph().as_default():
        net = loops.build()
        stop = tf.compat.v1.train.StopAtStepHook(last_step=5)
        hooks = hb.as_hooks([stop, progress])
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(net.train_op, loops.feeds(net, 0))
    lines = without_rates(stream.getvalue())
    assert [line.split("  ")[0] for line in lines[:2]] == ["step 1/5", "step 2/5"]
    assert lines[-1].startswith("step 5/5  loss ")
    assert "epoch" not in stream.getvalue() and "steps/s" in stream.getvalue()


def test_evaluate_and_predict_have_a_line_too(keras: Any) -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones([8, 2]), np.ones([8, 1])
    stream = io.StringIO()
    guests = hb.as_callbacks([Progress(stream=stream, every_secs=0)])
    model.evaluate(x, y, batch_size=4, verbose=0, callbacks=guests)
    model.predict(x, batch_size=4, verbose=0, callbacks=guests)
    lines = without_rates(stream.getvalue())
    assert [line.split("  loss")[0] for line in lines] == [
        *("evaluate  batch 1/2", "evaluate  batch 2/2", "evaluate  batch 2/2"),
        *("predict  batch 1/2", "predict  batch 2/2", "predict  batch 2/2"),
    ]


def stepping(stream: io.StringIO, steps: int, **options: Any) -> None:
    """Calls a `Progress` as a training does, whose steps take 0.1 s by a fake clock."""
    now = [0.0]
    progress = Progress(stream=stream, clock=lambda: now[0], **options)
    progress.set_params({"epochs": 1, "steps": steps})
    progress.set_model(None)
    progress.on_train_begin()
    progress.on_epoch_begin(0)
    for batch in range(steps):
        now[0] += 0.1
        progress.on_train_batch_end(batch, {"loss": batch})
    progress.on_epoch_end(0, {"loss": 0.5, "val_loss": 0.25})
    progress.on_train_end({"loss": 0.5})


def test_a_file_gets_few_lines_and_the_last_one() -> None:
    stream = io.StringIO()
    stepping(stream, 301, batch_size=32, every_secs=9.99)  # 10 s, less rounding
    lines = stream.getvalue().splitlines()
    assert lines == [
        "epoch 1/1  step 1/301  loss 0",
        "epoch 1/1  step 101/301  320 examples/s  0:20 left  loss 100",
        "epoch 1/1  step 201/301  320 examples/s  0:10 left  loss 200",
        "epoch 1/1  step 301/301  320 examples/s  loss 300",
        "epoch 1/1  step 301/301  320 examples/s  loss 0.5  val_loss 0.25",
    ]


def test_each_loop_has_its_first_and_its_last_line(keras: Any) -> None:
    """In between, 10 s must pass, and here none does.

    A loop that ends with an error has no last line.
    """
    model = loops.fresh_model(keras)
    data = {"batch_size": loops.BATCH, "verbose": 0}
    stream = io.StringIO()
    guests = hb.as_callbacks([Progress(stream=stream, clock=lambda: 0.0)])
    model.fit(loops.X, loops.Y, epochs=2, callbacks=guests, **data)
    model.evaluate(loops.X, loops.Y, callbacks=guests, **data)
    model.predict(loops.X, callbacks=guests, **data)
    failing = callback_of(keras, on_train_batch_end=lambda self, b, logs: 1 // (1 - b))
    with pytest.raises(ZeroDivisionError):
        model.fit(loops.X, loops.Y, callbacks=[*guests, failing], **data)
    lines = [
        re.sub("  (?!batch|step).*", "", s) for s in stream.getvalue().splitlines()
    ]
    assert lines == [
        *("epoch 1/2  step 1/6", "epoch 2/2  step 6/6"),
        *("evaluate  batch 1/3", "evaluate  batch 3/3"),
        *("predict  batch 1/3", "predict  batch 3/3"),
        "epoch 1/1  step 7/9",
    ]


def test_a_terminal_has_one_line_that_is_rewritten_a_few_times_a_second() -> None:
    stream = Terminal()
    stepping(stream, 101)
    text = stream.getvalue()
    lines = text.split("\r\x1b[K")[1:]
    assert 30 <= len(lines) <= 60
    assert text.count("\n") == 1 and text.endswith("\n")
    assert all(len(line.rstrip("\n")) < 80 for line in lines)


def test_long_times_are_readable() -> None:
    assert [clock(secs) for secs in (7, 750, 11_100)] == ["0:07", "12:30", "3:05:00"]


@pytest.mark.parametrize("loop", ["session", "fit"])
def test_the_bar_of_tqdm_moves_in_both_loops(loop: str, keras: Any) -> None:
    tqdm_keras = importlib.import_module("tqdm.keras")
    if not issubclass(tqdm_keras.TqdmCallback, keras.callbacks.Callback):
        pytest.skip("tqdm's callback is one of the other Keras")
    stream = io.StringIO()
    bar = tqdm_keras.TqdmCallback(
        data_size=loops.BATCH * loops.STEPS,
        batch_size=loops.BATCH,
        verbose=2,
        file=stream,
        mininterval=0,
    )
    result = run(loop, keras, [bar], epochs=2)
    assert (bar.epoch_bar.n, bar.epoch_bar.total) == (2, 2)
    assert bar.batch_bar.n == loops.STEPS
    assert "val_loss=" in bar.epoch_bar.postfix
    assert f"{result.history['loss'][-1]:.3g}" in bar.epoch_bar.postfix
    assert "| 2/2 [" in stream.getvalue()

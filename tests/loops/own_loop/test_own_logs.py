"""What a loop of the user's own makes of what a step and an evaluation return."""

from __future__ import annotations

from typing import Any

import hook_loops
import pytest
import tensorflow as tf
from own_training import batches, in_fit, loss_of, train_step_of

import hookbridge as hb
from hookbridge.testing import EventLog, RecordingCallback

ONE_KERAS = True


def test_validation_is_in_the_logs_of_the_epoch(keras: Any) -> None:
    model, log = hook_loops.keras_model(keras), EventLog()
    step, events = train_step_of(keras, model), RecordingCallback(log)
    best = keras.callbacks.EarlyStopping("val_loss", patience=0, min_delta=1e9)
    options = {"steps_per_epoch": hook_loops.BATCHES, "model": model}
    with hb.loops.OwnLoop([events, best], **options) as loop:
        for batch in batches().repeat():
            loop.step(step, batch)
            if loop.should_evaluate():
                found = loop.evaluate(lambda b: loss_of(keras, model, b), batches())
    assert best.stopped_epoch == 1
    assert loop.history["val_loss"] == [
        pytest.approx(v, abs=1) for v in [found["loss"]] * 2
    ]
    x, y = hook_loops.X, hook_loops.Y
    assert found["loss"] == pytest.approx(model.evaluate(x, y, verbose=0), rel=1e-4)
    names = [e.event for e in log if e.event.startswith(("on_test", "on_epoch"))]
    one = ["on_epoch_begin", "on_test_begin"]
    one += ["on_test_batch_begin", "on_test_batch_end"] * hook_loops.BATCHES
    assert names == [*one, "on_test_end", "on_epoch_end"] * 2


def test_logs_are_what_the_step_is_told_to_make(keras: Any) -> None:
    model = hook_loops.keras_model(keras)
    step, mean = train_step_of(keras, model), keras.metrics.Mean(name="mean")
    native = in_fit(keras, [], epochs=2)[1]["loss"]

    def counted(batch: Any) -> Any:
        loss = step(batch)
        mean.update_state(loss)
        return {"loss": loss, "twice": 2 * loss}

    cases: list[Any] = [
        (step, None, ["loss"]),
        (lambda b: (step(b), 1.0), None, ["loss"]),
        (lambda b: (step(b), 1.0), ["loss", "one"], ["loss", "one"]),
        (counted, None, ["loss", "twice"]),
        (counted, ["loss"], ["loss"]),
        (counted, {"loss": mean}, ["loss"]),
        (counted, lambda out: {"loss": mean.result()}, ["loss"]),
        (lambda b: {"loss": counted(b) and mean.result()}, dict, ["loss"]),
    ]
    for function, logs, keys in cases:
        again = hook_loops.keras_model(keras)
        model.set_weights(again.get_weights())
        mean.reset_state()
        with hb.loops.OwnLoop([], model=model, steps_per_epoch=4, epochs=2) as loop:
            for batch in batches().repeat():
                loop.step(function, batch, logs=logs)
        assert list(loop.history) == keys
        if logs is dict or callable(logs):  # as it is: nobody has reset the metric
            native_of_both = [native[0], sum(native) / 2]
            assert loop.history["loss"] == pytest.approx(native_of_both, rel=1e-4)
        else:
            assert loop.history["loss"] == pytest.approx(native, rel=1e-4)
    with (
        pytest.raises(
            hb.errors.InvalidArgumentError, match="the names of what the step"
        ),
        hb.loops.OwnLoop([], model=model) as loop,
    ):
        loop.step(step, next(iter(batches())), logs=3)  # type: ignore[arg-type]
    with (
        pytest.raises(hb.errors.InvalidArgumentError, match="logs names"),
        hb.loops.OwnLoop([], model=model) as loop,
    ):
        loop.step(counted, next(iter(batches())), logs=["acc"])


def test_a_step_gets_a_batch_or_its_parts(keras: Any) -> None:
    """In an evaluation as in training: `step(batch)`, or `step(x, y)`."""
    model = hook_loops.keras_model(keras)

    def whole(batch: Any, training: bool = False) -> Any:
        return loss_of(keras, model, batch)

    def parts(x: Any, y: Any) -> Any:
        return loss_of(keras, model, (x, y))

    with hb.loops.OwnLoop([], model=model) as loop:
        found = [loop.evaluate(step, batches()) for step in (whole, parts)]
        found += [loop.evaluate(tf.function(parts), batches())]
        assert found[0] == found[1] == pytest.approx(found[2])
        with pytest.raises(hb.errors.InvalidArgumentError, match=r"part_0, part_1"):
            loop.evaluate(lambda x, y, weight: 0.0, batches())


def test_a_step_without_the_number_that_a_callback_monitors(
    keras: Any, subtests: pytest.Subtests
) -> None:
    for returned in ("a text", tf.ones(3), {"loss": tf.ones(3)}, {"loss": "x"}):
        with subtests.test(str(returned)):
            guests = [keras.callbacks.EarlyStopping("loss")]
            said = "`EarlyStopping` monitors `loss`, and the step returned .*; expected"
            steps: list[int] = []

            def step(value: Any = returned, made: list[int] = steps) -> Any:
                made.append(1)
                return value

            with (
                pytest.raises(hb.errors.InvalidArgumentError, match=said),
                hb.loops.OwnLoop(guests, model=hook_loops.keras_model(keras)) as loop,
            ):
                loop.step(step)
                loop.step(step)
            assert steps == [1]
    # The end of the epoch may still bring the number.
    guests = [keras.callbacks.EarlyStopping("loss")]
    with hb.loops.OwnLoop(guests, model=hook_loops.keras_model(keras)) as loop:
        loop.step(lambda: None)
        loop.end_epoch({"loss": 0.5})
    assert guests[0].best == 0.5

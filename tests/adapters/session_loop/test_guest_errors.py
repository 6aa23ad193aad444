"""Errors of guests that a session would take for something else end the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, build, feeds, fit, session_loop
from callback_recorder import EVENTS, noting
from estimator_models import (
    bare_model_fn,
    estimators,
    eval_input,
    in_estimator,
    predict_input,
)
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
ERRORS: list[Callable[[], Exception]] = [
    lambda: StopIteration("boom"),
    lambda: tf.errors.OutOfRangeError(None, None, "boom"),
    lambda: tf.errors.AbortedError(None, None, "boom"),
    lambda: tf.errors.UnavailableError(None, None, "boom"),
]
METHODS = ("set_model", "set_params", *EVENTS)


def raising(keras: Any, method: str, error: Exception) -> tuple[Any, list[str]]:
    """A callback that raises an error in each call of a method, and its calls."""
    calls: list[str] = []

    def note(callback: Any, event: str, *args: Any) -> None:
        calls.append(event)
        raise error

    return noting(keras, note, [method]), calls


@pytest.mark.parametrize(
    "shift",
    [0, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(1, 4))],
)
def test_an_error_of_a_callback_ends_the_run_as_in_fit(
    keras: Any, shift: int, subtests: pytest.Subtests
) -> None:
    for number, method in enumerate(METHODS):
        error = ERRORS[(number + shift) % len(ERRORS)]()
        with subtests.test(f"{type(error).__name__} in {method}"):
            guest, calls = raising(keras, method, error)
            with pytest.raises(
                errors.GuestFailedError,
                match=rf"`Functions\.{method}` raised {type(error).__name__}: boom\. ",
            ) as caught:
                session_loop([guest], epochs=2)
            assert caught.value.__cause__ is error
            assert calls == [method]
            is_end = isinstance(error, (StopIteration, tf.errors.OutOfRangeError))
            # Keras takes that in a batch for the end of the data of its epoch.
            if not (is_end and "_batch_" in method):
                guest, calls = raising(keras, method, error)
                with pytest.raises(type(error)):
                    fit(keras, [guest], epochs=2)
                assert calls == [method]


def short_data(net: Any) -> Callable[[Any], Any]:
    """A validation whose dataset lasts for two evaluations."""
    rows = v1.data.make_one_shot_iterator(tf.data.Dataset.range(2)).get_next()
    return lambda session: {"loss": float(session.run(rows))}


def short_iterator(net: Any) -> Callable[[], Any]:
    """The same without a session."""
    values = iter([1.0, 2.0])
    return lambda: {"loss": next(values)}


def storage(net: Any) -> Callable[[], Any]:
    """A validation that reads from a bucket."""

    def read() -> Any:
        raise tf.errors.UnavailableError(None, None, "503")

    return read


@pytest.mark.parametrize(
    ("validation", "epochs", "message"),
    [
        (short_data, 2, r"`validation=` raised OutOfRangeError.*`repeat\(\)`"),
        (short_iterator, 2, r"`validation=` raised StopIteration\. .*`repeat\(\)`"),
        (storage, 0, r"`validation=` raised UnavailableError: 503\. .* lost task"),
    ],
)
def test_an_error_of_validation_ends_the_run(
    keras: Any, validation: Any, epochs: int, message: str
) -> None:
    seen: list[str] = []
    events = ("on_epoch_end", "on_train_end")
    guest = noting(keras, lambda callback, event, *_: seen.append(event), events)
    # Its name is not known: it is called once before the first step, too.
    stopping = keras.callbacks.EarlyStopping("val_loss", patience=9)
    for guests, ended in (([guest], epochs), ([guest, stopping], max(epochs - 1, 0))):
        seen.clear()
        with tf.Graph().as_default():
            net = build()
            hooks = hb.as_hooks(
                guests, steps_per_epoch=STEPS, epochs=4, validation=validation(net)
            )
            with (
                pytest.raises(errors.GuestFailedError, match=message),
                v1.train.MonitoredTrainingSession(hooks=hooks) as session,
            ):
                for step in range(4 * STEPS):
                    session.run(net.train_op, feeds(net, step))
        assert seen == ["on_epoch_end"] * ended


@pytest.mark.parametrize("event", ["on_epoch_begin", "on_test_begin", "on_epoch_end"])
def test_a_session_that_a_callback_finds_lost_is_recovered(
    keras: Any, event: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call fails: the callback's, or in `on_test_begin` the validation's."""
    sessions: list[Any] = []

    def lost(self: Any, *args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        raise tf.errors.AbortedError(None, None, "lost a server")

    def lose(callback: Any, event: str, *args: Any) -> None:
        if len(sessions) == 1:
            monkeypatch.setattr(v1.Session, "run", lost)
        if event != "on_test_begin":
            callback.model.get_weights()

    created = hook_of(after_create_session=lambda self, *_: sessions.append(self))
    result = session_loop(
        [noting(keras, lose, [event])],
        epochs=2,
        session_options={"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 1},
        wrap=lambda hooks: [created, *hooks],
    )
    assert len(sessions) == 2
    assert result.steps == 2 * STEPS


def test_an_error_in_an_estimator(keras: Any, tmp_path: Path) -> None:
    guest, _ = raising(keras, "on_epoch_end", ERRORS[3]())
    with pytest.raises(errors.GuestFailedError, match="on_epoch_end"):
        in_estimator([guest], tmp_path, epochs=2)
    estimator = estimators.Estimator(bare_model_fn, str(tmp_path))
    guest, _ = raising(keras, "on_test_batch_end", ERRORS[0]())
    with pytest.raises(errors.GuestFailedError, match="on_test_batch_end"):
        estimator.evaluate(eval_input, hooks=hb.as_hooks([guest]))
    guest, _ = raising(keras, "on_predict_batch_end", ERRORS[1]())
    with pytest.raises(errors.GuestFailedError, match="on_predict_batch_end"):
        list(estimator.predict(predict_input, hooks=hb.as_hooks([guest])))

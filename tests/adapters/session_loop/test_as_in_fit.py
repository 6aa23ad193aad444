"""What a callback reads from its model, and the order of its set-up, as in `fit`."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, fit, session_loop
from callback_recorder import noting

import hookbridge as hb

v1 = tf.compat.v1
EVENTS = ("on_train_batch_end", "on_epoch_end", "on_train_end")


def stops_after(steps: int) -> Any:
    return v1.train.StopAtStepHook(num_steps=steps)


def flags(keras: Any, seen: list[tuple[str, bool]], events: Any = EVENTS) -> Any:
    """A callback that notes `model.stop_training` in some events."""

    def note(callback: Any, event: str, *args: Any) -> None:
        seen.append((event, callback.model.stop_training))

    return noting(keras, note, events)


@pytest.mark.parametrize(
    ("steps", "events"),
    [(1, EVENTS), (STEPS, EVENTS[1:]), (STEPS + 1, EVENTS), (STEPS + 1, EVENTS[1:])],
)
def test_a_stop_of_a_hook_is_read_by_later_callbacks(
    steps: int, events: tuple[str, ...], keras: Any
) -> None:
    of_fit: list[Any] = []
    of_session: list[Any] = []
    guests = [stops_after(steps), flags(keras, of_fit, events)]
    native = fit(keras, hb.as_callbacks(guests))
    ours = session_loop([stops_after(steps), flags(keras, of_session, events)])
    assert ours.steps == native.steps == steps
    assert of_session == of_fit
    assert of_fit[-1] == ("on_train_end", True)


def test_a_stop_of_a_later_hook_is_read_when_the_run_ends(keras: Any) -> None:
    seen: list[Any] = []
    session_loop([flags(keras, seen, EVENTS[1:]), stops_after(STEPS + 1)])
    assert seen == [
        ("on_epoch_end", False),
        ("on_epoch_end", True),
        ("on_train_end", True),
    ]


def test_no_callback_gets_the_end_of_a_batch_in_which_a_hook_raises(keras: Any) -> None:
    """A hook is called within the step, before or after it in the list as well."""

    class Raises(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            raise KeyError("of a hook")

    def guests(seen: list[Any]) -> list[Any]:
        def note(callback: Any, event: str, *args: Any) -> None:
            seen.append((callback is first, event))

        events = ("on_train_batch_begin", "on_train_batch_end", "on_train_end")
        first, last = (noting(keras, note, events) for _ in "ab")
        return [first, Raises(), last]

    of_fit: list[Any] = []
    of_session: list[Any] = []
    with pytest.raises(KeyError, match="of a hook"):
        fit(keras, hb.as_callbacks(guests(of_fit)))
    with pytest.raises(KeyError, match="of a hook"):
        session_loop(guests(of_session), hooks_on="steps")
    begun = [(True, "on_train_batch_begin"), (False, "on_train_batch_begin")]
    assert of_session == of_fit == begun


def test_the_end_of_the_epochs_is_no_stop(keras: Any) -> None:
    of_fit: list[Any] = []
    of_session: list[Any] = []
    fit(keras, [flags(keras, of_fit)], epochs=2)
    session_loop([flags(keras, of_session)], epochs=2)
    assert of_session == of_fit
    assert not any(flag for _, flag in of_fit)


def test_all_get_the_model_before_any_gets_parameters(keras: Any) -> None:
    def guests(seen: list[Any]) -> list[Any]:
        def note(callback: Any, event: str, *args: Any) -> None:
            if event != "on_train_begin":
                getattr(super(type(callback), callback), event)(*args)
            seen.append((name_of[id(callback)], event))

        events = ("set_model", "set_params", "on_train_begin")
        made = [noting(keras, note, events) for _ in "ab"]
        name_of = {id(each): name for each, name in zip(made, "ab", strict=True)}
        return made

    of_fit: list[Any] = []
    of_session: list[Any] = []
    fit(keras, guests(of_fit), epochs=1)
    session_loop(guests(of_session), epochs=1)
    assert [event for _, event in of_fit[:4]] == ["set_model"] * 2 + ["set_params"] * 2
    assert of_session == of_fit


def test_weights_are_there_when_parameters_are_set(keras: Any) -> None:
    class Reads(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def set_params(self, params: Any) -> None:
            super().set_params(params)
            shapes.append([w.shape for w in self.model.get_weights()])

    shapes: list[Any] = []
    fit(keras, [Reads()], epochs=1)
    session_loop([Reads()], epochs=1)
    assert shapes[0] == shapes[1]


METRICS = ("mse", "mae", "acc", "cosine_similarity", "mape", "auc")


def test_keras_3_finds_the_mode_of_a_validation_metric(keras3: Any) -> None:
    def stopping() -> list[Any]:
        return [keras3.callbacks.EarlyStopping(f"val_{name}") for name in METRICS]

    of_fit, of_session = stopping(), stopping()
    model = keras3.Sequential([keras3.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "mse", metrics=list(METRICS))
    x, y = tf.ones((4, 2)), tf.ones((4, 1))
    model.fit(x, y, verbose=0, validation_data=(x, y), callbacks=of_fit)
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=1.0)
        loss = tf.square(weight, name="loss")
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        hooks = hb.as_hooks(
            of_session,
            steps_per_epoch=1,
            epochs=1,
            validation=lambda: dict.fromkeys(METRICS, 0.5),
        )
        with v1.train.MonitoredSession(hooks=hooks) as session:
            session.run(train_op)
    for ours, theirs in zip(of_session, of_fit, strict=True):
        assert ours.monitor_op is theirs.monitor_op is not None

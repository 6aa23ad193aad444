"""Events, and what a callback reads from its model in them, as in `fit`."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, assert_same, fit, session_loop
from callback_recorder import callback_of, noting
from hook_fetching import hook_of

import hookbridge as hb

ONE_KERAS = True

v1 = tf.compat.v1
ENDS = ("on_train_batch_end", "on_epoch_end", "on_train_end")


def flags(keras: Any, seen: list[tuple[str, bool]], events: Any = ENDS) -> Any:
    """A callback that notes `model.stop_training` in some events."""

    def note(callback: Any, event: str, *args: Any) -> None:
        seen.append((event, callback.model.stop_training))

    return noting(keras, note, events)


@pytest.mark.parametrize(("steps", "events"), [(1, ENDS), (STEPS + 1, ENDS[1:])])
def test_a_stop_of_a_hook_is_read_by_later_callbacks(
    steps: int, events: tuple[str, ...], keras: Any
) -> None:
    stop = functools.partial(v1.train.StopAtStepHook, num_steps=steps)
    of_fit, of_session, before = list[Any](), list[Any](), list[Any]()
    native = fit(keras, hb.as_callbacks([stop(), flags(keras, of_fit, events)]))
    guests = [flags(keras, before, events), stop(), flags(keras, of_session, events)]
    assert session_loop(guests).steps == native.steps == steps
    assert of_session == of_fit
    assert of_fit[-1] == before[-1] == ("on_train_end", True)
    assert before[-len(events) :] == of_session[-len(events) :]
    last = list[Any]()  # the hook asks after the end of the batch
    session_loop([keras.callbacks.History(), flags(keras, last, events), stop()])
    assert last[-2:] == [("on_epoch_end", True), ("on_train_end", True)]
    if steps == 1:
        assert last[0] == ("on_train_batch_end", False)


def test_no_callback_gets_the_end_of_a_batch_in_which_a_hook_raises(keras: Any) -> None:
    """A hook is called within the step, before or after it in the list as well."""

    def fail(self: Any, context: Any, values: Any) -> None:
        raise KeyError("of a hook")

    def guests(seen: list[Any]) -> list[Any]:
        def note(callback: Any, event: str, *args: Any) -> None:
            seen.append((callback is first, event))

        events = ("on_train_batch_begin", "on_train_batch_end", "on_train_end")
        first, last = (noting(keras, note, events) for _ in "ab")
        return [first, hook_of(after_run=fail), last]

    of_fit: list[Any] = []
    of_session: list[Any] = []
    with pytest.raises(KeyError, match="of a hook"):
        fit(keras, hb.as_callbacks(guests(of_fit)))
    with pytest.raises(KeyError, match="of a hook"):
        session_loop(guests(of_session), hooks_on="steps")
    begun = [(True, "on_train_batch_begin"), (False, "on_train_batch_begin")]
    assert of_session == of_fit == begun


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes")
def test_an_error_about_a_key_of_logs_has_its_keys(keras: Any) -> None:
    def look(callback: Any, epoch: int, logs: Any) -> None:
        logs["acuracy"]

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    callback = callback_of(keras, on_epoch_end=look)
    with pytest.raises(KeyError, match="acuracy") as in_session:
        session_loop([callback])
    with pytest.raises(KeyError, match="acuracy") as in_own_loop:
        with hb.loops.OwnLoop([callback], model=model, steps_per_epoch=1) as loop:
            while not loop.should_stop():
                loop.step(lambda: {"loss": 1.0})
    of_session: Any = in_session.value
    of_own_loop: Any = in_own_loop.value
    text = "hookbridge: `logs` of `on_epoch_end` had 'loss'"
    assert [note[: len(text)] for note in of_session.__notes__] == [text]
    assert of_own_loop.__notes__ == [f"{text}."]


def test_a_stop_that_the_end_of_an_epoch_takes_back_begins_the_next(keras: Any) -> None:
    def guests(seen: list[Any]) -> list[Any]:
        def note(callback: Any, event: str, number: int, logs: Any = None) -> None:
            seen.append((event, number))
            ends_early = len(seen) == 2  # after the first batch
            callback.model.stop_training = ends_early and event == "on_train_batch_end"

        events = ("on_epoch_begin", "on_train_batch_end", "on_epoch_end")
        return [noting(keras, note, events)]

    of_fit: list[Any] = []
    of_session: list[Any] = []
    native = fit(keras, guests(of_fit))
    assert of_fit[:4] == [
        *(("on_epoch_begin", 0), ("on_train_batch_end", 0)),
        *(("on_epoch_end", 0), ("on_epoch_begin", 1)),
    ]
    steps = native.steps
    seen = session_loop([*guests(of_session), v1.train.StopAtStepHook(last_step=steps)])
    assert (seen.steps, of_session) == (steps, of_fit)


@pytest.mark.parametrize("is_listed", [False, True])
def test_the_history_of_the_model(keras: Any, is_listed: bool) -> None:
    """Keras adds a `History` to the end of each list that has none."""

    def guests(seen: list[Any]) -> list[Any]:
        def note(callback: Any, event: str, *args: Any) -> None:
            history = callback.model.history
            seen.append((event, sorted(history.history), list(history.epoch)))

        def change(callback: Any, epoch: int, logs: Any) -> None:
            logs["mine"] = 1.0

        events = ("on_train_batch_end", "on_epoch_end", "on_train_end")
        listed = [keras.callbacks.History()] if is_listed else []
        changed = callback_of(keras, on_epoch_end=change)
        return [*listed, noting(keras, note, events), changed]

    of_fit, of_session = list[Any](), list[Any]()
    fit(keras, guests(of_fit), epochs=2)
    session_loop(guests(of_session), epochs=2)
    assert of_session == of_fit
    assert of_fit[-1][2] == [0, 1]


@pytest.mark.parametrize("frequency", [2, [1, 3]])
def test_validation_after_some_epochs(keras: Any, frequency: Any) -> None:
    options = {"epochs": 5, "validation_freq": frequency}
    native, bridged = fit(keras, [], **options), session_loop([], **options)
    assert len(native.history["val_loss"]) == 2
    assert_same(bridged, native)


@pytest.mark.parametrize(
    ("moved_on", "named", "begins"),
    [
        (9, "epochs 1 to 3", [0, 4]),
        (4, "epoch 1", [0, 2, 3, 4]),
        (12, "epochs 1 to 4", [0]),
    ],
)
def test_epochs_in_which_others_made_all_steps_are_named(
    keras: Any, absl_records: Any, moved_on: int, named: str, begins: list[int]
) -> None:
    """A later hook moves the step, as other workers do while this one is slow."""
    begun: list[int] = []
    callback = callback_of(
        keras, on_epoch_begin=lambda self, epoch, logs=None: begun.append(epoch)
    )
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        others = [v1.assign_add(step, 1), v1.assign_add(step, moved_on)]

        def after_run(self: Any, context: Any, values: Any) -> None:
            if context.session.run(step) == 3:
                context.session.run(others[1])

        hooks = hb.as_hooks(
            callback, steps_per_epoch=3, epochs=5, logs={"loss": tf.constant(1.0)}
        )
        hooks.append(hook_of(after_run=after_run))
        with v1.train.MonitoredSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(others[0])
    assert begun == begins
    assert absl_records(f"this process made no step in {named}: other workers")

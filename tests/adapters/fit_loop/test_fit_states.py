"""Callbacks of a `fit` go on with their state after a restart."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of, counting
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge.adapters.hooked_loop.model_values import ModelValues

ONE_KERAS = True

train: Any = tf.compat.v1.train
X = np.random.RandomState(5).rand(32, 4).astype("float32")
Y = X.sum(1, keepdims=True)
STEPS = 4


def built(keras: Any, folder: Path | None = None) -> Any:
    """A new model, as a new process has it, with the newest checkpoint of a folder."""
    layer = keras.layers.Dense(1, kernel_initializer="zeros", name="out")
    model = keras.Sequential([keras.Input((4,)), layer])
    # Learns nothing, so that the loss gets no better and patience is used up.
    model.compile(keras.optimizers.SGD(0.0), "mse")
    if folder is not None and tf.train.latest_checkpoint(str(folder)):
        hb.checkpoints.restore(model, str(folder))
    return model


def fit(model: Any, *lists: list[Any], **options: Any) -> Any:
    """Fits with guests; each list is a call of `as_callbacks`."""
    callbacks = [each for part in lists for each in hb.as_callbacks(part)]
    options = {"batch_size": 8, "shuffle": False, "verbose": 0, **options}
    return model.fit(X, Y, callbacks=callbacks, **options)


def saver(folder: Path, every: int = 10**6, **options: Any) -> Any:
    return train.CheckpointSaverHook(str(folder), save_steps=every, **options)


def two_counts(keras: Any) -> list[Any]:
    counts = [counting(keras), counting(keras)]
    counts[0].state_key, counts[1].state_key = "one", "two"
    return counts


def states_in(folder: Path, step: int) -> dict[Any, Any]:
    """`{state_key: state}` beside a checkpoint."""
    path = folder / f"model.ckpt-{step}.hookbridge.json"
    callbacks = json.loads(path.read_text())["callbacks"]
    return {each["key"]: each["state"] for each in callbacks}


@pytest.mark.slow
def test_a_restart_goes_on_with_what_callbacks_counted(
    keras: Any, tmp_path: Path
) -> None:
    def run(name: str, first: int, epochs: int) -> tuple[Any, Any]:
        stopping = keras.callbacks.EarlyStopping("loss", patience=3, min_delta=1e-4)
        count, folder = counting(keras), tmp_path / name
        guests = [stopping, saver(folder), count]
        fit(built(keras, folder), guests, initial_epoch=first, epochs=epochs)
        return stopping, count

    whole_stopping, whole = run("whole", 0, 20)
    assert whole_stopping.stopped_epoch == 3  # the first epoch and three of patience
    assert run("parts", 0, 2)[1].batches == 2 * STEPS
    stopping, count = run("parts", 2, 20)
    assert stopping.stopped_epoch == whole_stopping.stopped_epoch
    assert stopping.best == pytest.approx(whole_stopping.best)
    assert count.batches == whole.batches == 4 * STEPS
    # The checkpoint of another directory has no say.
    count = counting(keras)
    fit(built(keras, tmp_path / "parts"), [saver(tmp_path / "other"), count])
    assert count.batches == STEPS


def as_keras_tuner(guests: list[Any]) -> list[Any]:
    return copy.deepcopy(hb.as_callbacks(guests))


def of_its_own(guests: list[Any]) -> list[Any]:
    return [copy.deepcopy(each) for each in hb.as_callbacks(guests)]


def pickled(guests: list[Any]) -> list[Any]:
    stopping, *others = hb.as_callbacks(guests)
    return [pickle.loads(pickle.dumps(stopping)), *others]


def beside(guests: list[Any]) -> list[Any]:
    stopping, *others = guests
    return [stopping, *hb.as_callbacks(others)]


@pytest.mark.parametrize("listed", [as_keras_tuner, of_its_own, pickled, beside])
def test_copies_of_callbacks_and_callbacks_beside_have_a_state(
    listed: Any, keras: Any, tmp_path: Path
) -> None:
    """keras-tuner copies its callbacks for each trial, Ray and joblib pickle them."""
    waits = []
    for epochs in (2, 5):
        stopping = keras.callbacks.EarlyStopping("loss", patience=9, min_delta=1e-4)
        callbacks = listed([stopping, saver(tmp_path)])
        model = built(keras, tmp_path)
        model.fit(X, Y, batch_size=8, epochs=epochs, verbose=0, callbacks=callbacks)
        waits.append(callbacks[0].wait)
    assert waits == [1, 6]
    path = tmp_path / f"model.ckpt-{7 * STEPS}.hookbridge.json"
    kinds = [each["class"] for each in json.loads(path.read_text())["callbacks"]]
    assert kinds == ["EarlyStopping"]


def test_a_checkpoint_in_mid_epoch_has_the_state_of_its_step(
    keras: Any, tmp_path: Path
) -> None:
    hook, model, count = saver(tmp_path, 3), built(keras), counting(keras)
    stopping = keras.callbacks.EarlyStopping("loss", patience=3, min_delta=1e-4)
    stopping.state_key = "stopping"
    guests = hb.as_callbacks([hook, stopping, count])
    fit(model, guests, epochs=3)
    found = {n: states_in(tmp_path, n)[None]["batches"] for n in (3, 12)}
    assert found == {3: 3, 12: 12}
    assert hook._listeners == []  # the hook is as it was
    # A second `fit` begins anew, as without hooks.
    assert len(fit(model, guests, epochs=3).history["loss"]) == 3
    assert count.batches == 6 * STEPS


def test_a_fit_that_ended_within_a_step_tells_what_is_lost(
    keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    """An error between a save and the end of its batch; and none where none was."""
    lost = "before its callbacks had all events of that step"
    runs = itertools.count(1)

    def fail(self: Any, *args: Any) -> None:
        if next(runs) == 3:
            raise RuntimeError("a hook's own")

    count = counting(keras)
    with pytest.raises(Exception, match="a hook's own"):
        fit(built(keras), [saver(tmp_path, 3), hook_of(after_run=fail), count])
    assert states_in(tmp_path, 3)[None]["batches"] == 2
    count = counting(keras)
    fit(built(keras, tmp_path), [saver(tmp_path, 3), count], epochs=3)
    assert count.batches == 2 + 3 * STEPS
    assert len(absl_records(lost)) == 1
    fit(built(keras, tmp_path), [saver(tmp_path, 3), counting(keras)])
    assert len(absl_records(lost)) == 1


def stop(callback: Any, epoch: int, logs: Any = None) -> None:
    callback.model.stop_training = True


def fail(callback: Any, index: int, logs: Any = None) -> None:
    # In the last batch of an epoch, at its end, or when the next one begins.
    if index == callback.fails_at:
        raise ZeroDivisionError


# The lists of a `fit`: callbacks 1 and 2, a saver S and another callback, X; what X
# does in an event; and the batches and ends that 1 and 2 get.
LISTS: list[tuple[str, dict[str, Any], list[int]]] = [
    ("1S2X", {"on_epoch_end": stop}, [STEPS, 1, STEPS, 1]),
    ("1S2X", {"on_epoch_begin": fail, "fails_at": 1}, [STEPS, 0, STEPS, 0]),
    ("S 1 2", {}, [STEPS, 1, STEPS, 1]),
    ("1 2 S", {}, [STEPS, 1, STEPS, 1]),
    ("S 1 X 2", {"on_train_batch_end": fail, "fails_at": 3}, [STEPS, 0, STEPS - 1, 0]),
    ("1 S X 2", {"on_epoch_end": fail, "fails_at": 0}, [STEPS, 0, STEPS, 0]),
]


@pytest.mark.parametrize(("lists", "events", "expected"), LISTS)
def test_the_state_has_all_events_before_the_end_or_an_error(
    keras: Any, lists: str, events: dict[str, Any], expected: list[int], tmp_path: Path
) -> None:
    def run(epochs: int, **events: Any) -> list[int]:
        guests = dict(zip("12", two_counts(keras), strict=True))
        guests["S"] = saver(tmp_path, STEPS)
        guests["X"] = callback_of(keras, **events)
        parts = [[guests[name] for name in part] for part in lists.split()]
        fails = "fails_at" in events
        with pytest.raises(ZeroDivisionError) if fails else contextlib.nullcontext():
            fit(built(keras, tmp_path), *parts, epochs=epochs)
        return [n for k in "12" for n in (guests[k].batches, guests[k].ends)]

    assert run(1 + bool(events), **events) == expected
    found = states_in(tmp_path, STEPS)
    saved = [found[k].get(n, 0) for k in ("one", "two") for n in ("batches", "ends")]
    assert saved == expected
    if lists in ("S 1 2", "1 2 S"):  # a restart goes on with all of it
        assert run(1) == [2 * STEPS, 2] * 2


@pytest.mark.parametrize("place", [0, 1])
def test_an_evaluation_after_a_fit_is_in_the_state_of_its_end(
    subtests: pytest.Subtests, keras: Any, place: int, tmp_path: Path
) -> None:
    def note(self: Any, logs: Any = None) -> None:
        self.tests += 1

    for evaluations in (2, 0):
        with subtests.test(str(evaluations)):
            model, count = built(keras, tmp_path), callback_of(keras, on_test_end=note)
            count.tests = 0
            guests = [count]
            guests.insert(place, saver(tmp_path, STEPS))
            callbacks = hb.as_callbacks(guests)
            fit(model, callbacks)
            for _ in range(evaluations):
                model.evaluate(X, Y, verbose=0, callbacks=callbacks)
            assert count.tests == 2


def test_no_checkpoint_is_without_state(keras: Any, tmp_path: Path) -> None:
    class Killed(train.CheckpointSaverListener):  # type: ignore[misc]
        """Ends the run as soon as the checkpoint of step 8 is there."""

        def after_save(self, session: Any, global_step_value: int) -> None:
            if global_step_value == 8:
                raise KeyboardInterrupt

    one, two = two_counts(keras)
    with pytest.raises(KeyboardInterrupt):
        fit(
            built(keras), [one, saver(tmp_path, 1, listeners=[Killed()]), two], epochs=5
        )
    newest = tf.train.latest_checkpoint(str(tmp_path))
    assert newest is not None and newest.endswith("-8")
    found = states_in(tmp_path, 8)
    assert all(found[key]["batches"] in (7, 8) for key in ("one", "two"))


def test_values_are_the_same_where_both_are_nan() -> None:
    """A model that diverged is not saved twice for it."""
    nan = tf.constant([1.0, np.nan])
    values = ModelValues([nan, tf.constant([b"text"])])
    assert values == ModelValues([tf.identity(nan), tf.constant([b"text"])])
    assert values != ModelValues([tf.constant([np.nan, 1.0]), tf.constant([b"text"])])
    assert values != ModelValues([nan])

"""Callbacks of a `fit` go on with their state after a restart."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import counting
from callback_recorder import callback_of

import hookbridge as hb

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
    for count, key in zip(counts, ("one", "two"), strict=True):
        count.state_key = key
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


def test_a_checkpoint_in_mid_epoch_has_the_state_of_its_step(
    keras: Any, tmp_path: Path
) -> None:
    hook = saver(tmp_path, 3)
    fit(built(keras), [hook, counting(keras)])
    found = {n: states_in(tmp_path, n)[None]["batches"] for n in (3, 4)}
    assert found == {3: 3, 4: 4}
    assert hook._listeners == []  # the hook is as it was


@pytest.mark.parametrize("ends", ["by epochs", "by a stop", "by an error"])
def test_a_fit_that_ends_at_a_checkpoint_has_all_its_events(
    keras: Any, ends: str, tmp_path: Path
) -> None:
    def end(self: Any, epoch: int, logs: Any = None) -> None:
        self.model.stop_training = ends == "by a stop"

    def begin(self: Any, epoch: int, logs: Any = None) -> None:
        if epoch and ends == "by an error":
            raise ValueError("mine")

    one, two = two_counts(keras)
    last = callback_of(keras, on_epoch_begin=begin, on_epoch_end=end)
    with contextlib.suppress(ValueError):
        fit(
            built(keras),
            [one, saver(tmp_path, STEPS), two, last],
            epochs=1 if ends == "by epochs" else 2,
        )
    found = states_in(tmp_path, STEPS)
    assert [found[key]["batches"] for key in ("one", "two")] == [STEPS, STEPS]
    assert found["one"].get("ends", 0) == found["two"].get("ends", 0) == one.ends


@pytest.mark.parametrize("place", [0, 1])
def test_an_evaluation_after_a_fit_is_in_the_state_of_its_end(
    keras: Any, place: int, tmp_path: Path
) -> None:
    def note(self: Any, logs: Any = None) -> None:
        self.tests += 1

    def train_with(evaluations: int) -> int:
        model, count = built(keras, tmp_path), callback_of(keras, on_test_end=note)
        count.tests = 0
        guests = [count]
        guests.insert(place, saver(tmp_path, STEPS))
        callbacks = hb.as_callbacks(guests)
        fit(model, callbacks)
        for _ in range(evaluations):
            model.evaluate(X, Y, verbose=0, callbacks=callbacks)
        return int(count.tests)

    assert train_with(evaluations=2) == 2
    assert train_with(evaluations=0) == 2


@pytest.mark.parametrize("order", [0, 2])
def test_all_lists_of_a_fit_have_one_state_with_their_last_events(
    keras: Any, order: int, tmp_path: Path
) -> None:
    def run() -> list[Any]:
        counts = two_counts(keras)
        lists = [[each] for each in counts]
        lists.insert(order, [saver(tmp_path, STEPS)])
        fit(built(keras, tmp_path), *lists)
        return counts

    run()
    found = states_in(tmp_path, STEPS)
    assert [found[k][n] for k in ("one", "two") for n in ("batches", "ends")] == [
        *(STEPS, 1),
        *(STEPS, 1),
    ]
    assert [(each.batches, each.ends) for each in run()] == [(2 * STEPS, 2)] * 2


@pytest.mark.parametrize(
    ("event", "order"),
    [("on_train_batch_end", 0), ("on_train_batch_end", 3), ("on_epoch_end", 1)],
)
def test_an_error_between_two_lists_loses_no_event_before_it(
    keras: Any, event: str, order: int, tmp_path: Path
) -> None:
    def fail(self: Any, index: int, logs: Any = None) -> None:
        if index == {"on_train_batch_end": STEPS - 1, "on_epoch_end": 0}[event]:
            raise ZeroDivisionError

    first, second = two_counts(keras)
    lists = [[first], [callback_of(keras, **{event: fail})], [second]]
    lists.insert(order, [saver(tmp_path, STEPS)])
    with pytest.raises(ZeroDivisionError):
        fit(built(keras), *lists)
    found = states_in(tmp_path, STEPS)
    assert found["one"]["batches"] == first.batches == STEPS
    assert found["two"].get("batches") == second.batches
    assert second.batches == STEPS - (event == "on_train_batch_end")


def test_a_second_fit_begins_anew_as_without_hooks(keras: Any, tmp_path: Path) -> None:
    model, count = built(keras), counting(keras)
    stopping = keras.callbacks.EarlyStopping("loss", patience=3, min_delta=1e-4)
    guests = hb.as_callbacks([saver(tmp_path, 2), stopping, count])
    fit(model, guests, epochs=3)
    assert len(fit(model, guests, epochs=3).history["loss"]) == 3
    assert count.batches == 6 * STEPS


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

"""Callbacks of a `fit` go on with their state after a restart."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

train: Any = tf.compat.v1.train
RANDOM = np.random.RandomState(5)
X = RANDOM.rand(32, 4).astype("float32")
Y = X.sum(1, keepdims=True)
EPOCHS, STEPS = 5, 4


def built(keras: Any) -> Any:
    layer = keras.layers.Dense(1, kernel_initializer="zeros", name="out")
    model = keras.Sequential([keras.Input((4,)), layer])
    # Learns nothing, so that the loss gets no better and patience is used up.
    model.compile(keras.optimizers.SGD(0.0), "mse")
    return model


def counting(keras: Any) -> Any:
    class Counting(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        """Counts batches and keeps the losses of epochs."""

        def __init__(self) -> None:
            super().__init__()
            self.batches = 0
            self.losses: list[float] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches += 1

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.losses.append(float(logs["loss"]))

    return Counting()


def fit(keras: Any, folder: Path, first: int, epochs: int, *, order: int) -> list[Any]:
    """Fits a new model, as a new process would; returns the callbacks."""
    model = built(keras)
    if tf.train.latest_checkpoint(str(folder)):
        hb.checkpoints.restore(model, str(folder))
    stopping = keras.callbacks.EarlyStopping("loss", patience=3, min_delta=1e-4)
    count = counting(keras)
    guests: list[Any] = [stopping, count]
    guests.insert(order, train.CheckpointSaverHook(str(folder), save_steps=10**6))
    model.fit(
        X, Y, batch_size=8, shuffle=False, verbose=0, initial_epoch=first,
        epochs=epochs, callbacks=hb.as_callbacks(guests),
    )  # fmt: skip
    assert int(np.asarray(model.optimizer.iterations)) % STEPS == 0
    return [stopping, count]


@pytest.mark.slow
@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_restart_goes_on_with_what_callbacks_counted(
    keras: Any, order: int, tmp_path: Path
) -> None:
    whole_stopping, whole = fit(keras, tmp_path / "whole", 0, 20, order=order)
    assert whole_stopping.stopped_epoch == 3  # the first epoch and three of patience
    _, first = fit(keras, tmp_path / "parts", 0, 2, order=order)
    assert first.batches == 2 * STEPS
    stopping, count = fit(keras, tmp_path / "parts", 2, 20, order=order)
    assert stopping.stopped_epoch == whole_stopping.stopped_epoch
    assert stopping.best == pytest.approx(whole_stopping.best)
    assert count.batches == whole.batches == 4 * STEPS
    assert count.losses == pytest.approx(whole.losses)


def test_a_checkpoint_in_mid_epoch_has_the_state_of_its_step(
    keras: Any, tmp_path: Path
) -> None:
    count = counting(keras)
    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=3)
    built(keras).fit(
        X, Y, batch_size=8, verbose=0, callbacks=hb.as_callbacks([saver, count])
    )
    found = {}
    for step in (3, 4):
        path = tmp_path / f"model.ckpt-{step}.hookbridge.json"
        (entry,) = json.loads(path.read_text())["callbacks"]
        found[step] = entry["state"]["batches"]
    assert found == {3: 3, 4: 4}
    assert saver._listeners == []  # the hook is as it was


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("ends", ["by epochs", "by a stop", "by an error"])
def test_a_fit_that_ends_at_a_checkpoint_has_all_its_events(
    keras: Any, ends: str, order: int, tmp_path: Path
) -> None:
    class Ending(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if ends == "by a stop":
                self.model.stop_training = True

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch and ends == "by an error":
                raise ValueError("mine")

    count, epochs = counting(keras), 1 if ends == "by epochs" else 2
    guests: list[Any] = [count]
    guests.insert(order, train.CheckpointSaverHook(str(tmp_path), save_steps=STEPS))
    callbacks = hb.as_callbacks([*guests, Ending()])
    with contextlib.suppress(ValueError):
        built(keras).fit(
            X, Y, batch_size=8, epochs=epochs, verbose=0, callbacks=callbacks
        )
    path = tmp_path / f"model.ckpt-{STEPS}.hookbridge.json"
    entry, *_ = json.loads(path.read_text())["callbacks"]
    assert entry["state"]["batches"] == STEPS
    assert len(entry["state"]["losses"]) == 1


def states_in(folder: Path, step: int) -> dict[str, Any]:
    """`{state_key: state}` beside a checkpoint."""
    path = folder / f"model.ckpt-{step}.hookbridge.json"
    callbacks = json.loads(path.read_text())["callbacks"]
    return {each["key"]: each["state"] for each in callbacks}


def counting_ends(keras: Any, key: str) -> Any:
    """Counts batches, and ends of training as a batch more."""
    count = counting(keras)
    count.state_key = key

    def on_train_end(logs: Any = None) -> None:
        count.batches += 1

    count.on_train_end = on_train_end
    return count


@pytest.mark.parametrize("order", [0, 2])
def test_all_lists_of_a_fit_have_one_state_with_their_last_events(
    keras: Any, order: int, tmp_path: Path
) -> None:
    def run(epochs: int) -> list[Any]:
        model = built(keras)
        if tf.train.latest_checkpoint(str(tmp_path)):
            hb.checkpoints.restore(model, str(tmp_path))
        counts = [counting_ends(keras, key) for key in ("one", "two")]
        lists = [hb.as_callbacks([each]) for each in counts]
        saver = train.CheckpointSaverHook(str(tmp_path), save_steps=STEPS)
        lists.insert(order, hb.as_callbacks(saver))
        fit = {"batch_size": 8, "epochs": epochs, "verbose": 0}
        model.fit(X, Y, callbacks=[each for part in lists for each in part], **fit)
        return counts

    run(1)
    found = states_in(tmp_path, STEPS)
    assert {key: state["batches"] for key, state in found.items()} == {
        "one": STEPS + 1,
        "two": STEPS + 1,
    }
    assert [each.batches for each in run(1)] == [2 * STEPS + 2] * 2


@pytest.mark.parametrize(
    ("event", "order"),
    [("on_train_batch_end", 0), ("on_train_batch_end", 3), ("on_epoch_end", 1)],
)
def test_an_error_between_two_lists_loses_no_event_before_it(
    keras: Any, event: str, order: int, tmp_path: Path
) -> None:
    class Fails(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        pass

    def fail(self: Any, index: int, logs: Any = None) -> None:
        if index == {"on_train_batch_end": STEPS - 1, "on_epoch_end": 0}[event]:
            raise ZeroDivisionError

    setattr(Fails, event, fail)
    first, second = (counting_ends(keras, key) for key in ("one", "two"))
    lists = [hb.as_callbacks([first]), [Fails()], hb.as_callbacks([second])]
    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=STEPS)
    lists.insert(order, hb.as_callbacks(saver))
    callbacks = [each for part in lists for each in part]
    with pytest.raises(ZeroDivisionError):
        built(keras).fit(X, Y, batch_size=8, verbose=0, callbacks=callbacks)
    found = states_in(tmp_path, STEPS)
    assert found["one"]["batches"] == first.batches == STEPS
    assert found["two"].get("batches") == second.batches
    assert second.batches == STEPS - (event == "on_train_batch_end")


def test_a_second_fit_begins_anew_as_without_hooks(keras: Any, tmp_path: Path) -> None:
    model, count = built(keras), counting(keras)
    guests = hb.as_callbacks(
        [
            train.CheckpointSaverHook(str(tmp_path), save_steps=2),
            keras.callbacks.EarlyStopping("loss", patience=3, min_delta=1e-4),
            count,
        ]
    )
    arguments: dict[str, Any] = {"batch_size": 8, "verbose": 0, "callbacks": guests}
    model.fit(X, Y, epochs=3, **arguments)
    history = model.fit(X, Y, epochs=3, **arguments).history
    assert len(history["loss"]) == 3  # patience began anew
    assert count.batches == 6 * STEPS


def test_another_directory_s_checkpoint_has_no_say(keras: Any, tmp_path: Path) -> None:
    fit(keras, tmp_path / "one", 0, 2, order=0)
    model, count = built(keras), counting(keras)
    hb.checkpoints.restore(model, str(tmp_path / "one"))
    saver = train.CheckpointSaverHook(str(tmp_path / "other"), save_steps=10**6)
    model.fit(X, Y, batch_size=8, verbose=0, callbacks=hb.as_callbacks([saver, count]))
    assert count.batches == STEPS


@pytest.mark.parametrize("order", [0, 1])
def test_no_checkpoint_is_without_state(keras: Any, order: int, tmp_path: Path) -> None:
    class Killed(train.CheckpointSaverListener):  # type: ignore[misc]
        """Ends the run as soon as the checkpoint of step 8 is there."""

        def after_save(self, session: Any, global_step_value: int) -> None:
            if global_step_value == 8:
                raise KeyboardInterrupt

    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=1, listeners=[Killed()])
    count = counting(keras)
    guests = [count, saver] if order else [saver, count]
    with pytest.raises(KeyboardInterrupt):
        built(keras).fit(
            X, Y, batch_size=8, shuffle=False, verbose=0, epochs=EPOCHS,
            callbacks=hb.as_callbacks(guests),
        )  # fmt: skip
    newest = tf.train.latest_checkpoint(str(tmp_path))
    assert newest is not None and newest.endswith("-8")
    files = list(tmp_path.glob("model.ckpt-8.hookbridge*.json"))
    found = [json.loads(file.read_text())["callbacks"] for file in files]
    (entry,) = [callback["state"] for callbacks in found for callback in callbacks]
    assert entry["batches"] in (7, 8)

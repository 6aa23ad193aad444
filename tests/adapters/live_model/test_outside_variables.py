"""A warning names guests that hold an eager model: no session trains it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import session_loop

WARNING = "has not changed up to step"


def _own_model(keras: Any) -> Any:
    return keras.Sequential(
        [keras.layers.Input((2,)), keras.layers.Dense(1, name="dense")]
    )


def _holding(keras: Any, held: Any) -> Any:
    class Holds(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.held = held

    return Holds()


def _manager(keras: Any, folder: Path) -> Any:
    checkpoint = tf.train.Checkpoint(model=_own_model(keras))
    return _holding(keras, tf.train.CheckpointManager(checkpoint, str(folder), 3))


def _closure(keras: Any, folder: Path) -> Any:
    checkpoint = tf.train.Checkpoint(model=_own_model(keras))
    return keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: checkpoint.save(str(folder / "own"))
    )


def _iterations(keras: Any, folder: Path) -> Any:
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build([])
    return _holding(keras, {"step": optimizer.iterations})


def _count(keras: Any, folder: Path) -> Any:
    """Saves a count of a model of another shape, as the trainers of TF Models do."""
    count = tf.Variable(0, dtype=tf.int64, name="examples")
    checkpoint = tf.train.Checkpoint(count=count)
    manager = tf.train.CheckpointManager(checkpoint, str(folder), 3, step_counter=count)

    class SimpleCheckpoint(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.checkpoint_manager = manager

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.checkpoint_manager.save(checkpoint_number=count.numpy())

    return SimpleCheckpoint()


UNTRAINED: dict[str, Callable[[Any, Path], Any]] = {
    "model": lambda keras, folder: _holding(keras, _own_model(keras)),
    "manager": _manager,
    "closure": _closure,
    "iterations": _iterations,
    "count": _count,
}


@pytest.mark.parametrize("name", UNTRAINED)
def test_untrained(
    keras: Any, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guest = UNTRAINED[name](keras, tmp_path)
    session_loop([guest], epochs=2)
    assert caplog.text.count(WARNING) == 1
    assert f"`{type(guest).__name__}` holds the eager variable" in caplog.text


def _of_the_session(keras: Any) -> Any:
    class Saves(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.checkpoint = tf.train.Checkpoint(model=self.model)
            self.kept = [*self.model.weights, self.model.optimizer.iterations]

    return Saves()


def _follows(keras: Any) -> Any:
    own = _own_model(keras)

    class Follows(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        own_model = own

        def __init__(self) -> None:
            super().__init__()
            self.target = own

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.target.set_weights(self.model.get_weights())

    return Follows()


def _counts_itself(keras: Any) -> Any:
    """A checkpoint of what the callback counts itself is right."""

    class Counts(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.epochs = tf.Variable(0, name="epochs")
            self.checkpoint = tf.train.Checkpoint(epochs=self.epochs)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.epochs.assign_add(1)

    return Counts()


@pytest.mark.parametrize(
    "make",
    [
        _of_the_session,
        _follows,
        _counts_itself,
        lambda keras: _holding(keras, tf.Variable(1.0, name="threshold")),
        lambda keras: keras.callbacks.EarlyStopping("loss", restore_best_weights=True),
    ],
    ids=["of the session", "follows", "counts itself", "another variable", "stock"],
)
def test_what_follows_the_session_or_is_no_model_is_not_told_of(
    keras: Any, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    session_loop([make(keras)], epochs=2)
    assert WARNING not in caplog.text

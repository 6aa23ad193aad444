"""What a `Scaffold` does to a session, under `fit` as in a `MonitoredSession`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from hook_fetching import X, Y, sequential

from hookbridge.adapters.hook_to_callback import HookToCallback

ONE_KERAS = True


v1: Any = tf.compat.v1
train: Any = v1.train


class Hook(train.CheckpointSaverHook):  # type: ignore[misc]
    """The stock hook; fills its scaffold with ops in `begin`, and may fail once."""

    def __init__(
        self,
        directory: Path,
        fill: Callable[[Hook], dict[str, Any]],
        error: Exception | None = None,
    ) -> None:
        self.called: list[str] = []
        self.fill, self.error = fill, error
        super().__init__(str(directory), save_steps=4, scaffold=train.Scaffold())

    def begin(self) -> None:
        initial = self.placeholder = v1.placeholder(tf.float32, [], name="initial")
        self.variable = v1.get_variable("mine", initializer=initial)
        self._scaffold.__init__(**self.fill(self))
        super().begin()

    def init_fn(self, scaffold: Any, session: Any) -> None:
        assert scaffold is self._scaffold
        self.called.append(f"init_fn {session.run(self.variable)}")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.called.append(f"session {session.run(self.variable)}")
        super().after_create_session(session, coord)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        super().after_run(run_context, run_values)
        if self.error is not None:
            error, self.error = self.error, None
            raise error


def feed(hook: Hook) -> dict[Any, float]:
    return {hook.placeholder: 2.0}


def filled(hook: Hook) -> dict[str, Any]:
    return {
        "init_feed_dict": feed(hook),
        "init_fn": hook.init_fn,
        "local_init_op": v1.assign_add(hook.variable, 1.0).op,
        "ready_op": v1.report_uninitialized_variables([hook.variable]),
    }


def fit(keras: Any, hook: Hook) -> None:
    sequential(keras).fit(
        X, Y, batch_size=8, verbose=0, callbacks=[HookToCallback(hook)]
    )


def in_session(hook: Hook) -> None:
    with tf.Graph().as_default():
        move = v1.assign_add(train.get_or_create_global_step(), 1)
        creator = train.ChiefSessionCreator(hook._scaffold)
        with train.MonitoredSession(creator, hooks=[hook]) as session:
            session.run(move)


def test_a_scaffold_prepares_the_session(keras: Any, tmp_path: Path) -> None:
    native, hook = Hook(tmp_path / "native", filled), Hook(tmp_path / "fit", filled)
    in_session(native)
    fit(keras, hook)
    assert hook.called == native.called == ["init_fn 2.0", "session 3.0"]


def test_init_fn_is_not_for_a_recovered_session(keras: Any, tmp_path: Path) -> None:
    """`init_fn` may load weights, but by then the model has better ones."""
    lost = tf.errors.AbortedError(None, None, "lost")
    hook = Hook(tmp_path, filled, lost)
    fit(keras, hook)
    assert hook.called == ["init_fn 2.0", "session 3.0", "session 3.0"]


def test_a_model_that_is_not_ready_is_an_error(keras: Any, tmp_path: Path) -> None:
    def never(hook: Hook) -> dict[str, Any]:
        return {"init_feed_dict": feed(hook), "ready_op": tf.constant([b"mine"])}

    for run in (in_session, lambda hook: fit(keras, hook)):
        with pytest.raises(RuntimeError, match=r"(?s)not make model ready.*mine"):
            run(Hook(tmp_path, never))

"""Guests as users write them: they stop, fail, or change the run at one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

v1: Any = tf.compat.v1
train: Any = v1.train


def acting(keras: Any, event: str, count: int, action: str) -> Any:
    """A callback that acts at the `count`-th call of an event, and counts the calls."""

    class Acting(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

    def act(self: Any, *args: Any) -> None:
        self.calls += 1
        if self.calls != count:
            return
        if action == "stop":
            self.model.stop_training = True
        elif action == "rate":
            self.model.optimizer.learning_rate = 0.01
        elif action == "weights":
            self.model.set_weights([0.5 * w for w in self.model.get_weights()])
        else:
            raise ValueError(f"{event}, call {count}")

    setattr(Acting, event, lambda self, *args, **_: act(self, *args))
    return Acting()


def ending(event: str, count: int, action: str) -> Any:
    """A hook that ends the run in the `count`-th call of an event."""
    failures: dict[str, Exception] = {
        "StopIteration": StopIteration(),
        "OutOfRange": tf.errors.OutOfRangeError(None, None, "over"),
        "ValueError": ValueError(f"{event}, call {count}"),
    }

    class Ending(train.SessionRunHook):  # type: ignore[misc]
        def __init__(self) -> None:
            self.calls = 0

    def act(self: Any, run_context: Any, *args: Any) -> None:
        self.calls += 1
        if self.calls == count:
            if action == "request_stop":
                run_context.request_stop()
            else:
                raise failures[action]

    setattr(Ending, event, act)
    return Ending()


def summaries(directory: str, every_steps: int) -> Callable[[], Any]:
    """Makes a `SummarySaverHook` of the loss, for `hb.in_begin`."""

    def make() -> Any:
        loss = v1.get_default_graph().get_tensor_by_name("loss:0")
        return train.SummarySaverHook(
            save_steps=every_steps,
            output_dir=directory,
            summary_op=v1.summary.scalar("seen_loss", loss),
        )

    return make

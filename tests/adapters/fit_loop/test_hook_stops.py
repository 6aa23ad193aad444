"""A hook's stop in `evaluate` and `predict` ends that loop, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, sequential

from hookbridge.adapters.hook_to_callback import HookToCallback

train: Any = tf.compat.v1.train

LOOPS = pytest.mark.parametrize("loop", ["evaluate", "predict"])
ROWS = 8  # per batch


class Stop(train.SessionRunHook):  # type: ignore[misc]
    """Asks for a stop in its second run."""

    def __init__(self, event: str, error: type[Exception] | None = None) -> None:
        self.event, self.error, self.runs = event, error, 0

    def _stop(self, run_context: Any, event: str) -> None:
        if self.runs == 2 and event == self.event:
            if self.error is not None:
                raise self.error("a hook")
            run_context.request_stop()

    def before_run(self, run_context: Any) -> None:
        self.runs += 1
        self._stop(run_context, "before_run")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._stop(run_context, "after_run")


def run(model: Any, loop: str, hooks: list[Any], *, known: bool = True) -> Any:
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(ROWS)
    if not known:
        data = data.filter(lambda *_: True)
    callbacks = [HookToCallback(hook) for hook in hooks]
    return getattr(model, loop)(data, verbose=0, callbacks=callbacks)


def check_rows(model: Any, loop: str, found: Any, rows: int) -> None:
    data = (X[:rows], Y[:rows]) if loop == "evaluate" else (X[:rows],)
    expected = getattr(model, loop)(*data, batch_size=ROWS, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@LOOPS
@pytest.mark.parametrize(
    ("event", "error", "known", "steps"),
    [
        ("before_run", None, True, 2),
        ("after_run", None, True, 2),
        ("after_run", None, False, 2),
        ("after_run", StopIteration, True, 2),
        ("before_run", StopIteration, True, 1),
    ],
)
def test_a_stop_ends_the_loop(
    keras: Any,
    loop: str,
    event: str,
    error: type[Exception] | None,
    known: bool,
    steps: int,
) -> None:
    model, fetch = sequential(keras), Fetch("hidden/Relu:0")
    found = run(model, loop, [fetch, Stop(event, error)], known=known)
    assert fetch.ended
    check_rows(model, loop, found, steps * ROWS)
    # The stop reaches neither this model's next loops nor a `fit`.
    check_rows(model, loop, run(model, loop, [], known=known), len(X))
    assert not model.stop_training

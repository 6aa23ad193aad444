"""How `fit`, `evaluate` and `predict` of a model in a v1 graph end with hooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from graph_recorder import Recorder, X, Y, lifecycle, make_model

import hookbridge as hb

v1 = tf.compat.v1


def test_an_error_ends_the_run_without_end(keras2: Any) -> None:
    class Fails(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            raise ValueError("from a hook")

    model, recorder = make_model(keras2), Recorder()
    with pytest.raises(ValueError, match="from a hook"):
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks([recorder, Fails()]))
    assert recorder.calls == lifecycle(1)[:-1]
    model.fit(X, Y, verbose=0)
    assert recorder.calls == lifecycle(1)[:-1]


@pytest.mark.parametrize("kind", ["arrays", "dataset", "generator"])
def test_a_stopped_loop_returns_what_it_has_seen(keras2: Any, kind: str) -> None:
    class StopsAfter(Recorder):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(run_context, run_values)
            if len(self.results) == 3:
                run_context.request_stop()

    def batches() -> Any:
        while True:
            for begin in range(0, 320, 32):
                yield X[begin : begin + 32], Y[begin : begin + 32]

    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(32)

    def given(steps: str) -> dict[str, Any]:
        if kind == "generator":
            return {"x": batches(), steps: 10}
        return {"x": X, "y": Y} if kind == "arrays" else {"x": dataset}

    model = make_model(keras2)
    expected = model.evaluate(X[:96], Y[:96], verbose=0)
    hook = StopsAfter("loss:0")
    result = model.evaluate(
        **given("steps"), verbose=0, callbacks=hb.as_callbacks(hook)
    )
    assert result == pytest.approx(expected, rel=1e-5)
    assert hook.calls == lifecycle(3)
    hook = StopsAfter()
    data = {key: value for key, value in given("steps").items() if key != "y"}
    result = model.predict(**data, callbacks=hb.as_callbacks(hook))
    np.testing.assert_allclose(result, model.predict(X[:96]), rtol=1e-5)
    hook, data = StopsAfter("loss:0"), given("steps_per_epoch")
    history = model.fit(**data, verbose=0, callbacks=hb.as_callbacks(hook))
    assert history.history["loss"][0] == pytest.approx(np.mean(hook.results), rel=1e-5)


@pytest.mark.parametrize("where", ["before_run", "after_run"])
@pytest.mark.parametrize("error", [StopIteration, tf.errors.OutOfRangeError])
def test_errors_that_stop_a_session_loop_stop_fit(
    keras2: Any, where: str, error: Any
) -> None:
    class Raises(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
        def raise_in_third(self, *args: Any) -> None:
            self.runs = getattr(self, "runs", 0) + 1
            if self.runs == 3:
                raise error() if error is StopIteration else error(None, None, "")

    hook, recorder = Raises(), Recorder()
    setattr(hook, where, hook.raise_in_third)
    model = make_model(keras2)
    history = model.fit(
        X, Y, epochs=3, verbose=0, callbacks=hb.as_callbacks([recorder, hook])
    )
    runs = 3 if where == "after_run" else 2
    calls = lifecycle(runs)[:-1]
    assert recorder.calls == [*calls, *["before_run"] * (3 - runs), "end"]
    assert len(history.epoch) == 1
    assert recorder.steps[-1] == runs


def test_a_lost_session_is_recovered(keras2: Any) -> None:
    class Loses(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
        runs = 0

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.runs += 1
            if self.runs == 3:
                raise tf.errors.AbortedError(None, None, "lost")

    recorder = Recorder()
    model = make_model(keras2)
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks([recorder, Loses()]))
    run = ["before_run", "after_run"]
    assert recorder.calls == [
        "begin",
        "after_create_session",
        *run * 3,
        "after_create_session",
        *run * 8,
        "end",
    ]

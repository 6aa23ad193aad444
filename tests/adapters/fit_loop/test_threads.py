"""Loops of other threads beside a `fit` with hooks: they go on beside each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from hook_fetching import Fetch, X, Y, run_loop, sequential

import hookbridge as hb
from hookbridge import errors

BATCHES = len(X) // 8
Body = Callable[[Any], Any]

BODIES: dict[str, Body] = {
    "predict": lambda model: model.predict(X, verbose=0),
    "evaluate": lambda model: model.evaluate(X, Y, verbose=0),
    "test_on_batch": lambda model: model.test_on_batch(X, Y),
    "predict_on_batch": lambda model: model.predict_on_batch(X),
    "another fit": lambda model: another_fit(model),
}


def another_fit(model: Any) -> None:
    """A training of another model with hooks of its own."""
    keras, hook = model.keras_of_test, Fetch("loss:0")
    run_loop(sequential(keras), hook, epochs=1)
    assert hook.steps == list(range(BATCHES)) and hook.ended


def threaded(keras: Any, event: str, body: Body, *, joined: bool) -> Any:
    """A callback that calls `body` in a thread, and waits for it at once or later."""
    pool = ThreadPoolExecutor(1)
    waiting: list[Any] = []

    def call(self: Any, *_: Any, **__: Any) -> None:
        waiting.append(pool.submit(body, self.model))
        if joined:
            waiting.pop().result()

    def finish(self: Any, *_: Any) -> None:
        while waiting:
            waiting.pop().result()

    return callback_of(keras, **{event: call}, on_train_end=finish)


def fitted(keras: Any, weights: Any, *guests: Any) -> Any:
    model = sequential(keras)
    model.keras_of_test = keras
    model.set_weights(weights)
    run_loop(model, *guests, epochs=2)
    return model.get_weights()


CASES = [
    (name, event, joined)
    for name in BODIES
    for event in ("on_train_begin", "on_epoch_end", "on_train_batch_end")
    for joined in (True, False)
]
SAMPLE = (
    ("predict", "on_train_begin", True),
    ("evaluate", "on_epoch_end", True),
    ("another fit", "on_epoch_end", False),
)


@pytest.mark.parametrize(
    ("name", "event", "joined"),
    [
        case if case in SAMPLE else pytest.param(*case, marks=pytest.mark.exhaustive)
        for case in CASES
    ],
)
def test_a_loop_in_a_thread(name: str, event: str, joined: bool, keras: Any) -> None:
    weights = sequential(keras).get_weights()
    native = fitted(keras, weights)
    hook = Fetch("loss:0")
    callback = threaded(keras, event, BODIES[name], joined=joined)
    values = fitted(keras, weights, hook, callback)
    assert hook.steps == list(range(2 * BATCHES)) and hook.ended
    for ours, theirs in zip(values, native, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_a_sidecar_evaluator_in_a_thread(keras2: Any, tmp_path: Path) -> None:
    """It evaluates checkpoints with a model and hooks of its own."""
    weights, seen = sequential(keras2).get_weights(), Fetch("loss:0")

    def evaluate(model: Any) -> None:
        own = sequential(keras2)
        checkpoint = tf.train.Checkpoint(model=own, optimizer=own.optimizer)
        checkpoint.save(str(tmp_path / "ckpt"))
        sidecar = keras2.utils.SidecarEvaluator(
            own,
            tf.data.Dataset.from_tensor_slices((X, Y)).batch(8),
            str(tmp_path),
            max_evaluations=1,
            callbacks=hb.as_callbacks([seen]),
        )
        sidecar.start()

    native = fitted(keras2, weights)
    hook = Fetch("loss:0")
    callback = threaded(keras2, "on_epoch_begin", evaluate, joined=False)
    values = fitted(keras2, weights, hook, callback)
    assert hook.steps == list(range(2 * BATCHES)) and hook.ended
    assert len(seen.steps) == BATCHES and seen.ended
    for ours, theirs in zip(values, native, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


REFUSED: dict[str, tuple[Body, str]] = {
    "train_on_batch": (lambda model: model.train_on_batch(X, Y), "would replace"),
    "fit": (lambda model: model.fit(X, Y, verbose=0), "would replace"),
    "hooks in evaluate": (
        lambda model: run_loop(model, Fetch("loss:0"), loop="evaluate"),
        "A thread started a loop",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_go_on_beside_it_is_refused(name: str, keras: Any) -> None:
    body, words = REFUSED[name]
    hook = Fetch("loss:0")
    callback = threaded(keras, "on_epoch_end", body, joined=True)
    with pytest.raises(errors.RefusedError, match=words):
        run_loop(sequential(keras), hook, callback)
    assert hook.steps == list(range(BATCHES)) and not hook.ended


def test_a_fit_that_failed_in_a_thread_is_over(keras: Any) -> None:
    """Nobody ends such a run; the next loop of any thread finds it."""

    def fail(self: Any, *_: Any) -> None:
        raise ZeroDivisionError

    model, hook = sequential(keras), Fetch("loss:0")
    broken = callback_of(keras, on_epoch_end=fail)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ZeroDivisionError):
            pool.submit(run_loop, model, hook, broken).result()
    model.fit(X, Y, verbose=0)
    assert len(hook.steps) == BATCHES
    run_loop(model, hook)
    assert len(hook.steps) == BATCHES and hook.ended

"""Loops of another thread beside a `fit` with hooks in a v1 graph."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from graph_recorder import Recorder, X, Y, make_model

import hookbridge as hb

pytestmark = pytest.mark.v1_mode("disable_v2_behavior")
v1 = tf.compat.v1
EPOCHS, BATCHES = 2, 10


def another_fit(model: Any) -> None:
    """Train a model of another graph, with hooks of its own."""
    with tf.Graph().as_default(), v1.Session().as_default():
        hook = Recorder("loss:0")
        another = make_model(model.keras_of_test)
        another.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
        assert len(hook.results) == BATCHES


BODIES: dict[str, Callable[[Any], Any]] = {
    "predict": lambda model: model.predict(X),
    "evaluate": lambda model: model.evaluate(X, Y, verbose=0),
    "another fit": another_fit,
}

SAMPLE = (("predict", "on_epoch_end"), ("another fit", "on_train_begin"))


def fit(keras: Any, weights: Any, event: str, body: Any, *guests: Any) -> Any:
    """Fit with a thread that runs `body` at an event; return the weights."""
    model, errors = make_model(keras), []
    model.keras_of_test = keras
    model.set_weights(weights)

    def call(self: Any, *_: Any) -> None:
        backend = importlib.import_module(f"{keras.__name__}.src.backend")
        graph, session = v1.get_default_graph(), backend.get_session()

        def run() -> None:
            try:
                with graph.as_default(), session.as_default():
                    body(self.model)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    guests = (*guests, callback_of(keras, **{event: call}))
    model.fit(
        *(X, Y),
        epochs=EPOCHS,
        shuffle=False,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )
    assert errors == []
    return model.get_weights()


@pytest.mark.parametrize(
    ("name", "event"),
    [
        *SAMPLE,
        *(
            pytest.param(name, event, marks=pytest.mark.exhaustive)
            for name in BODIES
            for event in ("on_train_begin", "on_epoch_end", "on_train_batch_end")
            if (name, event) not in SAMPLE
        ),
    ],
)
def test_a_loop_in_a_thread(name: str, event: str, keras2: Any) -> None:
    weights = make_model(keras2).get_weights()
    native = fit(keras2, weights, "on_train_begin", lambda model: None)
    hook = Recorder("loss:0")
    values = fit(keras2, weights, event, BODIES[name], hook)
    assert len(hook.results) == EPOCHS * BATCHES
    assert hook.calls[-1] == "end"
    for ours, theirs in zip(values, native, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)

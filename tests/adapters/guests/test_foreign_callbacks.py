"""Keras 3 callbacks in a `fit` of Keras 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_loops
import numpy as np
import pytest
from callback_recorder import noting
from hook_fetching import run_loop

import hookbridge as hb
from hookbridge import errors

EVENTS = [f"batch {i}" for i in range(hook_loops.BATCHES)] + ["epoch 0"]


def fit(model: Any, callbacks: list[Any], **options: Any) -> None:
    run_loop(model, *callbacks, data=(hook_loops.X, hook_loops.Y), **options)


def test_it_gets_its_events_with_numbers(keras2: Any, keras3: Any) -> None:
    seen: list[Any] = []

    def note(self: Any, event: str, number: int, logs: Any) -> None:
        assert isinstance(logs["loss"], float)
        seen.append(f"{event.split('_')[-2]} {number}")
        self.weights = self.model.get_weights()

    guest = noting(keras3, note, ("on_train_batch_end", "on_epoch_end"))
    model = hook_loops.keras_model(keras2)
    (once,) = hb.as_callbacks([guest])
    assert hb.as_callbacks([once])[0] is once
    assert hb.explain(guest, host="fit").guests[0].verdict == "wrapped"
    assert isinstance(once, keras3.callbacks.Callback)
    fit(model, [once])
    assert seen == EVENTS and guest.model is model
    np.testing.assert_equal(guest.weights, model.get_weights())
    seen.clear()  # in a `fit` of Keras 3 nothing changes
    fit(hook_loops.keras_model(keras3), hb.as_callbacks([guest]))
    assert seen == EVENTS


def test_stock_callbacks_do_their_work(
    keras2: Any, keras3: Any, tmp_path: Path
) -> None:
    callbacks = keras3.callbacks
    model = hook_loops.keras_model(keras2)
    weights = tmp_path / "m.weights.h5"
    guests = [
        callbacks.EarlyStopping(monitor="loss", patience=0, min_delta=100.0),
        callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
        callbacks.ModelCheckpoint(str(weights), save_weights_only=True),
        callbacks.CSVLogger(str(tmp_path / "log.csv")),
    ]
    before = float(model.optimizer.learning_rate)
    fit(model, hb.as_callbacks(guests), epochs=4)
    assert guests[0].stopped_epoch == 1
    assert float(model.optimizer.learning_rate) == pytest.approx(before / 4)
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3
    assert weights.exists()


def test_what_needs_a_keras_3_optimizer_is_refused(keras2: Any, keras3: Any) -> None:
    callbacks = hb.as_callbacks([keras3.callbacks.SwapEMAWeights()])
    with pytest.raises(errors.RefusedError, match=r"SwapEMAWeights.*use_ema"):
        fit(hook_loops.keras_model(keras2), callbacks)

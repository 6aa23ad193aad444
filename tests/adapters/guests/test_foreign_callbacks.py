"""Keras 3 callbacks in a `fit` of Keras 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_hosts as hosts
import numpy as np
import pytest

import hookbridge as hb
from hookbridge import errors


def recorder(keras3: Any) -> Any:
    class Recorder(keras3.callbacks.Callback):  # type: ignore[misc,name-defined]
        """Notes events, and what it got with them."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []
            self.logs: list[Any] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.seen.append(f"batch {batch}")
            self.logs.append(logs["loss"])

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.seen.append(f"epoch {epoch}")
            self.weights = self.model.get_weights()

    return Recorder()


def fit(model: Any, callbacks: list[Any], **options: Any) -> None:
    model.fit(
        hosts.X,
        hosts.Y,
        batch_size=hosts.BATCH,
        verbose=0,
        callbacks=callbacks,
        **options,
    )


def test_it_gets_its_events_with_numbers(keras2: Any, keras3: Any) -> None:
    guest = recorder(keras3)
    model = hosts.keras_model(keras2)
    fit(model, hb.as_callbacks([guest]))
    assert guest.seen == [f"batch {i}" for i in range(hosts.BATCHES)] + ["epoch 0"]
    assert all(isinstance(loss, float) for loss in guest.logs)
    assert guest.model is model
    for ours, theirs in zip(guest.weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_stock_callbacks_do_their_work(
    keras2: Any, keras3: Any, tmp_path: Path
) -> None:
    callbacks = keras3.callbacks
    model = hosts.keras_model(keras2)
    guests = [
        callbacks.EarlyStopping(monitor="loss", patience=0, min_delta=100.0),
        callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
        callbacks.ModelCheckpoint(
            str(tmp_path / "m.weights.h5"), save_weights_only=True
        ),
        callbacks.CSVLogger(str(tmp_path / "log.csv")),
    ]
    before = float(model.optimizer.learning_rate)
    fit(model, hb.as_callbacks(guests), epochs=4)
    assert guests[0].stopped_epoch == 1
    assert float(model.optimizer.learning_rate) == pytest.approx(before / 4)
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3
    assert (tmp_path / "m.weights.h5").exists()


def test_in_a_fit_of_keras_3_nothing_changes(keras2: Any, keras3: Any) -> None:
    guest = recorder(keras3)
    fit(hosts.keras_model(keras3), hb.as_callbacks([guest]))
    assert guest.seen == [f"batch {i}" for i in range(hosts.BATCHES)] + ["epoch 0"]


def test_converting_twice_changes_nothing(keras2: Any, keras3: Any) -> None:
    (once,) = hb.as_callbacks([recorder(keras3)])
    assert hb.as_callbacks([once])[0] is once
    assert isinstance(once, keras3.callbacks.Callback)


def test_what_needs_a_keras_3_optimizer_is_refused(keras2: Any, keras3: Any) -> None:
    callbacks = hb.as_callbacks([keras3.callbacks.SwapEMAWeights()])
    with pytest.raises(errors.RefusedError, match=r"SwapEMAWeights.*use_ema"):
        fit(hosts.keras_model(keras2), callbacks)


def test_the_report_says_wrapped(keras2: Any, keras3: Any) -> None:
    (report,) = hb.explain(recorder(keras3), host="fit").guests
    assert report.verdict == "wrapped"
    (report,) = hb.explain(keras2.callbacks.History(), host="fit").guests
    assert report.verdict == "native"

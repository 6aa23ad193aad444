"""Entries of `logs` that a definition file's callback reads and that are not there."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from callback_loops import fit, session_loop

from hookbridge.jobs.training.definition_logs import add_definition_logs


def reader(seen: list[Any]) -> Any:
    class Reads(tf.keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append((logs.get("acuracy"), logs.get("loss"), logs.get("x", 1)))
            logs["added"] = float(epoch)

        def on_test_end(self, logs: Any = None) -> None:
            seen.append(logs["metrics"].get("auc"))

    callback = Reads()
    add_definition_logs(callback)
    return callback


@pytest.mark.parametrize("loop", ["fit", "session"])
def test_an_entry_that_is_not_there_is_named_once(
    subtests: pytest.Subtests, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    callback = reader(seen)
    run = fit(tf.keras, [callback]) if loop == "fit" else session_loop([callback])
    assert seen[1][0] is None and seen[1][1] == run.history["loss"][0]
    assert run.history["added"] == [0.0, 1.0, 2.0, 3.0]  # reaches later callbacks
    message = (
        '`Reads` reads logs["{}"] in `{}`, but this loop does not provide it there.'
    )
    for key, event in (("acuracy", "on_epoch_end"), ("auc", "on_test_end")):
        with subtests.test(str(key)):
            assert caplog.text.count(message.format(key, event)) == 1
    assert "It provides: loss, mae, val_loss, val_mae" in caplog.text
    assert 'logs["x"]' not in caplog.text and 'logs["loss"]' not in caplog.text

"""Every stock callback of every Keras: carried, or refused by name with a reason.

The table in `docs/callbacks-in-sessions.md` is what this file finds; see
`callback_support.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import callback_support as support
import pytest
import tensorflow as tf
from callback_loops import build, feeds, until_stop
from callback_recorder import callback_of
from hook_fetching import hook_of
from one_keras import one_keras

import hookbridge as hb
from hookbridge import errors


def test_no_class_is_unknown(keras: Any) -> None:
    found = support.stock_of(keras)
    assert [n for n in found if n not in support.STOCK] == []
    assert len(found) >= 12


@pytest.mark.slow
@pytest.mark.one_tensorflow
@one_keras
@pytest.mark.filterwarnings("ignore:Could not reach RemoteMonitor")
def test_documented_table_is_what_happens(keras: Any, tmp_path: Path) -> None:
    """Each callback runs in each loop, in some with all others; no cell is unknown."""
    outcomes = support.carry(keras, tmp_path)
    for name, cells in outcomes.items():
        assert tuple(cells) == support.LOOPS
        for loop, outcome in cells.items():
            refused = name in support.REFUSED
            assert (outcome != "carried") == refused, (name, loop, outcome)
            assert not refused or "Instead, " in outcome
        if name in support.REFUSED:
            callback = support.STOCK[name](keras.callbacks, tmp_path)
            with pytest.raises(errors.RefusedError, match=f"`{name}`"):
                hb.as_hooks(callback, steps_per_epoch=2)
    page = support.TABLE.read_text(encoding="utf-8")
    # The page shows the newest Keras 3; an older one has fewer callbacks.
    is_older = keras.__version__[0] == "3" and "OrbaxCheckpoint" not in outcomes
    table = support.table_of(keras, outcomes)
    assert is_older or table in page, f"{support.TABLE} needs this:\n{table}"


def test_mixed_flavours_in_one_loop(keras: Any, keras2: Any, tmp_path: Path) -> None:
    stop = keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=1)
    csv = keras2.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    plateau = keras2.callbacks.ReduceLROnPlateau("loss", min_delta=100.0, patience=0)
    rates: list[float] = []

    def note_rate(self: Any, epoch: int, logs: Any) -> None:
        rates.append(float(self.model.optimizer.learning_rate.numpy()))

    reads = callback_of(keras, on_epoch_begin=note_rate)
    hook_runs: list[Any] = []
    native = hook_of(after_run=lambda self, c, values: hook_runs.append(values))
    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks([stop, native, plateau, csv, reads], steps_per_epoch=2)
        assert hooks[1] is native
        until_stop(hooks, net.train_op, lambda step: feeds(net, 0))
    assert len(hook_runs) == 4
    assert rates == pytest.approx([0.1, 0.1])
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3

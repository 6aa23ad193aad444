"""State of callbacks across restarts."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, session_loop
from callback_recorder import callback_of
from state_runs import options, restored

from hookbridge.adapters.state import codec as state_codec

ONE_KERAS = True


def stopping(keras: Any) -> Any:
    return keras.callbacks.EarlyStopping(
        "loss", min_delta=100.0, patience=4, restore_best_weights=True
    )


def test_early_stopping_goes_on_counting(keras: Any, tmp_path: Path) -> None:
    """Its state is in readable files, which go with their checkpoints."""
    whole = session_loop([stopping(keras)], epochs=20, validate=False)
    session_loop([stopping(keras)], max_steps=7, **options(tmp_path))
    again = session_loop([stopping(keras)], **options(tmp_path))
    assert whole.steps == again.steps == 5 * STEPS
    # Its best weights are from before the restart.
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert again.history["loss"] == pytest.approx(whole.history["loss"], rel=1e-5)
    checkpoints = {p.name.removesuffix(".index") for p in tmp_path.glob("*.index")}
    suffix = ".hookbridge.json"
    states = {p.name.removesuffix(suffix) for p in tmp_path.glob(f"*{suffix}")}
    assert states == checkpoints
    assert len(states) == 5  # the saver removed the others
    document = json.loads((tmp_path / f"model.ckpt-12{suffix}").read_text())
    assert document["version"] == 3
    assert document["step"] == 12
    entry = document["callbacks"][0]
    assert entry["class"] == "EarlyStopping"
    assert entry["state"]["wait"] == 3
    (path,) = tmp_path.glob("model.ckpt-12.hookbridge-*.npz")
    arrays = np.load(path, allow_pickle=False)
    assert sorted(a.shape for a in arrays.values()) == [(1,), (2, 1)]


@pytest.mark.slow
def test_a_fed_learning_rate_survives(keras: Any, tmp_path: Path) -> None:
    """It is reduced as an epoch ends; the run is cut a step later.

    The rate is a constant in the graph: no checkpoint of variables has it.
    """

    def reduce() -> list[Any]:
        kind = keras.callbacks.ReduceLROnPlateau
        return [kind("loss", min_delta=100.0, patience=2, factor=0.5, min_lr=0.0)]

    more: dict[str, Any] = {**options(tmp_path), "epochs": 8}
    whole = session_loop(reduce(), epochs=8, validate=False)
    session_loop(reduce(), max_steps=4 * STEPS + 1, **more)
    again = session_loop(reduce(), **more)
    key = "lr" if "lr" in whole.history else "learning_rate"
    assert len(set(whole.history[key])) > 2
    assert again.history[key] == pytest.approx(whole.history[key])
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_users_callback(keras: Any, tmp_path: Path) -> None:
    """A list that others share is filled in place; a value keeps its own type."""

    def count(self: Any, epoch: int, logs: Any) -> None:
        self.epochs += 1
        self.seen[epoch] = (epoch, float("inf"))
        self.last = np.array([epoch, self.epochs])
        self.out.append(epoch)
        self.counter[str(epoch)] += 1
        self.lists[epoch].append(epoch)
        self.sums += 1.0

    for limit in (1, 2):
        out: list[int] = []
        guest = callback_of(keras, on_epoch_end=count)
        vars(guest).update(
            limit=limit,  # configuration: a new run may change it
            epochs=0,
            seen={},
            last=np.zeros(2),
            function=lambda: 1,  # cannot be stored and need not be
            out=out,
            counter=Counter(),
            lists=defaultdict(lambda: [0]),
            sums=np.zeros(1),
        )
        session_loop([guest], max_steps=2 * STEPS, **options(tmp_path, 100))
    assert (guest.limit, guest.epochs) == (2, 4)
    assert guest.seen == {e: (e, float("inf")) for e in range(4)}
    np.testing.assert_array_equal(guest.last, [3, 4])
    assert out == [0, 1, 2, 3]
    assert guest.counter == Counter("0123")
    assert guest.lists == {e: [0, e] for e in range(4)} and guest.lists["new"] == [0]
    assert guest.sums == 4.0


def damaged(version: int = 3, **parts: Any) -> str:
    state = parts.pop("state", None)
    entries = [] if state is None else [{"class": "EarlyStopping", "state": state}]
    loops = [parts.pop("loop", {})]
    return json.dumps(
        {"version": version, "step": 7, "callbacks": entries, "loops": loops}
    )


DAMAGE = {
    "not json": "{",
    "other version": damaged(version=99),
    "missing part": '{"version": 3, "step": 7}',
    "missing array": damaged(state={"best_weights": {"__array__": "zz"}}),
    "wrong kind": "[1, 2]",
    "list for a dict": damaged(state=[1, 2]),
    "text for a rate": damaged(loop={"learning_rates": {"Const:0": "fast"}}),
    "three for two": damaged(loop={"epoch_logs": {"loss": [1, 2, 3]}}),
    "epoch of the future": damaged(loop={"origin": [2, 8]}),
    "text for a number": damaged(state={"wait": "many", "best": {"a": 1}}),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_file_is_reported(kind: str, tmp_path: Path, absl_records: Any) -> None:
    stop = stopping(tf.keras)
    stop.on_train_begin()
    path = tmp_path / "model.ckpt-7.hookbridge.json"
    path.write_text(DAMAGE[kind])
    restored(stop, str(tmp_path / "model.ckpt-7"))
    assert absl_records(str(path)) and stop.wait == 0


def test_damaged_file_is_reported_and_training_goes_on(
    keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    session_loop([stopping(keras)], max_steps=7, **options(tmp_path, 100))
    path = tmp_path / "model.ckpt-7.hookbridge.json"
    assert path.exists()
    path.write_text(DAMAGE["not json"])
    run = session_loop([stopping(keras)], **options(tmp_path, 100))
    # The count starts anew at epoch 2.
    assert run.steps == 7 * STEPS
    assert absl_records(str(path))


@pytest.mark.parametrize("value", [{"__array__": 1}, [np.float32(1.5), np.int64(3)]])
def test_codec_round_trip(value: Any) -> None:
    """Of what tests/test_properties.py leaves out, and arrays of bfloat16 in a file."""
    half = np.array([1.5, -2.0], tf.bfloat16.as_numpy_dtype)
    arrays: dict[str, Any] = {}
    text = json.dumps(state_codec.encode([value, half], arrays))
    file = state_codec.to_bytes(arrays)
    read = state_codec.from_bytes(file)
    found, weights = state_codec.decode(json.loads(text), read)
    assert found == value and weights.dtype == half.dtype
    np.testing.assert_array_equal(weights, half)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        len,
        {1, 2},
        b"bytes",
        [lambda: 1],
        [defaultdict(lambda: 1)],
        1j,
        np.complex64(1j),
    ],
)
def test_codec_refuses_what_it_cannot_hold(value: Any) -> None:
    with pytest.raises(state_codec.NotStorableError):
        state_codec.encode(value, {})

"""State of callbacks across restarts, and roles in a cluster."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, build, feeds, interrupted, session_loop
from state_runs import state_of

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.session_state.loop_state import parse
from hookbridge.adapters.state import codec as state_codec


def stopping(keras: Any) -> Any:
    return keras.callbacks.EarlyStopping(
        "loss", min_delta=100.0, patience=4, restore_best_weights=True
    )


def test_early_stopping_goes_on_counting(keras: Any, tmp_path: Path) -> None:
    def make(k: Any) -> list[Any]:
        return [stopping(k)]

    whole = session_loop(make(keras), epochs=20, validate=False)
    again = interrupted(keras, make, tmp_path, 7, epochs=20, validate=False)
    assert whole.steps == again.steps == 5 * STEPS
    # Its best weights are from before the restart.
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert again.history["loss"] == pytest.approx(whole.history["loss"], rel=1e-5)


@pytest.mark.slow
def test_learning_rate_that_is_fed_survives(keras: Any, tmp_path: Path) -> None:
    """It is a constant in the graph, so no checkpoint of variables has it."""

    def make(k: Any) -> list[Any]:
        return [
            k.callbacks.ReduceLROnPlateau(
                "loss", min_delta=100.0, patience=2, factor=0.5, min_lr=0.0
            )
        ]

    whole = session_loop(make(keras), epochs=8)
    again = interrupted(keras, make, tmp_path, 4 * STEPS + 1, epochs=8)
    key = "lr" if "lr" in whole.history else "learning_rate"
    assert len(set(whole.history[key])) > 2
    assert again.history[key] == pytest.approx(whole.history[key])
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_users_callback(keras: Any, tmp_path: Path) -> None:
    class Counts(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self, limit: int) -> None:
            super().__init__()
            self.limit = limit  # configuration: a new run may change it
            self.batches = 0
            self.seen: dict[int, Any] = {}
            self.last = np.zeros(2)
            self.function = lambda: 1  # cannot be stored and need not be

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches += 1
            self.seen[self.batches] = (batch, float("inf"))
            self.last = np.array([batch, self.batches])

    options: dict[str, Any] = {
        "session_options": {"checkpoint_dir": str(tmp_path)},
        "validate": False,
        "epochs": 3,
    }
    session_loop([Counts(1)], max_steps=4, **options)
    second = Counts(2)
    session_loop([second], **options)
    assert second.limit == 2
    assert second.batches == 3 * STEPS
    assert list(second.seen) == list(range(1, 3 * STEPS + 1))
    assert second.seen[1] == (0, float("inf"))
    np.testing.assert_array_equal(second.last, [STEPS - 1, 3 * STEPS])


def test_file_is_readable_and_goes_with_its_checkpoint(
    keras: Any, tmp_path: Path
) -> None:
    interrupted(keras, lambda k: [stopping(k)], tmp_path, 7, epochs=4)
    checkpoints = {p.name.removesuffix(".index") for p in tmp_path.glob("*.index")}
    states = {
        p.name.removesuffix(".hookbridge.json")
        for p in tmp_path.glob("*.hookbridge.json")
    }
    assert states == checkpoints
    assert len(states) == 5  # the saver removed the others
    document = json.loads((tmp_path / "model.ckpt-12.hookbridge.json").read_text())
    assert document["version"] == 3
    assert document["step"] == 12
    entry = document["callbacks"][0]
    assert entry["class"] == "EarlyStopping"
    assert entry["state"]["wait"] == 3
    (path,) = tmp_path.glob("model.ckpt-12.hookbridge-*.npz")
    arrays = np.load(path, allow_pickle=False)
    assert sorted(a.shape for a in arrays.values()) == [(1,), (2, 1)]


DAMAGE = {
    "not json": "{",
    "other version": '{"version": 99, "step": 7, "callbacks": [], "loop": {}}',
    "missing part": '{"version": 1, "step": 7}',
    "missing array": (
        '{"version": 1, "step": 7, "loop": {}, "callbacks": [{"class": '
        '"EarlyStopping", "state": {"best_weights": {"__array__": "zz"}}}]}'
    ),
    "wrong kind": "[1, 2]",
    "list for a dict": (
        '{"version": 1, "step": 7, "loop": {}, "callbacks": [{"class": '
        '"EarlyStopping", "state": [1, 2]}]}'
    ),
    "text for a rate": (
        '{"version": 1, "step": 7, "callbacks": [], "loop": '
        '{"learning_rates": {"Const:0": "fast"}}}'
    ),
    "three for two": (
        '{"version": 1, "step": 7, "callbacks": [], "loop": '
        '{"epoch_logs": {"loss": [1, 2, 3]}}}'
    ),
    "epoch of the future": (
        '{"version": 1, "step": 7, "callbacks": [], "loop": {"origin": [2, 8]}}'
    ),
    "text for a number": (
        '{"version": 1, "step": 7, "loop": {}, "callbacks": [{"class": '
        '"EarlyStopping", "state": {"wait": "many", "best": {"a": 1}}}]}'
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_file_is_reported(kind: str, tmp_path: Path, said: Any) -> None:
    stop = stopping(tf.keras)
    stop.on_train_begin()
    state, prefix = state_of(stop), str(tmp_path / "model.ckpt-7")
    path = Path(f"{prefix}.hookbridge.json")
    path.write_text(DAMAGE[kind])
    found = state.read(prefix, parse)
    if found is not None:
        state.parts[0].restore(found)
    assert said(str(path)) and stop.wait == 0


def test_damaged_file_is_reported_and_training_goes_on(
    keras: Any, tmp_path: Path, said: Any
) -> None:
    options: dict[str, Any] = {
        "session_options": {"checkpoint_dir": str(tmp_path)},
        "validate": False,
        "epochs": 20,
    }
    session_loop([stopping(keras)], max_steps=7, **options)
    path = tmp_path / "model.ckpt-7.hookbridge.json"
    assert path.exists()
    path.write_text(DAMAGE["not json"])
    run = session_loop([stopping(keras)], **options)
    # The count starts anew at epoch 2.
    assert run.steps == 7 * STEPS
    assert said(str(path))


def test_attribute_that_became_a_property(keras: Any, tmp_path: Path) -> None:
    base: Any = keras.callbacks.Callback

    def counting() -> Any:
        class Counts(base):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.count, self.ends = 0, [0]

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                self.count += 1
                self.ends.append(epoch)

        return Counts()

    def with_property() -> Any:
        class Counts(base):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.ends = [0]

            @property
            def count(self) -> int:
                return len(self.ends)

        return Counts()

    options: dict[str, Any] = {
        "session_options": {"checkpoint_dir": str(tmp_path)},
        "validate": False,
        "epochs": 3,
    }
    session_loop([counting()], max_steps=4, **options)
    second = with_property()
    assert session_loop([second], **options).steps == 3 * STEPS
    assert second.ends == [0, 0]  # what fits is restored


def test_what_is_there_is_filled(keras: Any, tmp_path: Path) -> None:
    """A list that others share is filled in place; a value keeps its own type."""

    class Counts(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self, out: list[int]) -> None:
            super().__init__()
            self.out = out
            self.counter: Counter[str] = Counter()
            self.lists: Any = defaultdict(lambda: [0])
            self.sums = np.zeros(1)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.out.append(epoch)
            self.counter[str(epoch)] += 1
            self.lists[epoch].append(epoch)
            self.sums += 1.0

    for _ in range(2):
        out: list[int] = []
        counts = Counts(out)
        session_loop(
            [counts],
            max_steps=2 * STEPS,
            epochs=5,
            validate=False,
            session_options={"checkpoint_dir": str(tmp_path)},
        )
    assert out == [0, 1, 2, 3]
    assert counts.counter == Counter("0123")
    assert counts.lists == {e: [0, e] for e in range(4)}
    assert counts.lists["new"] == [0]
    assert counts.sums == 4.0


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        1.5,
        float("-inf"),
        "text",
        [1, [2, "x"]],
        (1, 2.0),
        {"a": {"b": [None]}},
        {1: "x", (2, 3): "y"},
        {"__array__": 1},
        np.arange(6.0).reshape(2, 3),
        [np.float32(1.5), np.int64(3)],
        Counter("aab"),
        {"a": OrderedDict([(2, 1), (1, 2)])},
        [defaultdict(list, {"__a": [1]}), defaultdict(None, {1: 2})],
        np.array([1.5, -2.0], tf.bfloat16.as_numpy_dtype),
        [np.array(1.5, tf.bfloat16.as_numpy_dtype)[()]],
    ],
)
def test_codec_round_trip(value: Any) -> None:
    arrays: dict[str, Any] = {}
    text = json.dumps(state_codec.encode(value, arrays))
    back = state_codec.decode(json.loads(text), arrays)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype
        np.testing.assert_array_equal(back, value)
    else:
        assert back == value
        assert type(back) is type(value)


@pytest.mark.parametrize(
    "value", [object(), len, {1, 2}, b"bytes", [lambda: 1], [defaultdict(lambda: 1)]]
)
def test_codec_refuses_what_it_cannot_hold(value: Any) -> None:
    with pytest.raises(state_codec.NotStorableError):
        state_codec.encode(value, {})


# --- roles ------------------------------------------------------------------------


def test_what_writes_runs_on_the_chief_only(
    keras: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    said: Any,
) -> None:
    c = keras.callbacks
    csv = [c.CSVLogger(str(tmp_path / f"{n}.csv")) for n in "ab"]
    hooks = hb.as_hooks(
        [csv[0], c.EarlyStopping("loss"), csv[1]], steps_per_epoch=STEPS
    )
    assert [h.role for h in hooks] == ["chief", "split", "chief"]
    hooks[2].role = "all"
    with pytest.raises(errors.InvalidArgumentError, match="'chief', 'worker'"):
        hooks[2].role = "some"
    cluster = {"worker": ["h:1", "h:2"], "ps": ["h:3"]}
    task = {"type": "worker", "index": 1}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    caplog.set_level("INFO", logger="absl")
    for _ in range(2):
        with tf.Graph().as_default():
            net = build()
            with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                for step in range(STEPS):
                    session.run(net.train_op, feeds(net, step))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.csv"]
    assert len({id(record) for record in said("has the role 'chief'")}) == 1

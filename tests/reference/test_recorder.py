"""What a recorder writes in each loop, and that the loop does not notice it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import ported_models
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from one_keras import one_keras

import hookbridge as hb
from hookbridge import errors
from hookbridge.reference.comparison import compare
from hookbridge.reference.recordings.recording_files import Recording

v1: Any = tf.compat.v1
X = np.random.RandomState(0).rand(48, 4).astype("float32")
Y = np.random.RandomState(1).rand(48, 1).astype("float32")


def same(one: Any, other: Any) -> bool:
    """Whether two lists of arrays are equal, bit by bit."""
    pairs = zip(one, other, strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@pytest.mark.parametrize("name", ported_models.SETTINGS)
def test_session_ends_bit_identical(name: str, tmp_path: Path) -> None:
    recorded = ported_models.train_in_session(name, tmp_path / "run", gradients="whole")
    assert same(recorded, ported_models.train_in_session(name, None))


def test_session_with_dropout_goes_on_bit_identical(tmp_path: Path) -> None:
    """Random operations draw on, also after the last recorded step."""

    def trained(guests: list[Any]) -> list[Any]:
        with tf.Graph().as_default():
            v1.set_random_seed(4)
            w = v1.get_variable("w", [4, 1])
            loss = tf.reduce_mean((tf.nn.dropout(X, 0.5) @ w - Y) ** 2)
            step = v1.train.get_or_create_global_step()
            train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
            with v1.train.MonitoredTrainingSession(hooks=hb.as_hooks(guests)) as s:
                for _ in range(9):
                    s.run(train_op)
                return [s.run(w)]

    assert same(trained([hb.recorder(tmp_path, steps=4)]), trained([]))
    (drawn,) = Recording(tmp_path).header["random_ops"]
    assert f"draws random numbers in its step: {drawn}" in str(
        hb.compare(tmp_path, tmp_path)
    )


def test_files_of_a_session(tmp_path: Path) -> None:
    """All parts of a recording, read without hookbridge."""
    ported_models.train_in_session("lstm", tmp_path, weights_every=8)
    header = json.loads((tmp_path / "recording.json").read_text())
    assert header["optimizer"] == [
        {"class": "MomentumOptimizer", "momentum": pytest.approx(0.9)}
    ]
    assert header["variables"]["global_step"]["kind"] == "counter"
    lines = [json.loads(x) for x in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, ported_models.STEPS + 1))
    first, batch = (
        np.load(tmp_path / "arrays" / "1.npz"),
        ported_models.batches("lstm")[0],
    )
    assert same([first["batch/x"], first["batch/y"]], [batch["x"], batch["y"]])
    initial = np.load(tmp_path / "arrays" / "0.npz")
    moved = first["variables/lstm/kernel"] - initial["variables/lstm/kernel"]
    norms = [lines[0][key]["lstm/kernel"] for key in ("change_norms", "applied_norms")]
    assert norms[0] == pytest.approx(float(np.linalg.norm(moved)))
    # The first update of a momentum is the rate times the clipped gradient.
    assert norms[0] == pytest.approx(0.01 * norms[1], rel=1e-4)
    raw = first["gradients/lstm/kernel"]
    assert float(np.linalg.norm(raw)) > norms[1]
    whole = [n for n in range(1, 21) if _has_variables(tmp_path, n)]
    assert whole == [1, 2, 3, 4, 5, 8, 16, 20]
    restored = tf.train.load_checkpoint(str(tmp_path / "checkpoint"))
    assert same(
        [restored.get_tensor("out/kernel")],
        [ported_models.initial("lstm")["out/kernel"]],
    )


def _has_variables(folder: Path, step: int) -> bool:
    names = np.load(folder / "arrays" / f"{step}.npz").files
    return any(name.startswith("variables/") for name in names)


@pytest.mark.parametrize("fails", [False, True])
def test_the_first_and_the_last_step_have_whole_variables(
    fails: bool, keras: Any, tmp_path: Path
) -> None:
    """After an error, only those that are there already."""

    def fail(self: Any, batch: int, logs: Any = None) -> None:
        if fails and batch == 4:
            raise ZeroDivisionError

    # So few are allowed that the first five steps are not small.
    recorder = hb.recorder(tmp_path, max_megabytes=0.005)
    guests = [recorder, callback_of(keras, on_train_batch_end=fail)]
    model = keras.Sequential([keras.Input([4]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ZeroDivisionError) if fails else nullcontext():
        model.fit(X, Y, 8, verbose=0, callbacks=hb.as_callbacks(guests))
    steps = range(1, 6 if fails else 7)
    assert len(Recording(tmp_path).steps) == len(steps)
    whole = [step for step in steps if _has_variables(tmp_path, step)]
    assert whole == ([1] if fails else [1, 6])


def fitted(keras: Any, folder: Path | None, **options: Any) -> list[Any]:
    keras.utils.set_random_seed(3)
    layers = keras.layers
    # XLA draws other numbers for Keras 2 if a step returns more.
    rate = 0.0 if options.get("jit_compile") else 0.3
    model = keras.Sequential(
        [
            layers.Dense(6, "relu", name="hidden"),
            layers.BatchNormalization(name="bn"),
            layers.Dropout(rate),
            layers.Dense(1, name="out"),
        ]
    )
    model.build((None, 4))
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"], **options)
    guests = [hb.recorder(folder, steps=5)] if folder else []
    callbacks = hb.as_callbacks(guests)
    model.fit(X, Y, 8, epochs=2, verbose=0, callbacks=callbacks)
    return list(model.get_weights())


def test_fit_ends_bit_identical(keras: Any, tmp_path: Path) -> None:
    check_fit(keras, {}, tmp_path)


@one_keras
@pytest.mark.parametrize(
    "option", ["run_eagerly", pytest.param("jit_compile", marks=pytest.mark.exhaustive)]
)
def test_other_ways_of_fit_end_bit_identical(
    keras: Any, option: str, tmp_path: Path
) -> None:
    check_fit(keras, {option: True}, tmp_path)


def check_fit(keras: Any, options: dict[str, bool], tmp_path: Path) -> None:
    """The weights are those without a recorder, and the recording is whole."""
    assert same(fitted(keras, tmp_path, **options), fitted(keras, None, **options))
    recording = Recording(tmp_path)
    assert len(recording.steps) == 5
    first = recording.steps[0]
    assert first.line["batch"] == {"x": [[8, 4], "float32"], "y": [[8, 1], "float32"]}
    assert first.learning_rate == pytest.approx(0.01)
    assert set(first.line["metrics"]) == {"mae"}
    assert bool(first.line["gradient_norms"]) == ("run_eagerly" not in options)
    averages = {"bn/moving_mean": 0.0, "bn/moving_variance": 1.0}
    assert set(recording.shapes("state")) == set(averages)
    # A replay has them as they were before the first step.
    weights = hb.replay(tmp_path).weights
    assert len(weights) == 8
    for name, value in averages.items():
        assert same([weights[name]], [np.full(6, value, "float32")])


@pytest.mark.both_tensorflows
def test_replay_of_a_fit(keras: Any, tmp_path: Path) -> None:
    """`restore` and `dataset` make a second model train the same."""

    def trained(folder: Path, data: Any, seed: int, restored: Any = None) -> None:
        keras.utils.set_random_seed(seed)
        model = keras.Sequential([keras.layers.Dense(1, name="dense")])
        model.build((None, 4))
        model.compile(keras.optimizers.SGD(0.1), "mse")
        if restored is not None:
            restored.restore(model)
        guests = hb.as_callbacks([hb.recorder(folder)])
        model.fit(*data, verbose=0, shuffle=False, callbacks=guests)

    trained(tmp_path / "old", (X, Y, 10), 1)
    replay = hb.replay(tmp_path / "old")
    assert [len(batch["x"]) for batch in replay.batches] == [10, 10, 10, 10, 8]
    trained(tmp_path / "new", (replay.dataset(),), 2, replay)
    result = compare(tmp_path / "old", tmp_path / "new")
    assert result.is_same, str(result)
    trained(tmp_path / "other", (replay.dataset(),), 3)
    assert compare(tmp_path / "old", tmp_path / "other").layer == "initial weights"


def test_names_have_one_direction(keras: Any, tmp_path: Path) -> None:
    """`{recorded: port}` in `match`, `restore` and `compare`; the error shows it."""
    ported_models.train_in_session("mlp", tmp_path / "run")
    replay = hb.replay(tmp_path / "run")
    text = str(replay)
    assert f"{ported_models.STEPS} steps" in text and "hidden/kernel [6, 6]" in text
    assert "batch: x [16, 6] float32, y [16] int32" in text

    def model(name: str) -> Any:
        layers = [keras.layers.Dense(6, name=name), keras.layers.Dense(3, name="end")]
        return keras.Sequential([keras.Input([6]), *layers])

    names = {"hidden/kernel": "fc/kernel", "out/kernel": "end/kernel"}
    names |= {"hidden/bias": "fc/bias", "out/bias": "end/bias"}
    for given in (names, None):
        port = model("fc")
        replay.restore(port, names=given)
        wanted = [replay.weights[name] for name in ("hidden/kernel", "hidden/bias")]
        assert same(port.layers[0].get_weights(), wanted)
    turned = {port: recorded for recorded, port in names.items()}
    with pytest.raises(errors.InvalidArgumentError, match="wrong way round") as caught:
        replay.restore(model("fc"), names=turned)
    assert '{"hidden/kernel": "fc/kernel"}' in str(caught.value)
    other = keras.Sequential([keras.Input([5]), keras.layers.Dense(3, name="out")])
    with pytest.raises(errors.CheckpointMismatchError, match="names="):
        replay.restore(other)


def test_own_loop(keras: Any, tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(1, name="dense")])
    model.build((None, 4))
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        return loss

    guests = [hb.recorder(tmp_path)]
    with hb.loops.OwnLoop(guests, model=model, optimizer=optimizer) as loop:
        for n in range(0, 48, 8):
            loop.step(step, tf.constant(X[n : n + 8]), tf.constant(Y[n : n + 8]))
    recording = Recording(tmp_path)
    assert len(recording.steps) == 6
    assert same([recording.steps[1].arrays("batch")["y"]], [Y[8:16]])
    weights = recording.initial["dense/kernel"]
    error = X[:8] @ weights - Y[:8]
    first = recording.steps[0]
    assert first.loss == pytest.approx(float(np.mean(error**2)), rel=1e-5)
    gradient = first.arrays("gradients")["dense/kernel"]
    np.testing.assert_allclose(gradient, X[:8].T @ error / 4, rtol=1e-4)


def test_estimator(tmp_path: Path) -> None:
    """The batch has the names of features, and of rows whole gradients."""

    def model_fn(features: Any, labels: Any, mode: Any) -> Any:
        table = v1.get_variable("table", [5, 3])
        rows = tf.gather(table, features["word"])
        loss = tf.reduce_mean((tf.reduce_sum(rows, 1) - labels) ** 2)
        optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def data() -> Any:
        words = np.array([1, 3, 3, 1], np.int32)
        labels = np.ones([4], np.float32)
        return tf.data.Dataset.from_tensors(({"word": words}, labels)).repeat()

    estimator = hb.estimator.Estimator(model_fn, str(tmp_path / "model"))
    hooks = hb.as_hooks([hb.recorder(tmp_path / "run", steps=3, then_stop=True)])
    estimator.train(data, hooks=hooks, max_steps=9)
    assert estimator.get_variable_value("global_step") == 3
    first = Recording(tmp_path / "run").steps[0]
    assert set(first.line["batch"]) == {"features/word", "labels"}
    gradient = first.arrays("gradients")["table"]
    assert gradient.shape == (5, 3) and not gradient[[0, 2, 4]].any()
    assert first.line["change_norms"]["table"] == pytest.approx(
        0.1 * first.line["gradient_norms"]["table"], rel=1e-4
    )


def test_bad_arguments_and_limits(keras2: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="steps=0"):
        hb.recorder(tmp_path, steps=0)
    with pytest.raises(
        errors.InvalidArgumentError, match="expected one of norms, whole"
    ):
        hb.recorder(tmp_path, gradients="all")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidArgumentError, match=r"max_megabytes=0\.001"):
        ported_models.train_in_session("mlp", tmp_path / "small", max_megabytes=0.001)
    ported_models.train_in_session("mlp", tmp_path / "run")
    with pytest.raises(errors.InvalidArgumentError, match="has a recording already"):
        ported_models.train_in_session("mlp", tmp_path / "run")
    with pytest.raises(errors.InvalidArgumentError, match="which has no recording"):
        hb.replay(tmp_path)
    with pytest.raises(errors.InvalidArgumentError, match='nearest: "x"'):
        hb.replay(tmp_path / "run").dataset(x="xs")
    with pytest.raises(errors.InvalidArgumentError, match="not a recorded variable"):
        compare(tmp_path / "run", tmp_path / "run", names={"hidden/kernl": "w"})
    with pytest.raises(errors.RefusedError, match="steps_per_execution=2"):
        fitted(keras2, tmp_path / "several", steps_per_execution=2)

"""What programs in the style of other authors have shown, each with its mistake.

An embedding whose gradient is of rows, RMSProp, a cell of two gates, and a fused
BatchNormalization.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.reference.comparison import Comparison
from hookbridge.reference.recordings.recording_files import VARIATIONS

v1: Any = tf.compat.v1
WORDS = np.random.RandomState(2).randint(0, 5, (4, 6, 3))
Clip = Callable[[list[Any]], list[Any]]


def embed(folder: Path, clip: Clip, optimizer: Any) -> Path:
    """Trains a table on words, which a batch has several times."""
    with tf.Graph().as_default():
        v1.set_random_seed(3)
        words = v1.placeholder(tf.int32, [None, 3], "words")
        table = v1.get_variable("table", [5, 4])
        kernel = v1.get_variable("kernel", [4, 1])
        out = tf.reduce_sum(tf.gather(table, words), 1) @ kernel
        loss = tf.reduce_mean((out - 1.0) ** 2)
        pairs = optimizer.compute_gradients(loss)
        clipped = clip([gradient for gradient, _ in pairs])
        variables = [variable for _, variable in pairs]
        step = v1.train.get_or_create_global_step()
        train_op = optimizer.apply_gradients(zip(clipped, variables, strict=True), step)
        with v1.train.MonitoredTrainingSession(hooks=[hb.recorder(folder)]) as session:
            for batch in WORDS:
                session.run(train_op, {words: batch})
    return folder


def ported(
    reference: Path, folder: Path, scales: Callable[[Any], Any], update: Any
) -> Comparison:
    """Compares a port whose gradients are whole arrays."""
    replay = hb.replay(reference)
    w = {name: value.astype("float64") for name, value in replay.weights.items()}
    squares: dict[str, Any] = {}
    with hb.recording(folder, replay.weights) as r:
        for batch in replay.batches:
            words = batch["words"]
            sums = w["table"][words].sum(1)
            error = 2 * (sums @ w["kernel"] - 1.0) / len(words)
            table = np.zeros((5, 4))
            np.add.at(table, words, (error @ w["kernel"].T)[:, None])
            gradients = {"table": table, "kernel": sums.T @ error}
            loss = (error**2).sum() * len(words) / 4
            for name, gradient in scales(gradients).items():
                w[name] = w[name] + update(name, gradient, squares)
            weights = {name: value.astype("float32") for name, value in w.items()}
            w = {name: value.astype("float64") for name, value in weights.items()}
            r.step(loss=loss, weights=weights, gradients=gradients, batch=batch)
    return hb.compare(reference, folder)


def descent(name: str, gradient: Any, squares: dict[str, Any]) -> Any:
    return -0.01 * gradient


def adagrad(first: float) -> Any:
    def update(name: str, gradient: Any, squares: dict[str, Any]) -> Any:
        squares[name] = squares.get(name, first) + gradient**2
        return -0.01 * gradient / np.sqrt(squares[name] + 1e-30)

    return update


def rmsprop(first: float, epsilon: float = 1e-10) -> Any:
    def update(name: str, gradient: Any, squares: dict[str, Any]) -> Any:
        squares[name] = 0.9 * squares.get(name, first) + 0.1 * gradient**2
        return -0.01 * gradient / np.sqrt(squares[name] + epsilon)

    return update


def by_norm(limit: float) -> Any:
    def scales(found: dict[str, Any]) -> dict[str, Any]:
        norms = {n: np.sqrt((g**2).sum()) for n, g in found.items()}
        return {n: g * min(1.0, limit / norms[n]) for n, g in found.items()}

    return scales


def by_global_norm(limit: float) -> Any:
    def scales(found: dict[str, Any]) -> dict[str, Any]:
        whole = np.sqrt(sum((g**2).sum() for g in found.values()))
        return {n: g * min(1.0, limit / whole) for n, g in found.items()}

    return scales


def plain(found: dict[str, Any]) -> dict[str, Any]:
    return found


def norms_of_tensorflow(gradients: list[Any]) -> list[Any]:
    return [tf.clip_by_norm(gradient, 0.05) for gradient in gradients]


def global_norm_of_tensorflow(gradients: list[Any]) -> list[Any]:
    return list(tf.clip_by_global_norm(gradients, 0.05)[0])


TWICE = "a row that a batch has twice counts twice"


@pytest.mark.parametrize(
    ("clip", "scales", "update", "told"),
    [
        (norms_of_tensorflow, by_norm(0.05), adagrad(0.1), f"by norm 0.05; .*{TWICE}"),
        (norms_of_tensorflow, plain, adagrad(0.1), "the port does not clip"),
        (norms_of_tensorflow, by_norm(0.05), adagrad(0.0), "initial accumulator: 0 in"),
        (
            global_norm_of_tensorflow,
            by_global_norm(0.05),
            adagrad(0.1),
            f"by global norm 0.05; .*{TWICE}",
        ),
        (norms_of_tensorflow, by_norm(0.05), descent, "optimizer is gradient descent"),
    ],
)
def test_clipped_rows(
    clip: Clip, scales: Any, update: Any, told: str, tmp_path: Path
) -> None:
    """TensorFlow 1 takes the norm of rows before it adds up those of one word."""
    reference = embed(tmp_path / "run", clip, v1.train.AdagradOptimizer(0.01))
    result = ported(reference, tmp_path / "port", scales, update)
    assert result.layer == "update", str(result)
    assert re.search(told, result.causes[0].text), str(result)


def by_value(gradients: list[Any]) -> list[Any]:
    return [tf.clip_by_value(tf.convert_to_tensor(g), -0.05, 0.05) for g in gradients]


def clip(found: dict[str, Any]) -> dict[str, Any]:
    return {name: np.clip(value, -0.05, 0.05) for name, value in found.items()}


@pytest.mark.parametrize(
    ("scales", "update", "told"),
    [
        (clip, rmsprop(1.0), None),
        (clip, rmsprop(0.0, 1e-30), "the initial accumulator: 0 in the port, 1 in the"),
        (plain, rmsprop(1.0), "the port does not clip; the reference clips by value"),
    ],
)
def test_rmsprop_of_rows_that_are_made_whole(
    scales: Any, update: Any, told: str | None, tmp_path: Path
) -> None:
    """The recorded gradient is the one before it is clipped, also of rows."""
    optimizer = v1.train.RMSPropOptimizer(0.01, decay=0.9)
    reference = embed(tmp_path / "run", by_value, optimizer)
    result = ported(reference, tmp_path / "port", scales, update)
    if told is None:
        assert result.is_same, str(result)
    else:
        assert result.causes[0].text.startswith(told), str(result)


def test_what_both_have_alone_is_no_cause(tmp_path: Path) -> None:
    """They may belong together; nor does a bias of zeros explain a first loss."""
    for name, alone in (("one", {"b": 1.0}), ("other", {"c/d": [1.0, 2.0]})):
        w = {"w": np.ones([2, 3]), **{k: np.array(v) for k, v in alone.items()}}
        with hb.recording(tmp_path / name, w) as r:
            r.step(loss=1.0 if name == "one" else 2.0, weights=w)
    with hb.recording(tmp_path / "bias", {"w": np.ones([2, 3])}) as r:
        r.step(loss=3.0, weights={"w": np.ones([2, 3])})
    result = hb.compare(tmp_path / "one", tmp_path / "other")
    assert result.layer == "forward" and not result.causes, str(result)
    assert any("no name or shape tells a partner" in note for note in result.notes)
    result = hb.compare(tmp_path / "one", tmp_path / "bias")
    assert result.causes[0].text.startswith("b: in the reference alone"), str(result)


def test_gates_and_normalizations_of_other_kinds(tmp_path: Path) -> None:
    """What swapped gates of two GRU cells, and a fused BatchNormalization, would give.

    The loss with the mistake is computed by the graph with the mistake in it.
    """

    def recorded(name: str, *, swapped: bool = False, trains: bool = True) -> Any:
        rng = np.random.RandomState(4)
        with tf.Graph().as_default():
            v1.set_random_seed(5)
            x = v1.placeholder(tf.float32, [None, 3, 3, 2], "x")
            ones, zeros = tf.ones([2]), tf.zeros([2])
            gamma = v1.get_variable("bn/gamma", initializer=ones)
            beta = v1.get_variable("bn/beta", initializer=zeros)
            average = v1.get_variable("bn/moving_mean", [2], trainable=False)
            variance = v1.get_variable(
                "bn/moving_variance", initializer=2 * ones, trainable=False
            )
            given = {} if trains else {"mean": average, "variance": variance}
            y, mean, _ = v1.nn.fused_batch_norm(
                x, gamma, beta, is_training=trains, **given
            )
            v1.add_to_collection(
                v1.GraphKeys.UPDATE_OPS, average.assign_sub(0.1 * (average - mean))
            )
            h = tf.zeros([tf.shape(x)[0], 4])
            for scope in ("first", "second"):
                gates = v1.get_variable(f"{scope}/gates/kernel", [22, 8])
                z = tf.concat([tf.reshape(y, [-1, 18]), h], 1)
                a, b = tf.split(tf.sigmoid(z @ gates), 2, 1)
                r, u = (b, a) if swapped else (a, b)
                z = tf.concat([tf.reshape(y, [-1, 18]), r * h], 1)
                new = tf.tanh(z @ v1.get_variable(f"{scope}/new/kernel", [22, 4]))
                h = u * h + (1 - u) * new
            loss = tf.reduce_mean(h**2)
            step = v1.train.get_or_create_global_step()
            updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
            with tf.control_dependencies(updates if trains else []):
                train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
            hooks = [hb.recorder(tmp_path / name)]
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                session.run(train_op, {x: rng.randn(5, 3, 3, 2) + 1.0})
        return hb.replay(tmp_path / name)

    reference = recorded("run")
    assert reference.recording.header[VARIATIONS]
    for name, mistake in (
        ("gate order", {"swapped": True}),
        ("mode", {"trains": False}),
    ):
        recorded(name, **mistake)
        result = hb.compare(tmp_path / "run", tmp_path / name)
        assert [c.name for c in result.causes][:1] == [name], str(result)

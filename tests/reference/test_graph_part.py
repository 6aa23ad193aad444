"""What a recorder finds in a graph: behind control flow, and besides `UPDATE_OPS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.reference.recordings.recording_files import Recording
from hookbridge.reference.recordings.variable_matching import match

v1: Any = tf.compat.v1
X = np.random.RandomState(0).rand(4, 5, 3).astype("float32")
Loss = Callable[[Any, Any, Any], Any]


def squared(x: Any, w: Any) -> Any:
    return tf.reduce_mean((x @ w - 1.0) ** 2)


def absolute(x: Any, w: Any) -> Any:
    return tf.reduce_mean(tf.abs(x @ w - 1.0))


def choice(x: Any, w: Any, step: Any, **options: Any) -> Any:
    is_even = tf.equal(step % 2, 0)
    return v1.cond(is_even, lambda: squared(x, w), lambda: absolute(x, w), **options)


def loop(x: Any, w: Any, step: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        return i + 1, total + squared(x, w)

    return tf.while_loop(lambda i, _: i < 2, body, [0, 0.0])[1]


@tf.recompute_grad  # type: ignore[untyped-decorator]
def recomputed(y: Any) -> Any:
    return tf.tanh(y)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def reversed_gradient(y: Any) -> Any:
    return y, lambda upstream: -upstream


LOSSES: dict[str, Loss] = {
    "cond": choice,
    "cond named loss": lambda x, w, step: choice(x, w, step, name="loss"),
    "identity of cond": lambda x, w, step: tf.identity(choice(x, w, step)),
    "while_loop": loop,
    "switch_case": lambda x, w, step: tf.switch_case(
        tf.cast(step % 2, tf.int32), [lambda: squared(x, w), lambda: absolute(x, w)]
    ),
    "case": lambda x, w, step: v1.case(
        [(tf.equal(step, 1), lambda: squared(x, w))], lambda: absolute(x, w)
    ),
    "map_fn": lambda x, w, step: tf.reduce_mean(
        tf.map_fn(lambda row: tf.square(row[None] @ w)[0, 0], x)
    ),
    "scan": lambda x, w, step: tf.reduce_mean(
        tf.scan(lambda total, row: total + tf.square(row[None] @ w)[0, 0], x, 0.0)
    ),
    "function": lambda x, w, step: tf.function(squared)(x, w),
    "cond in while_loop": lambda x, w, step: tf.while_loop(
        lambda i, _: i < 2, lambda i, s: (i + 1, s + choice(x, w, step)), [0, 0.0]
    )[1],
    "recompute_grad": lambda x, w, step: tf.reduce_mean(recomputed(x @ w)),
    "custom_gradient": lambda x, w, step: squared(reversed_gradient(x), w),
}
SAMPLE = ("cond", "cond named loss", "while_loop", "switch_case")


def trained(guests: list[Any], make_loss: Loss, clip: bool = False) -> list[Any]:
    """The weights and the losses of three steps."""
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 3], "x")
        w = v1.get_variable("w", initializer=np.ones([3, 1], np.float32))
        step = v1.train.get_or_create_global_step()
        loss = make_loss(x, w, step)
        optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
        pairs = optimizer.compute_gradients(loss)
        if clip:
            even = tf.equal(step % 2, 0)
            pairs = [
                (v1.cond(even, lambda g=g: g * 0.5, lambda g=g: g), v) for g, v in pairs
            ]
        train_op = optimizer.apply_gradients(pairs, step)
        results = []
        with v1.train.SingularMonitoredSession(hooks=hb.as_hooks(guests)) as session:
            for batch in X[:3]:
                results.append(session.run([train_op, loss], {x: batch})[1])
            return [session.run(w).tolist(), results]


@pytest.fixture(params=["functions", "frames"])
def control_flow(request: pytest.FixtureRequest) -> Any:
    """Control flow as functions of the graph, and as TensorFlow 1 has it."""
    was_on = v1.control_flow_v2_enabled()
    if request.param == "functions":
        v1.enable_control_flow_v2()
    else:
        v1.disable_control_flow_v2()
    yield request.param
    (v1.enable_control_flow_v2 if was_on else v1.disable_control_flow_v2)()


@pytest.mark.parametrize(
    "name",
    [
        name if name in SAMPLE else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in LOSSES
    ],
)
def test_control_flow_trains_as_without_the_recorder(
    name: str, control_flow: str, tmp_path: Path
) -> None:
    native = trained([], LOSSES[name])
    assert trained([hb.recorder(tmp_path / "run")], LOSSES[name]) == native
    steps = Recording(tmp_path / "run").steps
    assert [step.loss for step in steps] == pytest.approx(native[1])
    assert all("w" in step.line["gradient_norms"] for step in steps)


def test_a_gradient_in_a_branch(control_flow: str, tmp_path: Path) -> None:
    native = trained([], LOSSES["cond"], clip=True)
    recorder = hb.recorder(tmp_path / "run")
    assert trained([recorder], LOSSES["cond"], clip=True) == native
    for number, step in enumerate(Recording(tmp_path / "run").steps):
        scale = 0.5 if number % 2 == 0 else 1.0
        norms = step.line["gradient_norms"]["w"], step.line["applied_norms"]["w"]
        assert norms[1] == pytest.approx(scale * norms[0])


def by_hand(w: Any, mean: Any, now: Any, momentum: float) -> Any:
    return mean.assign_sub((mean - now) * (1 - momentum))


def in_a_branch(w: Any, mean: Any, now: Any, momentum: float) -> Any:
    def move() -> Any:
        return tf.identity(by_hand(w, mean, now, momentum))

    return v1.cond(tf.reduce_sum(now) < 9.0, move, lambda: mean + 0.0)


def of_weights(w: Any, mean: Any, now: Any, momentum: float) -> Any:
    return v1.train.ExponentialMovingAverage(momentum).apply([w])


def averaged(folder: Path, make_average: Any, momentum: float) -> Recording:
    """Trains with Adam, whose slots are not averages, and moves an average too."""
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 3], "x")
        w = v1.get_variable("w", initializer=np.ones([3, 1], np.float32))
        zeros = np.zeros(3, np.float32)
        mean = v1.get_variable("moving_mean", initializer=zeros, trainable=False)
        now = tf.reduce_mean(x, 0)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.AdamOptimizer(0.1).minimize(squared(x - now, w), step)
        with tf.control_dependencies([train_op]):
            moved = make_average(w, mean, now, momentum)
        hooks = hb.as_hooks([hb.recorder(folder)])
        with v1.train.SingularMonitoredSession(hooks=hooks) as session:
            for batch in X[:3]:
                session.run(moved, {x: batch})
    return Recording(folder)


@pytest.mark.parametrize("make_average", [by_hand, in_a_branch, of_weights])
def test_an_average_outside_update_ops_is_compared(
    make_average: Any, control_flow: str, tmp_path: Path
) -> None:
    recording = averaged(tmp_path / "run", make_average, 0.9)
    averaged(tmp_path / "other", make_average, 0.5)
    name = "moving_mean"
    if make_average is of_weights:
        name = "w/ExponentialMovingAverage"
    kinds = {n: v["kind"] for n, v in recording.variables.items()}
    assert {n for n, kind in kinds.items() if kind == "state"} == {name}
    first = hb.compare(tmp_path / "run", tmp_path / "other").first
    assert first is not None and first.name == name


def test_an_average_is_not_taken_for_the_weight() -> None:
    """A port whose names differ is matched by shape, and has no average."""
    reference = {"w": (3, 1), "w/ExponentialMovingAverage": (3, 1)}
    matching = match(reference, {"dense/kernel": (3, 1)}, None)
    assert dict(matching.pairs) == {"w": "dense/kernel"}
    assert matching.unmatched == ("w/ExponentialMovingAverage",)

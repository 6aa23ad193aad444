"""Programs with two optimizers: the losses of both, whichever run moves the step."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import until_stop
from callback_recorder import noting
from estimator_models import estimators
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
REAL = np.linspace(0.0, 1.0, 64, dtype="float32").reshape(8, 8, 1)
EPOCHS, STEPS = 2, 4


class Gan(NamedTuple):
    """A generator and a discriminator of one weight each."""

    real: Any
    d_loss: Any
    g_loss: Any
    d_op: Any
    g_op: Any
    weights: Any


def gan(real: Any, *, d_moves: bool = False, d_rate: Any = 0.01) -> Gan:
    """Builds it; the generator's op moves the step, the discriminator's may."""
    noise = np.linspace(-1.0, 1.0, 8, dtype="float32").reshape(8, 1)
    g = v1.get_variable("g", initializer=0.0)
    d = v1.get_variable("d", initializer=1.0)
    fake = d * (noise + g)
    g_loss = tf.reduce_mean((fake - 1.0) ** 2)
    d_loss = tf.reduce_mean((d * real - 1.0) ** 2) + tf.reduce_mean(fake**2)
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.GradientDescentOptimizer
    return Gan(
        real,
        d_loss,
        g_loss,
        optimizer(d_rate, name="OfD").minimize(
            d_loss, var_list=[d], global_step=step if d_moves else None
        ),
        optimizer(0.02, name="OfG").minimize(g_loss, var_list=[g], global_step=step),
        [g, d],
    )


def iterator() -> Any:
    data = tf.data.Dataset.from_tensor_slices(REAL).repeat()
    return v1.data.make_one_shot_iterator(data).get_next()


def placeholder() -> Any:
    return v1.placeholder(tf.float32, [None, 1], name="real")


def alternate(net: Gan, session: Any, order: str, *, fetch: bool = False) -> Any:
    """Trains in turns; returns the losses of each run if `fetch` asks for them."""
    seen: list[tuple[str, Any]] = []
    batches = itertools.cycle(REAL)
    is_fed = net.real.op.type == "Placeholder"
    while not session.should_stop():
        for turn in order:
            op = net.d_op if turn == "d" else net.g_op
            # The generator's loss can be computed in either run.
            losses = [net.g_loss, *([net.d_loss] if turn == "d" else [])]
            feed = {net.real: next(batches)} if is_fed and turn == "d" else None
            values = session.run([op, losses] if fetch else op, feed)
            seen.append((turn, values[1] if fetch else None))
            if session.should_stop():
                break
    return seen


def epochs_of(seen: list[Any], movers: str) -> list[dict[str, Any]]:
    """The mean losses of each epoch."""
    epochs: list[dict[str, Any]] = []
    steps = 0
    logs: dict[str, list[Any]] = {"g_loss": [], "d_loss": []}
    for turn, losses in seen:
        if turn in movers:
            logs["g_loss"].append(losses[0])
            steps += 1
        logs["d_loss"] += losses[1:]
        if turn in movers and steps % STEPS == 0:
            epochs.append({key: np.mean(values) for key, values in logs.items()})
            logs = {"g_loss": [], "d_loss": []}
    return epochs


def epoch_logs(keras: Any, seen: list[Any]) -> Any:
    def note(self: Any, event: str, index: int, logs: Any) -> None:
        seen.append(dict(logs))

    return noting(keras, note, ("on_epoch_end",))


@pytest.mark.parametrize(
    ("make", "d_moves", "order"),
    [
        (iterator, False, "dg"),
        (iterator, True, "dg"),
        (placeholder, False, "dg"),
        (placeholder, True, "dg"),
        (placeholder, False, "ddg"),
        (iterator, False, "gd"),
    ],
)
def test_both_losses_are_in_logs(
    keras: Any, make: Any, d_moves: bool, order: str
) -> None:
    """They are those that the loop itself fetches; the weights are as without hooks."""
    seen: list[Any] = []
    stop = keras.callbacks.EarlyStopping("d_loss", mode="min", patience=EPOCHS)
    weights = []
    for is_bridged in (False, True):
        with tf.Graph().as_default():
            net = gan(make(), d_moves=d_moves)
            final = v1.train.FinalOpsHook(net.weights)
            hooks = [v1.train.StopAtStepHook(last_step=EPOCHS * STEPS), final]
            if is_bridged:
                hooks += hb.as_hooks(
                    [epoch_logs(keras, seen), stop],
                    steps_per_epoch=STEPS,
                    epochs=EPOCHS,
                    logs={"g_loss": net.g_loss, "d_loss": net.d_loss},
                )
            with v1.train.MonitoredSession(hooks=hooks) as session:
                runs = alternate(net, session, order, fetch=not is_bridged)
            weights.append(final.final_ops_values)
        if not is_bridged:
            expected = epochs_of(runs, "dg" if d_moves else "g")
    assert len(expected) == EPOCHS
    assert seen == [pytest.approx(epoch, rel=1e-6) for epoch in expected]
    assert stop.best == pytest.approx(min(epoch["d_loss"] for epoch in expected))
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-6)


def test_a_rate_of_the_run_between_the_steps_is_set(keras: Any) -> None:
    """From the first run of an epoch on, as a rate in a variable is."""
    weights = []
    for fed in (False, True):
        with tf.Graph().as_default():
            rate: Any = 0.01
            if not fed:
                rate = v1.get_variable("rate", initializer=0.01, trainable=False)
            net = gan(iterator(), d_rate=rate)
            scheduler = keras.callbacks.LearningRateScheduler(lambda e: [0.3, 0.1][e])
            final = v1.train.FinalOpsHook(net.weights)
            hooks = hb.as_hooks(
                scheduler,
                steps_per_epoch=STEPS,
                epochs=EPOCHS,
                learning_rate="OfD/learning_rate" if fed else rate,
            )
            with v1.train.MonitoredSession(hooks=[*hooks, final]) as session:
                alternate(net, session, "dg")
            weights.append(final.final_ops_values)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-6)
    assert weights[0][1] < 0.9  # with the rate as built, `d` would be .95


@pytest.mark.parametrize("is_fed", [False, True])
def test_gradients_that_are_added_up_in_runs_of_their_own(
    keras: Any, is_fed: bool
) -> None:
    """The losses of an epoch are those of the runs that take the data."""
    seen: list[Any] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        real = placeholder() if is_fed else iterator()
        loss = tf.reduce_mean((weight * real - 1.0) ** 2, name="loss")
        optimizer = v1.train.GradientDescentOptimizer(0.0)
        ((gradient, _),) = optimizer.compute_gradients(loss, [weight])
        total = v1.get_variable("total", initializer=0.0, trainable=False)
        add = total.assign_add(gradient).op
        step = v1.train.get_or_create_global_step()
        apply = optimizer.apply_gradients([(total.read_value(), weight)], step)
        size = tf.cast(tf.shape(real)[0], tf.float32)
        hooks = hb.as_hooks(
            epoch_logs(keras, seen), steps_per_epoch=2, logs={"size": size}
        )
        rows = [REAL[0], REAL[1][:2], REAL[2], REAL[3]] if is_fed else REAL[:4]
        with v1.train.MonitoredSession(hooks=hooks) as session:
            for first in (0, 2):
                for batch in rows[first : first + 2]:
                    session.run(add, {real: batch} if is_fed else None)
                session.run(apply)
    expected = np.mean((np.concatenate(rows) - 1.0) ** 2)
    assert seen == [{"loss": pytest.approx(expected, rel=1e-6)}]


def test_an_evaluation_between_the_steps_does_not_count(keras: Any) -> None:
    seen: list[Any] = []
    with tf.Graph().as_default():
        net = gan(placeholder())
        hooks = hb.as_hooks(
            epoch_logs(keras, seen), steps_per_epoch=1, logs={"d_loss": net.d_loss}
        )
        with v1.train.MonitoredSession(hooks=hooks) as session:
            value = session.run(net.d_loss, {net.real: REAL[0]})
            session.run(net.d_op, {net.real: REAL[0]})
            session.run(net.d_loss, {net.real: REAL[5]})
            session.run(net.g_op)
    assert seen == [{"d_loss": pytest.approx(value)}]


def run_by_hook(net: Gan) -> tuple[Any, Any]:
    """A hook trains through the raw session, as the `RunTrainOpsHook` of TF-GAN."""
    ops = [net.g_op, net.d_op]
    count = v1.assign_add(v1.train.get_global_step(), 1)
    before = hook_of(before_run=lambda self, context: context.session.run(ops) and None)
    return count, [before]


def test_an_entry_without_value_is_named(
    subtests: pytest.Subtests, keras: Any, absl_records: Any
) -> None:
    stop = keras.callbacks.EarlyStopping("d_loss", mode="min")
    words = r'`EarlyStopping` monitors "d_loss".*no value.*run_context\.session'
    cases: list[tuple[list[Any], Any]] = [([stop], "refuse"), ([stop], "warn")]
    for guests, missing in (*cases, ([], "refuse")):
        with subtests.test(str(guests)), tf.Graph().as_default():
            net = gan(iterator())
            count, others = run_by_hook(net)
            hooks = hb.as_hooks(
                [*others, *guests, keras.callbacks.History()],
                steps_per_epoch=3,
                epochs=2,
                logs={"d_loss": net.d_loss},
                missing_metric=missing,
            )
            if guests and missing == "refuse":
                with pytest.raises(errors.UnknownMetricError, match=words):
                    until_stop(hooks, count)
            else:
                until_stop(hooks, count)
    assert absl_records('monitors "d_loss", and it had no value')
    assert absl_records('`logs` has the entry "d_loss", and it had no value')


def test_a_rate_that_no_run_reads_is_named(keras: Any) -> None:
    with tf.Graph().as_default():
        net = gan(iterator())
        count, others = run_by_hook(net)
        scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
        rate = "OfD/learning_rate"
        hooks = hb.as_hooks(
            [*others, scheduler], steps_per_epoch=2, epochs=3, learning_rate=rate
        )
        with pytest.raises(
            errors.RefusedError, match=r'set the learning rate "OfD/learning_rate:0"'
        ):
            until_stop(hooks, count)


def test_an_entry_whose_placeholder_is_not_fed_is_refused(keras: Any) -> None:
    with tf.Graph().as_default():
        net = gan(iterator())
        labels = v1.placeholder(tf.float32, [], name="labels")
        hooks = hb.as_hooks(
            keras.callbacks.History(), steps_per_epoch=2, logs={"more": labels + 1.0}
        )
        with v1.train.MonitoredSession(hooks=hooks) as session:
            session.run(net.g_op, {labels: 1.0})
            with pytest.raises(
                errors.RefusedError, match=r'logs\["more"\].*the placeholder "labels"'
            ):
                session.run(net.g_op)


@pytest.mark.parametrize("is_fed", [False, True])
def test_gan_of_an_estimator(keras: Any, is_fed: bool, tmp_path: Path) -> None:
    """Both losses, by the data of the `input_fn` or by a `FeedFnHook`."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        net = gan(features)
        tf.identity(net.d_loss, name="d_loss")
        train_op = tf.group(net.d_op, net.g_op)
        return estimators.EstimatorSpec(mode, loss=net.g_loss, train_op=train_op)

    def input_fn() -> Any:
        if is_fed:
            return placeholder()
        return tf.data.Dataset.from_tensor_slices(REAL).repeat()

    batches = itertools.cycle(REAL)
    feed = hook_of(
        before_run=lambda self, context: v1.train.SessionRunArgs(
            None, {"real:0": next(batches)}
        )
    )
    seen: list[Any] = []
    stop = keras.callbacks.EarlyStopping("d_loss", mode="min", min_delta=9.0)
    hooks = hb.as_hooks(
        [epoch_logs(keras, seen), stop],
        steps_per_epoch=STEPS,
        epochs=9,
        logs={"d_loss": "d_loss"},
    )
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    estimator.train(input_fn, hooks=[*([feed] if is_fed else []), *hooks])
    assert [sorted(logs) for logs in seen] == [["d_loss", "loss"]] * 2
    assert stop.best == pytest.approx(seen[0]["d_loss"])


def test_a_run_between_the_steps_that_fails_leaves_nothing(keras: Any) -> None:
    """The loop goes on with steps, and with runs that are none."""
    seen: list[Any] = []
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensor_slices(REAL[:1])
        net = gan(v1.data.make_one_shot_iterator(data).get_next())
        losses = {"g_loss": net.g_loss, "d_loss": net.d_loss}
        hooks = hb.as_hooks(
            epoch_logs(keras, seen), steps_per_epoch=2, epochs=1, logs=losses
        )
        generator, _ = net.weights
        with v1.train.MonitoredSession(hooks=hooks) as session:
            session.run(net.d_op)
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(net.d_op)
            session.run(net.g_op)
            assert session.run(generator) != 0.0
            session.run(net.g_op)
            assert session.should_stop()
    assert len(seen) == 1 and set(seen[0]) == {"g_loss", "d_loss"}

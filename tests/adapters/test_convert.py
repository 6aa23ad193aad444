"""What `as_hooks` and `as_callbacks` make of unusual lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, X, Y, build, feeds

import hookbridge as hb
from hookbridge import errors
from hookbridge.testing import EventLog, RecordingHook

ONE_KERAS = True

v1 = tf.compat.v1
Make = Callable[[], list[Any]]


def train(hooks: list[Any], *, start: int = 0) -> int:
    """The global step at which a session loop ends, after 20 steps at the latest."""
    with tf.Graph().as_default():
        net = build()
        step = v1.train.get_global_step()
        begin = step.assign(start)
        scaffold = v1.train.Scaffold(
            init_op=tf.group(v1.global_variables_initializer()),
            init_fn=lambda _, session: session.run(begin),
        )
        last = v1.train.FinalOpsHook(step)
        with v1.train.MonitoredTrainingSession(
            scaffold=scaffold, hooks=[*hooks, last]
        ) as session:
            for number in range(20):
                if session.should_stop():
                    break
                session.run(net.train_op, feeds(net, number))
    return int(last.final_ops_values)


@pytest.mark.parametrize(
    "guests", [list, lambda: [RecordingHook(EventLog())]], ids=["none", "hook"]
)
def test_epochs_end_a_run_that_has_no_callback(guests: Make) -> None:
    listed = guests()
    hooks = hb.as_hooks(listed, steps_per_epoch=STEPS, epochs=2)
    assert hooks[: len(listed)] == listed and len(hooks) == len(listed) + 1
    assert hb.as_hooks(hooks, steps_per_epoch=STEPS, epochs=2) == hooks
    assert train(hooks) == 2 * STEPS
    assert train(hooks) == 2 * STEPS  # hooks serve one run after the other
    assert train(hooks, start=STEPS + 1) == 2 * STEPS
    assert train(hooks, start=2 * STEPS + 1) == 2 * STEPS + 1  # nothing is left to do
    assert hb.as_hooks(listed, steps_per_epoch=STEPS) == listed


def test_a_callback_that_counts_the_epochs_is_enough(keras: Any) -> None:
    guests = [RecordingHook(EventLog()), keras.callbacks.Callback()]
    hooks = hb.as_hooks(guests, steps_per_epoch=STEPS, epochs=2)
    assert len(hooks) == 2
    assert hb.as_hooks(hooks, steps_per_epoch=STEPS, epochs=2) == hooks
    assert train(hooks) == 2 * STEPS


def test_epochs_end_trainings_only() -> None:
    """An evaluation within the training, with the same hooks, runs to its own end."""
    hooks = hb.as_hooks([], steps_per_epoch=STEPS, epochs=1)

    def evaluate() -> int:
        with tf.Graph().as_default():
            step = v1.train.get_or_create_global_step()
            runs = v1.get_variable("runs", initializer=0)
            v1.add_to_collection(v1.GraphKeys.EVAL_STEP, runs)
            late, more = step.assign(100), runs.assign_add(1)
            with v1.train.MonitoredSession(hooks=hooks) as session:
                session.run(late)
                return max(int(session.run(more)) for _ in range(3))

    class Evaluates(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            counted.append(evaluate())

    counted: list[int] = []
    assert train([Evaluates(), *hooks]) == STEPS
    assert counted == [3] * STEPS
    with tf.Graph().as_default():
        one = tf.constant(1)
        with v1.train.MonitoredSession(hooks=hooks) as session:
            assert session.run(one) == 1  # a prediction without a global step


def test_a_wrapped_hook_is_a_callback_of_every_keras_that_is_imported(
    keras2: Any, keras3: Any
) -> None:
    (callback,) = hb.as_callbacks(RecordingHook(EventLog()))
    assert isinstance(callback, hb.HookToCallback)
    for keras in (keras2, keras3):
        assert isinstance(callback, keras.callbacks.Callback)


def test_epochs_need_a_global_step() -> None:
    hooks = hb.as_hooks([], steps_per_epoch=STEPS, epochs=1)
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=1.0)
        v1.train.GradientDescentOptimizer(0.1).minimize(weight**2)
        with pytest.raises(errors.EpochsUndefinedError, match="has no global step"):
            hooks[0].begin()
    with pytest.raises(errors.EpochsUndefinedError, match="without `steps_per_epoch`"):
        hb.as_hooks([], epochs=1)


@pytest.mark.parametrize("base", [(v1.train.SessionRunHook,), ()])
def test_a_guest_of_both_kinds_is_refused(
    subtests: pytest.Subtests, keras: Any, base: tuple[type, ...]
) -> None:
    methods: dict[str, Any] = {
        name: lambda self, *args: None
        for name in ("begin", "after_create_session", "before_run", "after_run", "end")
    }
    both = type("Both", (*base, keras.callbacks.Callback), methods)()
    message = "`Both` is both a `SessionRunHook` and a Keras `Callback`"
    with pytest.raises(errors.RefusedError, match=message):
        hb.as_hooks([both], steps_per_epoch=1)
    with pytest.raises(errors.RefusedError, match=message):
        hb.as_callbacks(both)
    for host in ("session", "fit"):
        with subtests.test(str(host)):
            (report,) = hb.explain(both, host).guests  # type: ignore[arg-type]
            assert report.verdict == "refused" and "Split it into two" in report.reason


@pytest.mark.parametrize("convert", [hb.as_hooks, hb.as_callbacks, hb.explain])
def test_none_is_no_guest_but_no_list_either(convert: Callable[[Any], Any]) -> None:
    hook = v1.train.StopAtStepHook(3)
    assert not getattr(convert(None), "guests", convert(None))
    with pytest.raises(errors.NotAGuestError, match=r"None; .* is at \[0\] of the"):
        convert([None])
    with pytest.raises(errors.NotAGuestError, match=r"It is at \[1\]\[1\] of the list"):
        convert([hook, (hook, None)])


@pytest.mark.parametrize("max_lag", ["x", -1, True, 1.5])
def test_a_bad_lag_is_refused(subtests: pytest.Subtests, max_lag: Any) -> None:
    for convert in (hb.HookToCallback, hb.as_callbacks):
        with subtests.test(str(convert)):
            with pytest.raises(errors.InvalidArgumentError, match="`max_lag="):
                convert(v1.train.StopAtStepHook(3), max_lag=max_lag)


def test_the_right_converter_is_named(keras: Any) -> None:
    """What one converter returned, in the other loop."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    stop = keras.callbacks.EarlyStopping("loss")
    hooks = hb.as_hooks([stop], steps_per_epoch=2)
    with pytest.raises(
        errors.WrongConverterError, match=r"EarlyStopping.*hb\.as_callbacks"
    ):
        model.fit(X[:4], Y[:4], verbose=0, callbacks=hooks)
    callbacks = hb.as_callbacks([v1.train.StopAtStepHook(num_steps=1)])
    with pytest.raises(errors.WrongConverterError, match=r"StopAt.*hb\.as_hooks"):
        train(callbacks)

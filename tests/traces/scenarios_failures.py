"""Scenarios: exceptions of users, hooks and ops, NaN, and recovery from errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
from trace_loop import SCENARIOS, Trace, scenario

v1 = tf.compat.v1
errors = tf.errors

Factory = Callable[[], BaseException]


def _out_of_range(message: str) -> Exception:
    return errors.OutOfRangeError(None, None, message)  # type: ignore[no-any-return]


def aborted() -> Exception:
    return errors.AbortedError(None, None, "abort")  # type: ignore[no-any-return]


def unavailable() -> Exception:
    return errors.UnavailableError(None, None, "unavail")  # type: ignore[no-any-return]


def _user_raises(t: Trace, make: Factory, *others: str) -> None:
    """The loop's own code fails in its second turn."""
    op = t.train_graph().train_op

    def body(monitored: Any, turn: int) -> None:
        if turn == 2:
            raise make()
        monitored.run(op)

    hooks = [t.recorder("A"), *(t.recorder(name) for name in others)]
    t.drive(t.session(hooks), op, body=body)


@scenario
def out_of_range_subclass_raised_by_user(t: Trace) -> None:
    """The error ends the loop cleanly by its exact type only."""

    class Sub(tf.errors.OutOfRangeError):  # type: ignore[misc]
        pass

    _user_raises(t, lambda: Sub(None, None, "user"))


# Method of a hook -> which call of it fails.
MOMENTS = {
    "begin": 1,
    "after_create_session": 1,
    "before_run": 2,
    "after_run": 2,
    "end": 1,
}
HOOK_ERRORS: dict[str, Factory] = {
    "valueerror": lambda: ValueError("hook"),
    "outofrange": lambda: _out_of_range("hook"),
    "stopiteration": lambda: StopIteration("hook"),
    "keyboardinterrupt": lambda: KeyboardInterrupt("hook"),
}


def failing_hooks(t: Trace, event: str, call: int, make: Factory) -> list[Any]:
    """The hooks `A`, `X` and `B`; `X` fails."""
    failing = t.recorder("X", raises={(event, call): make})
    return [t.recorder("A"), failing, t.recorder("B")]


def _hook_raises(event: str, call: int, make: Factory) -> Callable[[Trace], None]:
    return lambda t: t.train_with(*failing_hooks(t, event, call, make), runs=3)


for _event, _call in MOMENTS.items():
    for _name, _make in HOOK_ERRORS.items():
        SCENARIOS[f"{_name}_in_{_event}"] = _hook_raises(_event, _call, _make)


@scenario
def exception_in_op(t: Trace) -> None:
    def loss(step: Any) -> Any:
        limit = tf.constant(2, step.dtype)
        check = v1.assert_less(step, limit, message="boom")
        with tf.control_dependencies([check]):
            return tf.constant(1.0)

    t.train_with(t.recorder("A"), t.recorder("B"), loss=loss)


@scenario
def exception_in_op_valueerror_in_py_func(t: Trace) -> None:
    def fail(value: Any) -> Any:
        if value >= 1:
            raise StopIteration("py")
        return np.float32(1)

    t.train_with(
        t.recorder("A"), loss=lambda step: v1.py_func(fail, [step], tf.float32)
    )


def _nan(t: Trace, *, fail: bool) -> None:
    def of_step(step: Any) -> Any:
        return tf.where(tf.less(step, 2), 1.0, float("nan"))

    op, loss = t.train_graph(loss=of_step)
    hook = v1.train.NanTensorHook(loss, fail_on_nan_loss=fail)
    t.drive(t.session([t.recorder("A"), hook, t.recorder("B")]), op)


SCENARIOS.update(
    out_of_range_raised_by_user=lambda t: _user_raises(
        t, lambda: _out_of_range("user")
    ),
    stop_iteration_raised_by_user=lambda t: _user_raises(
        t, lambda: StopIteration("user")
    ),
    exception_in_user_code=lambda t: _user_raises(t, lambda: ValueError("user"), "B"),
    keyboard_interrupt_in_user_code=lambda t: _user_raises(t, KeyboardInterrupt),
    recover_aborted_in_user_code=lambda t: _user_raises(t, aborted),
    nan_fail=lambda t: _nan(t, fail=True),
    nan_stop=lambda t: _nan(t, fail=False),
)


def _recovers(event: str, call: int, make: Factory, *, saves: bool) -> Any:
    def run(t: Trace) -> None:
        saving = {"checkpoint_dir": t.directory(), "save_checkpoint_steps": 2}
        hooks = failing_hooks(t, event, call, make)
        t.train_with(*hooks, config=saving if saves else None, runs=4)

    return run


RECOVERY_MOMENTS = {**MOMENTS, "before_run": 3, "after_run": 3}
for _event, _call in RECOVERY_MOMENTS.items():
    SCENARIOS[f"recover_aborted_in_{_event}_ckpt"] = _recovers(
        _event, _call, aborted, saves=True
    )
    SCENARIOS[f"recover_unavailable_in_{_event}_nockpt"] = _recovers(
        _event, _call, unavailable, saves=False
    )


@scenario
def recover_aborted_by_session_run(t: Trace) -> None:
    """The error comes out of `Session.run` itself, as from a lost server."""
    run = t.host.session_class.run  # type: ignore[attr-defined]
    calls = 0

    def failing(self: Any, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        if isinstance(fetches, dict) and "caller" in fetches:
            calls += 1
            if calls == 3:
                t.note("SESSION_RAISES")
                raise aborted()
        return run(self, fetches, *args, **kwargs)

    with mock.patch.object(t.host.session_class, "run", failing):
        config = {"checkpoint_dir": t.directory(), "save_checkpoint_steps": 2}
        t.train_with(t.recorder("A"), t.recorder("B"), config=config, runs=4)


@scenario
def recover_in_step_fn(t: Trace) -> None:
    directory = t.directory()
    op = t.train_graph().train_op
    calls = 0

    def body(monitored: Any, turn: int) -> Any:
        def step_fn(step_context: Any) -> None:
            nonlocal calls
            calls += 1
            t.note("IN_STEP_FN", n=calls)
            step_context.run_with_hooks(op)
            if calls == 2:
                t.note("RAISE")
                raise aborted()

        return monitored.run_step_fn(step_fn)

    make = t.session(
        [t.recorder("A")], checkpoint_dir=directory, save_checkpoint_steps=1
    )
    t.drive(make, op, runs=3, body=body)


@scenario
def recover_coord_thread_aborted(t: Trace) -> None:
    """`should_stop` sees an AbortedError that the coordinator was told of."""

    def abort(hook: Any) -> None:
        try:
            raise aborted()
        except tf.errors.AbortedError:
            hook.coord.request_stop(sys.exc_info())
        t.note("COORD_ABORTED")

    t.drive_and_act(abort, runs=3)


@scenario
def recover_aborted_in_before_run_singular(t: Trace) -> None:
    op = t.train_graph().train_op
    hooks = [*failing_hooks(t, "before_run", 2, aborted), *t.host.hooks]
    t.drive(lambda: v1.train.SingularMonitoredSession(hooks=hooks), op, runs=4)


@scenario
def recover_stop_flag_lost(t: Trace) -> None:
    """A stop asked for in a run that is then aborted and repeated is lost."""
    stopping = t.recorder("A", stops=[("before_run", 2)])
    failing = t.recorder("X", raises={("after_run", 2): aborted})
    t.train_with(stopping, failing, runs=4)

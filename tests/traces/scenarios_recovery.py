"""Scenarios: recovery from `AbortedError` and `UnavailableError`."""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import tensorflow as tf
from scenarios_failures import MOMENTS, Factory, aborted, failing_hooks, unavailable
from trace_loop import SCENARIOS, Trace, scenario

v1 = tf.compat.v1


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
    op = t.train_graph().train_op
    a = t.recorder("A")

    def body(monitored: Any, turn: int) -> Any:
        result = monitored.run(op)
        if turn == 2:
            try:
                raise aborted()
            except tf.errors.AbortedError:
                a.coord.request_stop(sys.exc_info())
            t.note("COORD_ABORTED")
        return result

    t.drive(t.session([a]), op, runs=3, body=body)


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

"""Scenarios: normal runs, stops, coordinators, the end of the data."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from trace_events import describe
from trace_hooks import CoordStop, Recorder
from trace_loop import SCENARIOS, Trace, scenario

v1 = tf.compat.v1


@scenario
def no_global_step(t: Trace) -> None:
    w = v1.get_variable("w", shape=[], initializer=v1.zeros_initializer())
    t.drive(t.session([t.recorder("A")]), v1.assign_add(w, 1.0).op, runs=1)


@scenario
def user_result(t: Trace) -> None:
    op, loss = t.train_graph()
    fetches = {"op": op, "l": loss, "n": [loss, (loss, {"z": loss})]}
    t.drive(t.session([t.recorder("A")]), fetches, runs=1, log_result=True)


@scenario
def default_hooks_order(t: Trace) -> None:
    op, loss = t.train_graph()
    v1.summary.scalar("loss", loss)
    directory = t.directory()
    monitored = v1.train.MonitoredTrainingSession(
        checkpoint_dir=directory,
        hooks=[t.recorder("A")],
        chief_only_hooks=[t.recorder("CHIEF")],
        save_checkpoint_steps=2,
        save_summaries_steps=2,
        log_step_count_steps=2,
    )
    names = [
        f"Rec:{h.name}" if isinstance(h, Recorder) else type(h).__name__
        for h in monitored._hooks
    ]
    t.note("HOOKS", hooks=names)
    with monitored:
        for _ in range(3):
            monitored.run(op)
    files = [re.sub(r"events\.out.*", "events", f) for f in os.listdir(directory)]
    t.note("FILES", files=sorted(files))


@scenario
def hook_creates_variable_in_begin(t: Trace) -> None:
    class Hook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            variable = v1.get_variable(
                "hv", shape=[], initializer=v1.constant_initializer(7.0)
            )
            self.value = tf.identity(variable)

        def before_run(self, run_context: Any) -> Any:
            return v1.train.SessionRunArgs(self.value)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            t.note("hook_var", v=describe(run_values.results))

    t.train_with(Hook(), runs=1)


@scenario
def hook_creates_op_after_create_session(t: Trace) -> None:
    class Hook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_create_session(self, session: Any, coord: Any) -> None:
            tf.constant(1.0)

    t.train_with(t.recorder("A"), Hook(), t.recorder("B"), runs=1)


@scenario
def stop_at_step_last_step_increment_2(t: Trace) -> None:
    op = t.train_graph(increment=2).train_op
    t.drive(t.session([t.recorder("A"), v1.train.StopAtStepHook(last_step=3)]), op)


def _resume(t: Trace, stop: Any) -> None:
    t.train_with(t.recorder("A"), stop, config={"checkpoint_dir": t.checkpoint(5)})


@scenario
def stop_at_step_same_hook_instance_reused(t: Trace) -> None:
    hook = v1.train.StopAtStepHook(num_steps=2)
    t.train_with(t.recorder("A"), hook)
    with t.host.graph():
        t.train_with(t.recorder("A2"), hook)


def _stop_in(t: Trace, event: str) -> None:
    stopping = t.recorder("X", stops=[(event, 2)])
    t.train_with(t.recorder("A"), stopping, t.recorder("B"))


@scenario
def run_after_stop(t: Trace) -> None:
    op = t.train_graph().train_op

    def body(monitored: Any, turn: int) -> None:
        monitored.run(op)
        t.note("SECOND_RUN")
        monitored.run(op)

    t.drive(t.session([t.recorder("A", stops=[("after_run", 1)])]), op, body=body)


def _coordinator_stop(t: Trace, make: Any = None, *, bare: bool = False) -> None:
    stop = CoordStop(2, make, bare)
    t.train_with(t.recorder("A", coord_stop=stop), t.recorder("B"))


def _end_of_queue() -> Exception:
    return tf.errors.OutOfRangeError(None, None, "q")  # type: ignore[no-any-return]


@scenario
def coord_thread_raises(t: Trace) -> None:
    """A thread registered with the coordinator fails between two runs."""

    def fail(hook: Any) -> None:
        with hook.coord.stop_on_exception():
            raise ValueError("thread")

    def fail_in_thread(hook: Any) -> None:
        thread = threading.Thread(target=fail, args=[hook])
        hook.coord.register_thread(thread)
        thread.start()
        thread.join()
        t.note("THREAD_RAISED")

    t.drive_and_act(fail_in_thread)


@scenario
def should_stop_and_run_after_close(t: Trace) -> None:
    op = t.train_graph().train_op
    monitored = t.drive(t.session([t.recorder("A")]), op, runs=1)
    calls: dict[str, Callable[[], Any]] = {
        "run": lambda: monitored.run(op),
        "close": lambda: monitored.close(),
    }
    for name, call in calls.items():
        try:
            call()
            t.note(f"{name}_AFTER_CLOSE_OK")
        except Exception as e:
            t.note(f"{name}_AFTER_CLOSE", **t.exception(e))


@scenario
def out_of_range(t: Trace) -> None:
    _, op = t.data_graph(3)
    t.drive(t.session([t.recorder("A"), t.recorder("B")]), op)


@scenario
def out_of_range_no_with(t: Trace) -> None:
    _, op = t.data_graph(2)
    t.drive(t.session([t.recorder("A")]), op, use_with=False)


def _from_coordinator() -> Exception:
    return ValueError("from coord")


SCENARIOS.update(
    normal=lambda t: t.train_with(t.recorder("A", more=True), t.recorder("B"), runs=3),
    normal_close_without_with=lambda t: t.train_with(
        t.recorder("A"), runs=2, use_with=False
    ),
    zero_runs=lambda t: t.train_with(t.recorder("A"), runs=0),
    stop_at_step_num_steps=lambda t: t.train_with(
        t.recorder("A"), v1.train.StopAtStepHook(num_steps=3), t.recorder("B")
    ),
    stop_at_step_resume_num_steps=lambda t: _resume(
        t, v1.train.StopAtStepHook(num_steps=2)
    ),
    stop_at_step_already_past_last_step=lambda t: _resume(
        t, v1.train.StopAtStepHook(last_step=4)
    ),
    request_stop_in_before_run=lambda t: _stop_in(t, "before_run"),
    request_stop_in_after_run=lambda t: _stop_in(t, "after_run"),
    coord_request_stop=_coordinator_stop,
    coord_request_stop_with_exception=lambda t: _coordinator_stop(t, _from_coordinator),
    coord_request_stop_with_outofrange=lambda t: _coordinator_stop(t, _end_of_queue),
    # Upstream defect: `request_stop(error)` outside `except` is a TypeError.
    coord_request_stop_with_bare_exception=lambda t: _coordinator_stop(
        t, _from_coordinator, bare=True
    ),
)

"""Scenarios: TensorFlow's own hooks, odd hooks, hooks within hooks."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf
from trace_events import describe
from trace_hooks import EventWriter
from trace_loop import SCENARIOS, Trace, scenario

v1 = tf.compat.v1


@scenario
def same_hook_instance_twice(t: Trace) -> None:
    op, loss = t.train_graph()
    hook = t.recorder("A", args=lambda: v1.train.SessionRunArgs(loss))
    t.drive(t.session([hook, hook]), op, runs=1)


@scenario
def non_hook_in_hooks(t: Trace) -> None:
    class Duck:
        def begin(self) -> None:
            t.note("duck.begin")

        def after_create_session(self, session: Any, coord: Any) -> None:
            t.note("duck.after_create_session")

        def before_run(self, run_context: Any) -> None:
            t.note("duck.before_run")

        def after_run(self, run_context: Any, run_values: Any) -> None:
            t.note("duck.after_run", results=describe(run_values.results))

        def end(self, session: Any) -> None:
            t.note("duck.end")

    t.train_with(Duck(), runs=1)


@scenario
def logging_hook_triggers(t: Trace) -> None:
    """The hook counts its own runs, and always logs the first."""
    op, loss = t.train_graph()
    seen: list[float] = []

    def note(values: Any) -> str:
        seen.append(float(values["loss"]))
        return "x"

    hook = v1.train.LoggingTensorHook(
        {"loss": loss}, every_n_iter=2, at_end=True, formatter=note
    )
    t.drive(t.session([hook]), op, runs=5)
    t.note("LOGGED", losses=seen)


@scenario
def summary_saver(t: Trace) -> None:
    op, loss = t.train_graph()

    def summaries() -> Any:
        return v1.summary.scalar("loss", t.tensor(loss))

    t.late(summaries)
    scaffold = v1.train.Scaffold()
    hook = v1.train.SummarySaverHook(
        save_steps=2, summary_writer=EventWriter(t.log), scaffold=scaffold
    )
    t.drive(t.session([hook], scaffold=scaffold), op, runs=5)


@scenario
def final_ops(t: Trace) -> None:
    op, loss = t.train_graph()
    hook = v1.train.FinalOpsHook({"l": loss})
    t.drive(t.session([hook]), op, runs=3)
    t.note("FINAL", v=describe(hook.final_ops_values))


@scenario
def final_ops_outofrange(t: Trace) -> None:
    element, op = t.data_graph(2)
    hook = v1.train.FinalOpsHook(element)
    t.drive(t.session([t.recorder("A"), hook, t.recorder("B")]), op)


@scenario
def profiler_hook(t: Trace) -> None:
    directory = t.directory()
    with tf.Graph().as_default():  # its FileWriter needs one
        hook = v1.train.ProfilerHook(save_steps=2, output_dir=directory)
    t.train_with(hook, runs=6)
    files = [f for f in os.listdir(directory) if f.startswith("timeline")]
    t.note("FILES", files=sorted(files))


@scenario
def nested_monitored_sessions(t: Trace) -> None:
    """A monitored session in a graph of its own inside `after_run`."""
    op = t.train_graph().train_op

    class Hook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            with t.host.graph():
                inner = t.train_graph().train_op
                with t.session([t.recorder("INNER")])() as monitored:
                    monitored.run(inner)

    t.drive(t.session([t.recorder("A"), Hook()]), op, runs=1)


@scenario
def worker_non_chief(t: Trace) -> None:
    """A worker that is not the chief gets `hooks` and nothing else."""
    op = t.train_graph().train_op
    server = v1.train.Server.create_local_server()
    init = v1.global_variables_initializer()
    with v1.Session(server.target) as other:
        other.run(init)
        monitored = v1.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=False,
            hooks=[t.recorder("A")],
            chief_only_hooks=[t.recorder("CHIEF")],
            checkpoint_dir=t.directory(),
        )
        t.note("HOOKS", hooks=["Rec" for _ in monitored._hooks])
        with monitored:
            monitored.run(op)


def _with_saver(
    t: Trace,
    *more: Any,
    save_steps: int,
    stop_at: int | None = None,
    second: bool = True,
    runs: int | None = None,
) -> None:
    """A saver with one or two listeners; the first may ask for a stop."""
    scaffold = v1.train.Scaffold()
    listeners = [t.listener("L1", stop_at=stop_at)]
    if second:
        listeners.append(t.listener("L2"))
    saver = v1.train.CheckpointSaverHook(
        t.directory(), save_steps=save_steps, scaffold=scaffold, listeners=listeners
    )
    t.train_with(
        t.recorder("A"), saver, *more, config={"scaffold": scaffold}, runs=runs
    )


SCENARIOS.update(
    checkpoint_listeners=lambda t: _with_saver(
        t, t.recorder("B"), save_steps=2, runs=5
    ),
    checkpoint_listener_requests_stop=lambda t: _with_saver(
        t, t.recorder("B"), save_steps=2, stop_at=2
    ),
    # What `after_save` returns in `after_create_session` is ignored.
    checkpoint_listener_requests_stop_at_first_save=lambda t: _with_saver(
        t, save_steps=10, stop_at=0, second=False, runs=2
    ),
    step_counter_summaries=lambda t: t.train_with(
        v1.train.StepCounterHook(every_n_steps=2, summary_writer=EventWriter(t.log)),
        runs=5,
    ),
    global_step_waiter=lambda t: t.train_with(
        t.recorder("A"), v1.train.GlobalStepWaiterHook(0), runs=1
    ),
    # When one `end` fails, later hooks get none; the session is closed.
    end_order_with_builtin_hooks_exception=lambda t: t.train_with(
        t.recorder("A"), v1.train.FinalOpsHook("nosuch:0"), t.recorder("B"), runs=1
    ),
)

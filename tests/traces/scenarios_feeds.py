"""Scenarios: feeds and options of hooks and of the loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from trace_events import describe_options
from trace_loop import Trace, scenario

v1 = tf.compat.v1
SessionRunArgs = v1.train.SessionRunArgs


class _Feeds(NamedTuple):
    p: Any
    q: Any
    out: Any


def _feeds() -> _Feeds:
    p = v1.placeholder_with_default(tf.constant(0.0), [], name="p")
    q = v1.placeholder_with_default(tf.constant(0.0), [], name="q")
    return _Feeds(p, q, tf.add(p * 10.0, q, name="out"))


@scenario
def feeds_merge(t: Trace) -> None:
    op, g = t.train_graph().train_op, t.late(_feeds)
    hooks = [
        t.recorder("A", args=lambda: SessionRunArgs(g().out, feed_dict={g().p: 1.0})),
        t.recorder("B", more=True),
    ]

    def body(monitored: Any, turn: int) -> Any:
        return monitored.run([op, g().out], feed_dict={g().q: 2.0})

    t.drive(t.session(hooks), op, runs=1, body=body, log_result=True)


@scenario
def feeds_two_hooks_same_tensor(t: Trace) -> None:
    op, g = t.train_graph().train_op, t.late(_feeds)
    hooks = [
        t.recorder("A", args=lambda: SessionRunArgs(None, feed_dict={g().p: 1.0})),
        t.recorder("X", args=lambda: SessionRunArgs(None, feed_dict={g().p: 2.0})),
        t.recorder("B"),
    ]
    t.drive(t.session(hooks), op, runs=1)


@scenario
def feeds_hook_and_user_same_tensor(t: Trace) -> None:
    op, g = t.train_graph().train_op, t.late(_feeds)
    hooks = [
        t.recorder("A", args=lambda: SessionRunArgs(None, feed_dict={g().p: 1.0})),
        t.recorder("B"),
    ]

    def body(monitored: Any, turn: int) -> Any:
        return monitored.run(op, feed_dict={g().p: 2.0})

    t.drive(t.session(hooks), op, runs=1, body=body)


@scenario
def feeds_same_tensor_by_name_and_object(t: Trace) -> None:
    op, g = t.train_graph().train_op, t.late(_feeds)
    hooks = [
        t.recorder("A", args=lambda: SessionRunArgs(g().out, feed_dict={g().p: 1.0})),
        t.recorder("B", args=lambda: SessionRunArgs(g().out, feed_dict={"p:0": 2.0})),
    ]
    t.drive(t.session(hooks), op, runs=1)


@scenario
def feeds_user_dict_not_mutated(t: Trace) -> None:
    op, g = t.train_graph().train_op, t.late(_feeds)
    hook = t.recorder("A", args=lambda: SessionRunArgs(None, feed_dict={g().p: 1.0}))

    def body(monitored: Any, turn: int) -> None:
        feed = {g().q: 2.0}
        monitored.run(op, feed_dict=feed)
        t.note("USER_FEED_AFTER", keys=sorted(k.name for k in feed))

    t.drive(t.session([hook]), op, runs=1, body=body)


@scenario
def feed_fn_hook(t: Trace) -> None:
    op, g = t.train_graph().train_op, t.late(_feeds)
    feeding = v1.train.FeedFnHook(lambda: {g().p: 3.0})
    reading = t.recorder("A", args=lambda: SessionRunArgs(g().out))
    t.drive(t.session([feeding, reading]), op, runs=1)


@scenario
def options_merge(t: Trace) -> None:
    op, loss = t.train_graph()
    soft, full = v1.RunOptions.SOFTWARE_TRACE, v1.RunOptions.FULL_TRACE
    first = v1.RunOptions(trace_level=soft, timeout_in_ms=60000)
    second = v1.RunOptions(
        trace_level=full,
        timeout_in_ms=30000,
        output_partition_graphs=True,
        report_tensor_allocations_upon_oom=True,
        inter_op_thread_pool=0,
    )
    user, metadata = v1.RunOptions(timeout_in_ms=90000), v1.RunMetadata()

    def body(monitored: Any, turn: int) -> None:
        monitored.run(op, options=user, run_metadata=metadata)
        t.note(
            "USER_OPTIONS_AFTER",
            options=describe_options(user),
            md_step_stats=len(metadata.step_stats.dev_stats) > 0,
            md_partition_graphs=len(metadata.partition_graphs) > 0,
        )

    hooks = [
        t.recorder("A", args=lambda: SessionRunArgs(loss, options=first), more=True),
        t.recorder("B", args=lambda: SessionRunArgs(loss, options=second), more=True),
        t.recorder("C", more=True),
    ]
    t.drive(t.session(hooks), op, runs=1, body=body)


@scenario
def options_not_sticky(t: Trace) -> None:
    """What a hook asks for in one run is not asked for in the next."""
    options = iter([v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)])

    def args() -> Any:
        for found in options:
            return SessionRunArgs(None, options=found)
        return None

    t.train_with(t.recorder("A", args=args, more=True), runs=2)


@scenario
def options_debug_watch_merge(t: Trace) -> None:
    def watching(node: str) -> Any:
        options = v1.RunOptions()
        watch = options.debug_options.debug_tensor_watch_opts.add()
        watch.node_name, watch.output_slot = node, 0
        watch.debug_ops.append("DebugIdentity")
        watch.debug_urls.append(f"file://{t.directory()}")
        return SessionRunArgs(None, options=options)

    class Hook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            watches = run_values.options.debug_options.debug_tensor_watch_opts
            t.note("WATCH", n=len(watches), nodes=[w.node_name for w in watches])

    t.train_with(
        t.recorder("A", args=lambda: watching("loss")),
        t.recorder("B", args=lambda: watching("w")),
        Hook(),
        runs=1,
    )

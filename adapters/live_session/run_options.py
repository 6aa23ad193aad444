"""`RunOptions` and `RunMetadata` for functions of the eager runtime.

The eager runtime returns no `step_stats` (when and where each op ran), but its profiler
sees the same ops: they are made of its planes. `ProfilerHook` and
`tf.compat.v1.profiler` make their timelines of them.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.ground import compat


def check(options: tf.compat.v1.RunOptions | None) -> None:
    """Refuse options that only a session on a real graph supports."""
    if options is not None and options.debug_options.debug_tensor_watch_opts:
        raise errors.LiveSessionError(
            "`RunOptions.debug_options` asks for watches on tensors, which only a "
            "session on a real graph can set. Fetch the tensors, or use "
            "`tf.debugging.experimental.enable_dump_debug_info`.",
            see="hook in fit",
        )


@contextlib.contextmanager
def applied(
    options: tf.compat.v1.RunOptions | None, metadata: tf.compat.v1.RunMetadata | None
) -> Iterator[None]:
    """Return a context in which one function is called under merged `RunOptions`.

    `timeout_in_ms` cancels the call with `DeadlineExceededError`; `trace_level` and
    `output_partition_graphs` fill `metadata`. `inter_op_thread_pool` and
    `report_tensor_allocations_upon_oom` have no effect: the eager runtime has one pool
    and always reports.
    """
    with contextlib.ExitStack() as stack:
        if options is not None and options.timeout_in_ms > 0:
            stack.enter_context(_deadline(options.timeout_in_ms))
        if options is not None and metadata is not None:
            if options.output_partition_graphs:
                stack.enter_context(_partition_graphs(metadata))
            if options.trace_level:
                stack.enter_context(_step_stats(metadata))
        yield


@contextlib.contextmanager
def _deadline(milliseconds: int) -> Iterator[None]:
    """Return a context that is cancelled when the time is over."""
    cancellation = compat.private("cancellation")
    manager = cancellation.CancellationManager()
    timer = threading.Timer(milliseconds / 1000, manager.start_cancel)
    timer.daemon = True
    timer.start()
    try:
        with cancellation.CancellationManagerContext(manager):
            yield
    except tf.errors.CancelledError as e:
        if not manager.is_cancelled:
            raise
        raise tf.errors.DeadlineExceededError(
            None, None, f"Timed out after {milliseconds} ms: {e.message}"
        ) from e
    finally:
        timer.cancel()


@contextlib.contextmanager
def _partition_graphs(metadata: tf.compat.v1.RunMetadata) -> Iterator[None]:
    context = compat.private("eager_context")()
    context.enable_run_metadata()
    try:
        yield
        metadata.partition_graphs.extend(context.export_run_metadata().partition_graphs)
    finally:
        context.disable_run_metadata()


@contextlib.contextmanager
def _step_stats(metadata: tf.compat.v1.RunMetadata) -> Iterator[None]:
    """Fill `metadata` with what runs in the body."""
    with tempfile.TemporaryDirectory(prefix="hookbridge") as directory:
        try:
            tf.profiler.experimental.start(
                directory,
                tf.profiler.experimental.ProfilerOptions(
                    host_tracer_level=2, python_tracer_level=0
                ),
            )
        except tf.errors.AlreadyExistsError:
            logging.warning(
                "hookbridge: another profiler is running (the TensorBoard callback's, "
                "say); a hook that asked for RunMetadata gets none for this step."
            )
            yield
            return
        try:
            yield
        finally:
            tf.profiler.experimental.stop()
        for path in Path(directory).rglob("*.xplane.pb"):
            space = compat.private("xplane_pb2").XSpace.FromString(path.read_bytes())
            for plane in space.planes:
                _add_plane(metadata.step_stats, plane)


def _add_plane(step_stats: tf.compat.v1.StepStats, plane: Any) -> None:
    """Add the ops of one profiler plane as one device."""
    device = plane.name.removeprefix("/host:").removeprefix("/device:")
    device = "CPU:0" if device == "CPU" else device
    nodes = []
    for line in plane.lines:
        for event in line.events:
            # Events of graph nodes are named `<node>:<op type>`; the others are
            # the runtime's own.
            label = plane.event_metadata[event.metadata_id].name
            name, colon, op = label.rpartition(":")
            if colon and op.isidentifier() and not name.endswith(":"):
                start_ns = line.timestamp_ns + event.offset_ps // 1000
                nodes.append((name, op, line.id, start_ns, event.duration_ps // 1000))
    if not nodes:
        return
    stats = step_stats.dev_stats.add(
        device=f"/job:localhost/replica:0/task:0/device:{device}"
    )
    for name, op, thread, start_ns, duration_ns in sorted(nodes, key=lambda n: n[3]):
        micros = max(1, round(duration_ns / 1000))
        stats.node_stats.add(
            node_name=name,
            timeline_label=f"{name} = {op}()",
            thread_id=thread % 2**31,
            all_start_micros=start_ns // 1000,
            op_end_rel_micros=micros,
            all_end_rel_micros=micros,
        )

"""`RunMetadata` for functions of the eager runtime.

A `Session` that is asked for a trace returns `step_stats`: which op ran when on
which device. The eager runtime has no such thing, but the profiler sees the same
ops; its host plane is turned into `step_stats`, from which `ProfilerHook` and
`tf.compat.v1.profiler` make their timelines.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import compat

v1 = tf.compat.v1


@contextlib.contextmanager
def recorded(options: Any, metadata: Any) -> Iterator[None]:
    """Fills `metadata` with what runs in the body, if `options` ask for a trace.

    Args:
      options: `RunOptions` or None.
      metadata: `RunMetadata` to fill, or None.
    """
    wanted = options is not None and metadata is not None and options.trace_level
    if not wanted:
        yield
        return
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


def _add_plane(step_stats: Any, plane: Any) -> None:
    """Adds the ops of one profiler plane as one device."""
    device = plane.name.removeprefix("/host:").removeprefix("/device:")
    if device == "CPU":
        device = "CPU:0"
    nodes = []
    for line in plane.lines:
        for event in line.events:
            # Events of graph nodes are named `<node>:<op type>`; the others are
            # the runtime's own.
            name, colon, op = plane.event_metadata[event.metadata_id].name.rpartition(
                ":"
            )
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

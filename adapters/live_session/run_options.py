"""What `RunOptions` mean for functions of the eager runtime."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.adapters.live_session import run_metadata


def check(options: Any) -> None:
    """Refuses options that ask for what only a session on a graph has.

    Raises:
      errors.LiveSessionError: for such options.
    """
    if options is not None and options.debug_options.debug_tensor_watch_opts:
        raise errors.LiveSessionError(
            "`RunOptions.debug_options` asks for watches on tensors, which only a "
            "session on a real graph can set. Fetch the tensors, or use "
            "`tf.debugging.experimental.enable_dump_debug_info`."
        )


def applied(options: Any, metadata: Any) -> contextlib.AbstractContextManager[None]:
    """A context in which one function is called under merged `RunOptions`.

    `timeout_in_ms` cancels the call, a `trace_level` fills
    `metadata.step_stats`, `output_partition_graphs` fills
    `metadata.partition_graphs`. `inter_op_thread_pool` and
    `report_tensor_allocations_upon_oom` have no effect: the eager runtime has one
    pool and always reports.

    Args:
      options: a `RunOptions`, or None.
      metadata: the `RunMetadata` to fill, or None.

    The context raises `tf.errors.DeadlineExceededError` after `timeout_in_ms`.
    """
    if options is None or not (
        options.trace_level
        or options.timeout_in_ms > 0
        or options.output_partition_graphs
    ):
        return contextlib.nullcontext()
    return _applied(options, metadata)


@contextlib.contextmanager
def _applied(options: Any, metadata: Any) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if options.timeout_in_ms > 0:
            stack.enter_context(_deadline(options.timeout_in_ms))
        if metadata is not None and options.output_partition_graphs:
            stack.enter_context(_partition_graphs(metadata))
        stack.enter_context(run_metadata.recorded(options, metadata))
        yield


@contextlib.contextmanager
def _deadline(milliseconds: int) -> Iterator[None]:
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
def _partition_graphs(metadata: Any) -> Iterator[None]:
    context = compat.private("eager_context")()
    context.enable_run_metadata()
    try:
        yield
        metadata.partition_graphs.extend(context.export_run_metadata().partition_graphs)
    finally:
        context.disable_run_metadata()

"""The session of hooks under `ParameterServerStrategy`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_session.session import LiveSession

Consistent = Callable[[], contextlib.AbstractContextManager[None]]


class ClusterSession(LiveSession):
    """A live session whose steps ran, or will run, on workers of a cluster.

    Everything but the step is executed on the coordinator, on the variables of the
    parameter servers.
    """

    # The saver's ops must go through `_execute`, to read all variables of one moment.
    saves_directly = False

    def __init__(self, consistent: Consistent, *args: Any) -> None:
        super().__init__(*args)
        self._consistent = consistent
        self.cluster_errors: list[BaseException] = []

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        if options is not None and options.ByteSize() and self.is_loop_step(fetches):
            raise errors.LiveSessionError(
                "A hook gave `RunOptions` for a training step. Under "
                "`ParameterServerStrategy` the step runs on a worker, where they "
                "cannot follow it. Leave them out; to profile, use "
                "`tf.profiler.experimental.client.trace` with the workers' addresses.",
                see="parameter servers",
            )
        try:
            return super().run(fetches, feed_dict, options, run_metadata)
        except (tf.errors.AbortedError, tf.errors.UnavailableError) as e:
            self.cluster_errors.append(e)
            raise

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """A context for calls of functions of the eager runtime."""
        with self._outside.as_default(), self._eager_mode():
            yield

    def _execute(
        self, plan: Any, feeds: Sequence[tuple[Any, Any]], options: Any, metadata: Any
    ) -> Any:
        closure = plan.program.closure
        others = closure.handles - {self._live_graph.global_step_name}
        if plan.reads_step and others and not closure.runs_step:
            # The global step and the weights must be of one moment, as in a checkpoint.
            with self._consistent():
                return super()._execute(plan, feeds, options, metadata)
        return super()._execute(plan, feeds, options, metadata)

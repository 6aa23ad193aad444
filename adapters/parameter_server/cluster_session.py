"""The session of hooks under `ParameterServerStrategy`, and how they get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.hooked_loop.monitored import HookWithoutEnd, shield
from hookbridge.adapters.live_session.plan import Plan
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.ground.protocols import Context, Hook


class ClusterSession(LiveSession):
    """A live session whose steps ran, or will run, on workers of a cluster.

    Everything but the step is executed on the coordinator, on the variables of the
    parameter servers.
    """

    # The saver's ops must go through `_execute`, to read all variables of one moment.
    saves_directly = False

    def __init__(self, consistent: Callable[[], Context], *args: Any) -> None:
        super().__init__(*args)
        self._consistent = consistent

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: tf.compat.v1.RunOptions | None = None,
        run_metadata: tf.compat.v1.RunMetadata | None = None,
    ) -> Any:
        if options is not None and options.ByteSize() and self.is_loop_step(fetches):
            raise errors.LiveSessionError(
                "A hook gave `RunOptions` for a training step. Under "
                "`ParameterServerStrategy` the step runs on a worker, where they "
                "cannot follow it. Leave them out; to profile, use "
                "`tf.profiler.experimental.client.trace` with the workers' addresses.",
                see="parameter servers",
            )
        return super().run(fetches, feed_dict, options, run_metadata)

    def _execute(self, plan: Plan, *of_run: Any) -> Any:
        """Run a program; wait for all steps where it needs values of one moment."""
        needed = plan.program.needed
        handles = needed.handles - {self._live_graph.global_step_name}
        if plan.reads_step and handles and not needed.runs_step:
            # The global step and the weights must be of one moment, as in a checkpoint.
            with self._consistent():
                return super()._execute(plan, *of_run)
        return super()._execute(plan, *of_run)


class ShieldedHook(HookWithoutEnd):
    """A hook whose errors of the cluster are raised as `ClusterFailure`."""

    def __init__(self, hook: Hook, note_lost: Callable[[], None]) -> None:
        super().__init__(hook)
        for name in ("begin", "after_create_session", "before_run", "after_run"):
            setattr(self, name, shield(getattr(self, name), note_lost))


def saves_after(hook: Hook, global_step: int) -> bool:
    """Return whether a hook will save after the step that ends at this global step."""
    # Then no other step may be in flight, or the checkpoint would contain a later step.
    timer = getattr(hook, "_timer", None)
    return (
        isinstance(hook, tf.compat.v1.train.CheckpointSaverHook)
        and timer is not None
        and bool(timer.should_trigger_for_step(global_step))
    )

"""Hooks that are called for the steps of a session, and not for its other runs."""

from __future__ import annotations

from typing import Any, ClassVar

import wrapt

from hookbridge.adapters.guests.copies import CopiedWrapper
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.session_graph.steps import steps_of
from hookbridge.ground.lifecycle import Kind
from hookbridge.ground.protocols import RunContext, RunValues


class HookOnSteps(CopiedWrapper, wrapt.ObjectProxy):  # type: ignore[misc,type-arg]
    """A proxy of a hook: a run that is not a step does not call it."""

    acts_as: ClassVar[Kind] = "hook"

    def __init__(self, record: Guest) -> None:
        super().__init__(record.item)
        self._self_record = record
        self._self_graph: Any = None
        self._self_steps: Any = None  # those of the graph
        self._self_is_step = False

    def before_run(self, run_context: RunContext) -> Any:
        graph = run_context.session.graph
        if graph is not self._self_graph:
            self._self_graph, self._self_steps = graph, steps_of(graph)
        steps = self._self_steps  # each run of a prediction is a step
        fetches = run_context.original_args.fetches
        self._self_is_step = steps is None or steps.kind_of(fetches).step is not None
        return self.guest.before_run(run_context) if self._self_is_step else None

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        if self._self_is_step:
            self.guest.after_run(run_context, run_values)

"""Hooks that are called for the steps of a session, and not for its other runs."""

from __future__ import annotations

import weakref
from typing import Any

import wrapt

from hookbridge.adapters.guests.record import Guest, Wrapper
from hookbridge.adapters.session_graph.steps import StepGraph, steps_of


class Steps:
    """Which runs are steps, for all hooks of one `as_hooks` call."""

    def __init__(self) -> None:
        self._of: weakref.WeakKeyDictionary[Any, StepGraph | None] = (
            weakref.WeakKeyDictionary()
        )

    def has(self, run_context: Any) -> bool:
        """Whether a run is a step; each run of a prediction is one."""
        graph = run_context.session.graph
        if graph not in self._of:
            self._of[graph] = steps_of(graph)
        steps, fetches = self._of[graph], run_context.original_args.fetches
        return steps is None or steps.step_of(fetches) is not None


class HookOnSteps(Wrapper, wrapt.ObjectProxy):  # type: ignore[misc,type-arg]
    """A proxy of a hook: a run that is no step does not call it."""

    acts_as = "hook"

    def __init__(self, record: Guest, steps: Steps) -> None:
        super().__init__(record.item)
        # A `wrapt` proxy keeps its own attributes only under names with `_self_`.
        self._self_record = record
        self._self_steps = steps
        self._self_is_step = False

    @property
    def record(self) -> Guest:  # type: ignore[override]
        return self._self_record

    def before_run(self, run_context: Any) -> Any:
        self._self_is_step = self._self_steps.has(run_context)
        return self.guest.before_run(run_context) if self._self_is_step else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._self_is_step:
            self.guest.after_run(run_context, run_values)

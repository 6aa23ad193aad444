"""The callbacks of one `as_hooks` call: they share one run in each session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests import roles, written
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.session_graph import session_variables
from hookbridge.adapters.session_graph.steps import steps_of
from hookbridge.adapters.session_loop import v1_tensorboard
from hookbridge.adapters.session_loop.evaluations.evaluation_run import (
    EvaluationRun,
    PredictionRun,
)
from hookbridge.adapters.session_loop.evaluations.validations import as_validation
from hookbridge.adapters.session_loop.shared import checks
from hookbridge.adapters.session_loop.shared.callback_run import CallbackRun
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.adapters.session_loop.training_run.training import TrainingRun
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph


class CallbackGroup:
    """Makes the runs of its callbacks: one in each session's first `begin`.

    The same hooks may serve several `train` calls, with `evaluate` in between.
    """

    def __init__(self, config: HookOptions) -> None:
        self.config: HookOptions = config
        self.all_guests: list[Guest] = []  # hooks too, in the order of the list
        self.run: CallbackRun | None = None
        self._skipped: set[str] = set()
        as_validation(config.validation)

    def add(self, guest: Guest) -> Guest:
        """Take a callback into the group; its record may name another to be called."""
        guest, config = v1_tensorboard.with_present_class(guest), self.config
        checks.check_guest(guest, has_model=config.model is not None)
        written.check_files(guest, [*self.all_guests, guest])
        if config.steps_per_epoch is None and checks.needs_epochs_only(guest):
            raise checks.no_epochs_error(guest, config)
        self.config = replace(config, callbacks=(*config.callbacks, guest))
        return guest

    def begin(self, member: object) -> CallbackRun:
        """Let a member join the session's run, in its `begin`, or start a new run."""
        graph = tf.compat.v1.get_default_graph()
        run = self.run
        if (
            run is None
            or run.graph is not graph
            or run.session is not None
            or run.finished
            or any(m is member for m in run.members)
        ):
            run = self.run = self._new_run(graph)
        run.join(member, takes_part=self._takes_part(member))
        return run

    def _takes_part(self, member: Any) -> bool:
        """Return whether a member's callback is called on this worker."""
        if roles.runs_here(member.role):
            return True
        name = member.record.name
        if name not in self._skipped:
            self._skipped.add(name)
            roles.say_skipped(name, member.role)
        return False

    def _new_run(self, graph: Graph) -> CallbackRun:
        config, counter = self.config, collected.global_step(graph)
        own_variables = [counter, *session_variables.all_variables(graph)]
        checks.check_variables(config.callbacks, own_variables)
        steps = steps_of(graph)
        if steps is None:
            return PredictionRun(config, graph, counter)
        run = TrainingRun if collected.eval_step(graph) is None else EvaluationRun
        return run(config, graph, counter, steps)

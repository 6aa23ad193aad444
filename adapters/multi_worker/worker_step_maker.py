"""The steps of one process of a `fit` on several processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.fit_graph import FitGraphPart
from hookbridge.adapters.fit_loop.fit_session import FitSessionPart
from hookbridge.adapters.fit_loop.model_step import ModelInstallation
from hookbridge.adapters.fit_loop.native_step_maker import NativeStepMaker
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.guests.roles import given_role
from hookbridge.adapters.guests.skipped import SkippedHook
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.hooked_loop.monitored import ClusterFailure, LaterStop
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.ground.protocols import Hook


def worker_host(run: HookedRun) -> LoopHost:
    """The host of a run in one of several processes."""
    graph = FitGraphPart(run.model)
    maker = WorkerStepMaker(run, graph, ModelInstallation(run.model))
    return LoopHost(graph, FitSessionPart(run, graph, maker.make_session), maker)


class WorkerStepMaker(NativeStepMaker):
    """Makes the steps of `fit`, `evaluate` and `predict` of one process under several.

    The others wait for this process in each step. So a stop does not end its steps: it
    becomes `stop_training`, and `EndTogether` decides when that counts. All else is as
    in one process.
    """

    _has_failed_stop = False

    def hook_of(self, guest: Guest) -> Any:
        """See `StepMaker`; a hook that saves the model is called on the chief."""
        extended = self._run.model.distribute_strategy.extended
        if is_of_chief(guest) and not extended.should_checkpoint:
            return SkippedHook(guest, "chief")
        return guest.item

    def monitored_hooks(self, hooks: Sequence[Hook]) -> list[Hook]:
        later = LaterStop(lambda: self._run.mode == "train", self._run.stop)
        return [*super().monitored_hooks(hooks), later]

    @property
    def is_without_hooks(self) -> bool:
        """After a stop by an error, steps are made without hooks."""
        return self._has_failed_stop

    def run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        """Makes the prepared step with a program around it, for the session."""
        try:
            return super().run_step(program, feeds)
        except (tf.errors.AbortedError, tf.errors.UnavailableError) as e:
            raise ClusterFailure(e) from e  # another process is lost

    def stopped_by(self, error: BaseException) -> Any:
        """See `StepMaker`; the step is made in any case, since the others make it."""
        if self._run.mode != "train":
            return super().stopped_by(error)
        self._has_failed_stop = True
        outputs = self.take_outputs()
        return self.make_without_hooks() if outputs is None else outputs


def is_of_chief(guest: Guest) -> bool:
    """Whether a hook runs on the chief although nobody has set its role."""
    return guest.saves_checkpoints and given_role(guest.item) is None

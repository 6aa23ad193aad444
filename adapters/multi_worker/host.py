"""One process of a `fit` on several processes as the host of hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.host import FitHost
from hookbridge.adapters.guests.record import Guest
from hookbridge.adapters.guests.roles import given_role
from hookbridge.adapters.guests.skipped import SkippedHook
from hookbridge.adapters.hooked_loop.monitored import ClusterFailure, LaterStop
from hookbridge.adapters.live_session.program import SessionProgram


class MultiWorkerHost(FitHost):
    """`fit`, `evaluate` and `predict` of one process under several.

    The others wait for this process in each step. So a stop does not end its steps: it
    becomes `stop_training`, and `EndTogether` decides when that counts.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._has_failed_stop = False

    def members(self, hooks: Sequence[Any]) -> list[Any]:
        later = LaterStop(lambda: self.mode == "train", self.loop.stop)
        return [*super().members(hooks), later]

    def hook_of(self, guest: Guest) -> Any:
        """See `Host`; a hook that saves the model is called on the chief."""
        extended = self.model.distribute_strategy.extended
        if is_of_chief(guest) and not extended.should_checkpoint:
            return SkippedHook(guest, "chief")
        return guest.item

    def call(self, args: tuple[Any, ...]) -> Any:
        """See `Host`; after a stop by an error, steps are made without hooks."""
        if self._has_failed_stop:
            return self.native_step.kept(*args)
        return super().call(args)

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        try:
            return super()._run_step(program, feeds)
        except (tf.errors.AbortedError, tf.errors.UnavailableError) as e:
            raise ClusterFailure(e) from e  # another process is lost

    def stopped_by(self, error: BaseException) -> Any:
        """See `Host`; the step is made in any case, since the others make it too."""
        if self.mode != "train":
            return super().stopped_by(error)
        self._has_failed_stop = True
        outputs = self._take_outputs()
        return self.native_step.kept(*self._args) if outputs is None else outputs


def is_of_chief(guest: Guest) -> bool:
    """Whether a hook runs on the chief although nobody has set its role."""
    return guest.saves_checkpoints and given_role(guest.item) is None

"""The steps of one process of a `fit` on several processes."""

from __future__ import annotations

from typing import Any

from hookbridge.adapters.fit_loop.native_step_maker import StepPolicy, fit_host
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.guests.skipped import SkippedHook
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.hooked_loop.monitored import LaterStop, shield
from hookbridge.adapters.live_session.session import StepRunner
from hookbridge.ground.protocols import Hook


def worker_host(run: HookedRun) -> LoopHost:
    """Return the host of a run in one of several processes."""
    return fit_host(run, policy=SharedSteps(run))


class SharedSteps(StepPolicy):
    """That of one of several processes: the others wait for it in each step.

    So a stop does not end its steps: it becomes `stop_training`, and `EndTogether`
    decides when that counts.
    """

    def __init__(self, run: HookedRun) -> None:
        self._run = run

    def hook_of(self, guest: Guest) -> Any:
        """Return the hook; only the chief calls one that saves the model."""
        extended = self._run.model.distribute_strategy.extended
        if guest.is_of_chief and not extended.should_checkpoint:
            return SkippedHook(guest, "chief")
        return guest.item

    def last_hooks(self) -> list[Hook]:
        """Return a hook that sees the stops of all others."""
        return [LaterStop(lambda: self._run.mode == "train", self._run.stop)]

    def guarded(self, run_step: StepRunner) -> StepRunner:
        """Return what makes a step and marks errors that another process has caused."""
        return shield(run_step)

    def goes_on(self) -> bool:
        """Return whether to go on without hooks.

        The others make the step in any case, so this process has to make it too.
        """
        return self._run.mode == "train"

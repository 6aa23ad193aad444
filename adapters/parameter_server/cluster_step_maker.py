"""The steps of `fit` under `ParameterServerStrategy`.

Steps are scheduled and nobody waits for them. When the values of a step have arrived,
guests get all events of the step in the usual order (`before_run`, `after_run`, the
batch events). By then at most `max_lag` later steps have been scheduled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.fit_graph import FitGraphPart
from hookbridge.adapters.fit_loop.fit_session import FitSessionPart
from hookbridge.adapters.fit_loop.model_step import ModelInstallation
from hookbridge.adapters.fit_loop.step_source import StepSource
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost, StepMaker
from hookbridge.adapters.hooked_loop.modes import TEST, TRAIN
from hookbridge.adapters.hooked_loop.monitored import (
    ClusterFailure,
    LaterStop,
)
from hookbridge.adapters.parameter_server.cluster_session import (
    ClusterSession,
    ShieldedHook,
    saves_after,
)
from hookbridge.adapters.parameter_server.event_queue import (
    EventQueue,
    connected_workers,
)
from hookbridge.adapters.parameter_server.exit import PREEMPTED, end_with_threads
from hookbridge.adapters.parameter_server.keras_calls import (
    cached_reads,
    no_empty_epochs,
)
from hookbridge.adapters.parameter_server.scheduled_step import ScheduledStep
from hookbridge.adapters.parameter_server.scheduler import Scheduler
from hookbridge.adapters.parameter_server.step_values import StepValue
from hookbridge.ground.patching import assign
from hookbridge.ground.protocols import Arguments, Hook
from hookbridge.ground.step_errors import END_OF_DATA


def cluster_host(run: HookedRun) -> LoopHost:
    """Return the host of a run whose steps are scheduled on remote workers."""
    graph = FitGraphPart(run.model)
    maker = ClusterStepMaker(run, graph)
    return LoopHost(graph, FitSessionPart(run, graph, maker.make_session), maker)


class ClusterStepMaker(StepMaker):
    """Makes the steps of one `fit` on remote workers, and delivers their events."""

    def __init__(self, run: HookedRun, graph: FitGraphPart) -> None:
        model = run.model
        self._run = run
        self._callbacks = 0
        self._has_outputs = False
        self._graph = graph
        self.events: EventQueue = EventQueue(
            self._guard, lambda v: self._scheduler.load(v), connected_workers()
        )
        self._scheduler = Scheduler(model, graph, self.events)
        self._patches = contextlib.ExitStack()
        self._installation = ModelInstallation(model)

    def install(self) -> None:
        model = self._run.model
        self._patches.enter_context(cached_reads(model))
        self._patches.enter_context(no_empty_epochs(model, self._delivered))
        end_with_threads(model.distribute_strategy)
        self._installation.install(self._run, self._step_function_of)

    @property
    def data_ended(self) -> bool:
        return self._scheduler.data_ended

    def add_callback(self, max_lag: int | None) -> None:
        self._callbacks += 1
        self.events.limit_lag(max_lag)

    def callback_ended(self) -> None:
        """Note that a callback had its end; the last one ends a run without hooks."""
        self._callbacks -= 1
        if self._callbacks == 0 and not self._run.hooks:
            self._run.leave()

    def monitored_hooks(self, hooks: Sequence[Hook]) -> list[Hook]:
        return [
            *(ShieldedHook(hook, self._note_lost) for hook in hooks),
            LaterStop(lambda: self._scheduler.ahead, self._ask_stop),
        ]

    def _step_function_of(self, source: StepSource) -> ScheduledStep | None:
        """Return what schedules the steps of a loop; None where no hook takes part."""
        if source.mode is TRAIN:
            return ScheduledStep(source)
        hooks = self._run.hooks
        if hooks:
            loop = "evaluate" if source.mode is TEST else source.mode.name
            raise errors.RefusedError(
                f"Hooks cannot run in `{loop}` under `ParameterServerStrategy`: "
                f"{', '.join(type(h).__name__ for h in hooks)}. They can in "
                "`fit`; for the other loops restore a checkpoint into a model made "
                "outside the strategy.",
                see="parameter servers",
            )
        return None

    # -- a step ----------------------------------------------------------------------

    @property
    def is_apart_from_hooks(self) -> bool:
        """Return whether the next step is scheduled ahead of its events."""
        # In the first step, or without lag, hooks come first: the step is scheduled
        # with what they fetch.
        run = self._run
        return not run.hooks or (run.has_begun and self.events.max_lag > 0)

    def make_apart_from_hooks(self, args: Arguments) -> Any:
        """Schedule a step whose events are delivered later."""
        run, scheduler = self._run, self._scheduler
        if any(state.keeper.checkpoints for state in run.states):
            # What callbacks do in a step with a checkpoint comes before the next step.
            self.events.flush()
            run.tell_states_step_is_over()
        if scheduler.is_another(self._installation.step_function):
            self.events.flush()  # what is due belongs to the step before
        scheduler.prepare(self._installation.step_function, args)
        try:
            value = scheduler.schedule()
        except END_OF_DATA:
            self.events.flush()
            raise
        except BaseException:
            run.fail()
            raise
        outputs = scheduler.take_outputs()
        if run.hooks:
            self.events.add(value, lambda: self._replay(value))
        count = scheduler.in_flight.count
        saves = any(saves_after(hook, count) for hook in run.hooks)
        self.events.deliver(0 if saves else None)
        self._stop_if_preempted()
        return outputs

    def _replay(self, value: StepValue) -> None:
        """Give the hooks the events of a step that was scheduled earlier."""
        if self._scheduler.load(value) is None:
            return
        with self._scheduler.presenting(value):
            if self._run.make_step_with_hooks().stops:
                self._ask_stop()

    def prepare(self, args: Arguments) -> None:
        self.events.flush()
        self._scheduler.prepare(self._installation.step_function, args)

    def open(self) -> int:
        return self._scheduler.open()

    def make_session(self) -> ClusterSession:
        """Return a session for hooks, whose steps are the scheduled ones."""
        return self._scheduler.make_session()

    def run(self, monitored: tf.compat.v1.train.MonitoredSession) -> Any:
        monitored.run(self._graph.live.loop_fetches)
        self._has_outputs = True
        if self._scheduler.present is None:
            self._stop_if_preempted()
        return self._scheduler.take_outputs()

    def _stop_if_preempted(self) -> None:
        if PREEMPTED.is_set():
            self._run.stop()

    def stop(self) -> None:
        assign(self._run.model, stop_training=True)

    def stopped_by(self, error: BaseException) -> Any:
        outputs = self._scheduler.take_outputs()
        if outputs is not None:
            return outputs  # `after_run` raised: the step has been made
        return self._installation.without_step(error, is_first=not self._has_outputs)

    # -- what is due, and what has failed --------------------------------------------

    def _delivered(self) -> int:
        self.events.flush()
        return self._scheduler.in_flight.delivered

    def _note_lost(self) -> None:
        self._scheduler.in_flight.is_broken = True

    def _ask_stop(self) -> None:
        self.events.stop_asked = True

    def _guard(self, deliver: Callable[[], None]) -> None:
        """Run a delivery; errors of guests have the same effects as in a step."""
        try:
            deliver()
        except ClusterFailure as e:
            self._run.fail()
            raise e.error from None
        except END_OF_DATA as e:
            if type(e) not in END_OF_DATA:
                self._run.fail()
                raise
            self._ask_stop()
        except BaseException:
            self._run.fail()
            raise
        if self.events.stop_asked:
            self._run.stop()

    def flush(self) -> None:
        self.events.flush()

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        if not self._scheduler.in_flight.is_broken:
            # No step of this run may go on after the run.
            with contextlib.suppress(Exception):
                self._run.model._cluster_coordinator.join()
            yield
            return
        with contextlib.suppress(tf.errors.OpError):
            yield

    # -- the model -------------------------------------------------------------------

    def suspend(self) -> None:
        self._installation.suspend()

    def resume(self) -> None:
        self._installation.resume()

    def leave(self) -> None:
        self._installation.leave()
        self._patches.close()
        self._scheduler.leave()
        self.events.forget()

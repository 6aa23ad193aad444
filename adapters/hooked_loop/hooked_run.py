"""One run of a native loop with hooks.

TensorFlow's own `MonitoredSession` drives the hooks: its code decides what runs after
which failure, how fetches, feeds and options are merged, and how to recover.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests.guest_record import Guest, record_of
from hookbridge.adapters.guests.skipped import SkippedHook
from hookbridge.adapters.hooked_loop import refusals
from hookbridge.adapters.hooked_loop.epoch_means import EpochMeans
from hookbridge.adapters.hooked_loop.fit_states import FitStates
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.hooked_loop.model_loops import ModelLoops, innermost, suspended
from hookbridge.adapters.hooked_loop.monitored import (
    ClusterFailure,
    check_clash,
    error_with_hook,
    not_end_of_data_error,
)
from hookbridge.ground.protocols import Arguments, Hook, KerasModel
from hookbridge.ground.step_errors import END_OF_DATA

# Puts the host of a run together.
MakeHost: TypeAlias = "Callable[[HookedRun], LoopHost]"
_numbers = itertools.count()


class StepResult(NamedTuple):
    """What a step has come to."""

    outputs: Any  # what the native loop gets
    stops: bool  # whether a hook has asked for a stop


class HookedRun:
    """The state of one run; nothing of it outlives the run."""

    def __init__(self, model: KerasModel, make_host: MakeHost) -> None:
        self.number: int = next(_numbers)
        self.model = model
        # "train", "test" or "predict"; None before the native loop begins.
        self.mode: str | None = None
        self.hooks: list[Any] = []
        self.states: list[FitStates] = []
        # Who keeps the means of the epoch, if the native loop does not.
        self.means: EpochMeans | None = None
        self.is_over: bool = False
        # Whether a hook, and no callback, has ended the training.
        self.is_stopped: bool = False
        self._monitored: Any = None
        # The hooks as `MonitoredSession` has them.
        self._monitored_hooks: list[Any] = []
        # Those who have not had their last event: hooks, and the states of callbacks.
        self._going_on: list[Any] = []
        self.loops: ModelLoops = ModelLoops(self)
        self.host: LoopHost = make_host(self)

    @classmethod
    def open(cls, model: KerasModel, make_host: MakeHost) -> HookedRun:
        """Open a run, which has the model's loops until it is over."""
        run = cls(model, make_host)
        run.loops.take()
        return run

    @classmethod
    def join(cls, model: KerasModel, make_host: MakeHost) -> HookedRun:
        """Return the run that waits for the model's next loop, or open one."""
        run: HookedRun | None = innermost(model)
        if run is not None and run.mode is not None:
            run.leave()  # its native loop has ended, but nobody called `leave`
            run = None
        return cls.open(model, make_host) if run is None else run

    def add(self, guest: Guest, max_lag: int | None = None) -> Any:
        """Take a hook into the run; return what this process calls for it."""
        hook = self.host.step_maker.hook_of(guest)
        self.hooks.append(hook)
        self._going_on.append(hook)
        self.host.step_maker.add_callback(max_lag)
        return hook

    def add_states(self, states: FitStates) -> None:
        """Take the state of the callbacks of a saving hook into the run."""
        self.states.append(states)
        self._going_on.append(states)

    @property
    def is_suspended(self) -> bool:
        """Return whether a loop inside this one has the model."""
        return self in suspended()

    def note_begin(self, mode: str) -> None:
        """Note that the native loop begins: `train`, `test` or `predict`."""
        self.mode = mode
        self.loops.note_begin()

    @property
    def guests(self) -> list[Guest]:
        """The records of the users' hooks that this process calls."""
        called = [hook for hook in self.hooks if not isinstance(hook, SkippedHook)]
        return [record_of(hook) for hook in called]

    @property
    def has_begun(self) -> bool:
        return self._monitored is not None

    @property
    def waits(self) -> bool:
        """Return whether the run goes on and its hooks have had no event yet."""
        return not self.has_begun and not self.is_over

    def call(self, *args: object) -> Any:
        """Make one step; the native loop calls this in place of its own function."""
        try:
            maker = self.host.step_maker
            if maker.is_apart_from_hooks:
                return maker.make_apart_from_hooks(args)
            return self._make_with_hooks(args)
        except ClusterFailure as e:
            raise e.error from None

    def _make_with_hooks(self, args: Arguments) -> Any:
        """Make a native step as one run of the `MonitoredSession`."""
        maker = self.host.step_maker
        maker.prepare(args)
        try:
            if self._monitored is None:
                self._start()
            result = self.make_step_with_hooks()
            if result.stops:
                self.stop()
            return result.outputs
        except END_OF_DATA as e:
            if maker.data_ended:
                raise  # the native loop ends its epoch
            # The exact type counts, as in a MonitoredSession.
            if type(e) in END_OF_DATA:
                self.stop()
                return maker.stopped_by(e)
            self.fail()
            raise not_end_of_data_error(e) from e
        except BaseException:
            self.fail()
            raise

    def make_step_with_hooks(self) -> StepResult:
        """Make the prepared step of the host, with the events of the hooks."""
        self.tell_states_step_is_over()
        with self.host.graph_part.calling_hooks():
            try:
                outputs = self.host.step_maker.run(self._monitored)
            except (errors.UnknownTensorError, errors.RunArgumentsError) as e:
                named = error_with_hook(
                    e, self._monitored_hooks, self.host.session_part.current
                )
                raise named from (None if named is e else e)
            except RuntimeError as e:
                check_clash(e, self._monitored_hooks)
                raise
            return StepResult(outputs, bool(self._monitored.should_stop()))

    def tell_states_step_is_over(self) -> None:
        """Tell the states that all guests have had the events of the last step."""
        for state in self.states:
            state.before_step()

    def stop(self) -> None:
        """Make this step the last one of the native loop: a hook has asked for it."""
        self.note_stop()
        self.host.step_maker.stop()

    def note_stop(self) -> None:
        """Note that the training ends after this step, not by a callback."""
        if not getattr(self.model, "stop_training", False):
            self.is_stopped = True

    def _start(self) -> None:
        """Trace the step; create the session, which calls the hooks' first two events.

        These are `begin` and `after_create_session`.
        """
        graph, session, maker = self.host
        global_step = maker.open()
        for guest in self.guests:
            refusals.check_start(guest, global_step)
        try:
            with graph.calling_hooks():
                self._monitored_hooks = maker.monitored_hooks(self.hooks)
                self._monitored = tf.compat.v1.train.MonitoredSession(
                    session_creator=session, hooks=self._monitored_hooks
                )
        except END_OF_DATA as e:
            raise not_end_of_data_error(e) from e
        if self._monitored.should_stop():
            raise StopIteration("a hook has stopped the run before its first step")

    def end(self, hook: Hook) -> None:
        """Call the `end` of one hook, after a clean finish."""
        self.host.step_maker.flush()
        if self._monitored is None or self.is_over:
            return
        try:
            with self.host.graph_part.calling_hooks():
                self.host.session_part.end(hook)
        except BaseException:
            self.fail()
            raise
        self.note_ended(hook)

    def note_ended(self, member: object) -> None:
        """Note that a member has had its last event; the last one ends it all."""
        if self._monitored is None or self.is_over:
            return
        places = [i for i, other in enumerate(self._going_on) if other is member]
        if places:
            del self._going_on[places[0]]
        if not self._going_on:
            self._close()

    def _close(self) -> None:
        self.host.graph_part.remember()
        try:
            with self.host.graph_part.calling_hooks():
                self._monitored.close()
        finally:
            self.leave()

    def fail(self) -> None:
        """Close the session in the handler of an exception, without any `end`."""
        if self.is_over:
            return
        graph, session, maker = self.host
        try:
            with maker.failing():
                if self._monitored is not None:
                    with graph.calling_hooks():
                        self._monitored.__exit__(*sys.exc_info())
                elif session.current is not None:  # `after_create_session` failed
                    session.current.close()
        finally:
            self.leave()

    def leave(self) -> None:
        """Give the model its own methods back: the run is over."""
        if self.is_over:
            return
        self.is_over = True
        self.loops.give_back()
        for state in self.states:
            state.stop_listening()

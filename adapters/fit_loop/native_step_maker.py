"""The steps of Keras's loops, or of a loop of the user's own, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.batches import as_iterators
from hookbridge.adapters.fit_loop.fit_graph import FitGraphPart
from hookbridge.adapters.fit_loop.fit_session import FitSessionPart
from hookbridge.adapters.fit_loop.model_step import ModelInstallation, end_quietly
from hookbridge.adapters.fit_loop.step_function import ModelsOwnFunction, StepFunction
from hookbridge.adapters.fit_loop.step_source import StepInstallation, StepSource
from hookbridge.adapters.guests import fetched
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost, StepMaker
from hookbridge.adapters.hooked_loop.modes import PREDICT, TRAIN
from hookbridge.adapters.keras_model.structure import steps_per_execution
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession, StepRunner
from hookbridge.ground import compat
from hookbridge.ground.protocols import Arguments, Hook
from hookbridge.ground.step_errors import END_OF_DATA


class StepPolicy:
    """What differs between processes in their steps; this is for a single process."""

    def hook_of(self, guest: Guest) -> Any:
        """Return the hook that this process calls for a guest."""
        return guest.item

    def last_hooks(self) -> list[Hook]:
        """Return what is called after the hooks of the user."""
        return []

    def guarded(self, run_step: StepRunner) -> StepRunner:
        """Return what a session calls to make a step."""
        return run_step

    def goes_on(self) -> bool:
        """Return whether the loop goes on, without hooks, after an error."""
        return False


def fit_host(
    run: HookedRun,
    installation: StepInstallation | None = None,
    policy: StepPolicy | None = None,
) -> LoopHost:
    """Return the host of a run in Keras's loops, or of `installation`.

    Args:
      run: the run.
      installation: what makes the loop call the run; None for loops of Keras.
      policy: what differs if other processes wait for the steps; None if none does.
    """
    graph = FitGraphPart(run.model)
    installation = installation or ModelInstallation(run.model)
    maker = NativeStepMaker(run, graph, installation, policy or StepPolicy())
    return LoopHost(graph, FitSessionPart(run, graph, maker.make_session), maker)


class NativeStepMaker(StepMaker):
    """Makes the native step of a run; `installation` makes the loop call it.

    A step goes through here twice: the loop calls `run`, which gives the step to
    `MonitoredSession`, and its session calls `run_step`. What passes by the session are
    the loop's arguments and what the loop gets, so they are fields.

    Args:
      run: the run whose steps are made.
      graph: what hooks see of the model.
      installation: what makes the loop call the run.
      policy: what differs if other processes wait for the steps.
    """

    is_apart_from_hooks = False  # whether the loop goes on so, after an error of a hook
    data_ended = False

    def __init__(
        self,
        run: HookedRun,
        graph: FitGraphPart,
        installation: StepInstallation,
        policy: StepPolicy,
    ) -> None:
        self._policy = policy
        self._run = run
        self._graph = graph
        self._installation = installation
        self._args: Arguments = ()
        self._outputs: Any = None
        self._has_outputs = False
        self._is_stopped = False
        # Whether a call makes several steps; the step's own count is read only then.
        self._makes_several_steps = False
        self._eager_mode = compat.private("eager_mode")
        # The graph of the native loop, which holds the strategy's scope. The native
        # step runs under it, in `_eager_mode()`.
        self._loop_graph: Any = None
        self._opened: StepFunction | None = None  # the function that hooks see
        self._session: LiveSession | None = None

    def install(self) -> None:
        self._installation.install(self._run, self._step_function_of)

    @property
    def step_function(self) -> StepFunction:
        function: StepFunction = self._installation.step_function
        return function

    def hook_of(self, guest: Guest) -> Any:
        return self._policy.hook_of(guest)

    def monitored_hooks(self, hooks: Sequence[Hook]) -> list[Hook]:
        return [*super().monitored_hooks(hooks), *self._policy.last_hooks()]

    def _step_function_of(self, source: StepSource) -> StepFunction:
        """Return the function of the run's step: an earlier run's if there is one."""
        earlier = source.function_on_model
        if isinstance(earlier, ModelsOwnFunction):
            return earlier.step_function
        hooks = [guest.item for guest in self._run.guests]
        names = {name for hook in hooks for name in fetched.tensor_names(hook)}
        if source.mode is not PREDICT and any(map(fetched.may_fetch_loss, hooks)):
            names.add("loss:0")
        return StepFunction(source, frozenset(names))

    def prepare(self, args: Arguments) -> None:
        self.data_ended = False
        if self._is_stopped:
            # Keras 2 has no other way to end `evaluate` and `predict`.
            end_quietly()
            raise tf.errors.OutOfRangeError(None, None, "A hook asked for a stop.")
        self._loop_graph = tf.compat.v1.get_default_graph()
        self._args = as_iterators(args)
        opened, function = self._opened, self.step_function
        if opened is not None and not (
            opened is function and self._graph.optimizer is function.optimizer
        ):
            self._renew()

    def open(self) -> int:
        self._discover()
        return self._graph.build(self.step_function)

    def _renew(self) -> None:
        """Show hooks the step and the optimizer that a callback has changed."""
        self.step_function.forget_variants()
        self._discover()
        self._graph.renew(self.step_function)
        if self._session is not None:
            self._session.renew(self.step_function.traced_programs)

    def _discover(self) -> None:
        """Trace the step that is there now."""
        function = self._opened = self.step_function
        function.discover(*self._args)
        several = steps_per_execution(self._run.model) > 1
        self._makes_several_steps = several and self._installation.mode is TRAIN

    def make_session(self) -> LiveSession:
        """Return a session on the run's graph, whose steps are those of this part."""
        traced = self.step_function.traced_programs
        run_step = self._policy.guarded(self.run_step)
        session = self._session = self._graph.make_session(run_step, traced)
        return session

    def run(self, monitored: tf.compat.v1.train.MonitoredSession) -> Any:
        monitored.run(self._graph.live.loop_fetches)
        self._has_outputs = True
        return self.take_outputs()

    def take_outputs(self) -> Any:
        """Return what the native loop gets from the step that was made last, once."""
        outputs, self._outputs = self._outputs, None
        return outputs

    def run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        """Make the prepared step with a program around it, for the session."""
        graph, step = self._graph, self.step_function
        into_step = graph.feeds_of_step(program)
        with self._loop_graph.as_default(), self._eager_mode():
            graph.show_rate()
            before = step.steps_made if self._makes_several_steps else 0
            try:
                results: list[Any]
                outputs, results, values = step.run(
                    self._args,
                    program,
                    feeds,
                    graph.live.tapped,
                    into_step,
                )
            except END_OF_DATA:
                self.data_ended = True
                raise
            if self._makes_several_steps:
                graph.global_step.add(step.steps_made - before)
            elif self._installation.mode is TRAIN:
                graph.global_step.add(1)
            graph.show_rate()
        graph.last_values.update(values)
        self._outputs = outputs
        graph.check_rate(into_step)
        return results

    def make_apart_from_hooks(self, args: Arguments | None = None) -> Any:
        """Make a step, the prepared one by default, that no hook hears of."""
        args = self._args if args is None else args
        return self.step_function.models_own_function(*args)

    def stop(self) -> None:
        mode = self._installation.mode
        if mode is not None and (mode is TRAIN or hasattr(self._run.model, mode.stop)):
            setattr(self._run.model, mode.stop, True)
        self._is_stopped = mode is not TRAIN

    def stopped_by(self, error: BaseException) -> Any:
        outputs = self.take_outputs()
        if self._policy.goes_on():
            self.is_apart_from_hooks = True
            return self.make_apart_from_hooks() if outputs is None else outputs
        if outputs is not None:
            return outputs  # `after_run` raised: the step has been made
        return self._installation.without_step(error, is_first=not self._has_outputs)

    def suspend(self) -> None:
        self._graph.remember()
        self._installation.suspend()

    def resume(self) -> None:
        self._graph.recall()
        self._installation.resume()

    def leave(self) -> None:
        self._installation.leave()
        # An iterator that is left to the garbage collector can hold the process up
        # for a minute (docs/decisions/0005-iterators-die-young.md).
        self._args = ()

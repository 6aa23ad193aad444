"""The session of hooks under `ParameterServerStrategy`: steps are scheduled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.global_step import GlobalStep
from hookbridge.adapters.live_graph import LiveGraph
from hookbridge.adapters.live_session import LiveSession, _Plan, _structure, _to_numpy
from hookbridge.adapters.parameter_server_step import SplitProgram
from hookbridge.adapters.parameter_server_values import StepValue
from hookbridge.adapters.session_program import SessionProgram

# Schedules a step: (program, feeds) -> its values.
Scheduler = Callable[[SessionProgram, Sequence[Any]], StepValue]


class Results:
    """What one run of the session fetched, once its step is done.

    Args:
      build: makes the structure of all fetches; called once.
    """

    def __init__(self, build: Callable[[], Mapping[Any, Any]]) -> None:
        self._build = build
        self._built: Mapping[Any, Any] | None = None

    def get(self, key: Any) -> Any:
        """The values of one hook."""
        if self._built is None:
            self._built = self._build()
        return self._built[key]


class LaterResults:
    """One hook's values of a scheduled step.

    Args:
      results: the values of all hooks.
      key: the hook.
    """

    def __init__(self, results: Results, key: Any) -> None:
        self._results = results
        self._key = key

    def get(self) -> Any:
        """The values; the step has to be done."""
        return self._results.get(self._key)


class ScheduledSession(LiveSession):
    """A live session whose steps are scheduled on a cluster.

    A run with `graph.step_op` returns `LaterResults`. All other runs are executed
    on the coordinator at once, on the variables of the parameter servers.

    Args:
      graph: the live graph.
      global_step: the counter of scheduled steps.
      schedule: schedules one step.
      retained: `{step tensor name: value}` of the step delivered last.
      consistent: a context in which no step is in flight and the global step counts
        all that were scheduled.
    """

    def __init__(
        self,
        graph: LiveGraph,
        global_step: GlobalStep,
        schedule: Scheduler,
        retained: Mapping[str, Any],
        consistent: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        super().__init__(graph, global_step, self._not_here, retained)
        self._schedule = schedule
        self._consistent = consistent
        self._split: dict[int, tuple[_Plan, SplitProgram]] = {}
        # What the cluster failed with; see `shielded` in the run.
        self.cluster_errors: list[BaseException] = []

    def _not_here(self, program: SessionProgram, feeds: Sequence[Any]) -> Any:
        raise errors.LiveSessionError("Steps are scheduled, not run, here.")

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Runs ops of the live graph; see `LiveSession.run`.

        Raises:
          errors.LiveSessionError: options are given for a step, which runs in
            another process.
        """
        try:
            if not feed_dict and self._is_bare_step(fetches, options):
                self._schedule(self._bare_program, ())
                return {"caller": None}
            if isinstance(fetches, dict) and self._asks_for_step(fetches):
                return self._run_step_later(fetches, feed_dict, options)
            return super().run(fetches, feed_dict, options, run_metadata)
        except (tf.errors.AbortedError, tf.errors.UnavailableError) as e:
            self.cluster_errors.append(e)
            raise

    def _asks_for_step(self, fetches: Mapping[Any, Any]) -> bool:
        return fetches.get("caller") is self._live_graph.step_op

    def _run_step_later(self, fetches: Any, feed_dict: Any, options: Any) -> Any:
        if options is not None and options.ByteSize():
            raise errors.LiveSessionError(
                "A hook gave `RunOptions` for a training step. Under "
                "`ParameterServerStrategy` the step runs on a worker, where they "
                "cannot follow it. Leave them out; to profile, use "
                "`tf.profiler.experimental.client.trace` with the workers' addresses."
            )
        feeds = self._feeds(feed_dict) if feed_dict else []
        key = (_structure(fetches), tuple(t.name for t, _ in feeds))
        plan = self._plans.get(key)
        if plan is None:
            tensors = [t for t, _ in feeds]
            plan = _Plan(self._live_graph, fetches, tensors, self._resources)
            self._plans[key] = plan
            self._split[id(plan)] = plan, SplitProgram(plan.program)
        split = self._split[id(plan)][1]
        step = self._global_step.value
        with self._outside.as_default(), self._eager_mode():
            if plan.reads_step:
                self._global_step.push()
            values = [tf.constant(value, t.dtype) for t, value in feeds]
            known = split.before(values)
            for variable in plan.written:
                variable.spread()
            if plan.writes_step:
                self._global_step.pull()
        scheduled = self._schedule(plan.program, values)
        fed = {t.name: value for t, value in feeds}
        graph = self._live_graph

        def build() -> Mapping[Any, Any]:
            taps = scheduled.load()[1]
            of_step = {n: taps[graph.step_tensors[n].key] for n in needed}
            with self._outside.as_default(), self._eager_mode():
                found = [_to_numpy(v) for v in split.after(known, of_step)]
            result: Mapping[Any, Any] = plan.build_results(step, fed, found)
            return result

        needed = plan.program.closure.step_tensors
        results = Results(build)
        return {k: None if k == "caller" else LaterResults(results, k) for k in fetches}

    def _execute(
        self, plan: _Plan, feeds: Sequence[tuple[Any, Any]], options: Any, metadata: Any
    ) -> Any:
        with self._consistency(plan):
            return super()._execute(plan, feeds, options, metadata)

    @contextlib.contextmanager
    def _consistency(self, plan: _Plan) -> Iterator[None]:
        """Waits for steps in flight where the step and weights are read together."""
        others = plan.program.closure.handles - {self._live_graph.global_step_name}
        if plan.reads_step and others:
            with self._consistent():
                yield
        else:
            yield

"""The session a hook sees under `fit`: `run` on a live graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_session import feeds, run_options
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.graph_variables import read, save
from hookbridge.adapters.live_session.imported_ops import SessionResources
from hookbridge.adapters.live_session.plan import Plan
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.ground import compat, structures
from hookbridge.ground.protocols import Tensor

v1 = tf.compat.v1

# Runs one step with the fetches of a program: (program, feeds) -> fetched tensors.
StepRunner = Callable[[SessionProgram, Sequence[Any]], list[Any]]


class LiveSession(tf.compat.v1.Session):  # type: ignore[misc]
    """A `tf.compat.v1.Session` on the variables and steps of a Keras model.

    A fetch of `graph.step_op`, or `graph.loop_fetches` from a `MonitoredSession`, runs
    one step of the model; fetches that do not depend on it see variables as before it.
    In runs without a step, step tensors have the values of the last step, but for
    those that `outside_steps` computes, such as the rate of a schedule.
    """

    # Whether a run that only saves the model goes past the saver's ops.
    saves_directly = True

    def __init__(
        self,
        graph: LiveGraph,
        global_step: GlobalStep,
        run_step: StepRunner,
        last_values: Mapping[str, Any],
        traced: structures.RecentlyUsed | None = None,
        outside_steps: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(graph=graph)
        self._live_graph = graph
        self._global_step = global_step
        self._run_step = run_step
        self._last_values = last_values
        # Computes step tensors, by their keys, that have a value outside a step too.
        self._outside_steps = outside_steps or {}
        # Step tensors that runs without a step have fetched.
        self.taken_from_last_step: set[str] = set()
        self._traced = structures.RecentlyUsed() if traced is None else traced
        self._plans = structures.RecentlyUsed()
        self._is_closed = False
        self._resources = SessionResources(graph)
        # Functions are called with this graph as the default one: entering a
        # strategy's scope writes to the default graph, and the live graph is final.
        self._outside = tf.Graph()
        self._eager_mode = compat.private("eager_mode")
        self._bare_program = SessionProgram(graph, [graph.step_op], [], self._resources)

    def close(self) -> None:
        """End the session; further `run` calls raise `RuntimeError`."""
        if not self._is_closed:
            self._is_closed = True
            with self._outside.as_default(), compat.private("eager_mode")():
                self._resources.destroy()
        super().close()

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: tf.compat.v1.RunOptions | None = None,
        run_metadata: tf.compat.v1.RunMetadata | None = None,
    ) -> Any:
        """Run ops of the live graph; see `tf.compat.v1.Session.run`."""
        if self._is_closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self.is_loop_step(fetches):
            if len(fetches) == 1 and not feed_dict and not _asks(options):
                # The commonest run of all: a step from which no hook fetches.
                self._run_step(self._bare_program, ())
                return {"caller": None}
            fetches = {**fetches, "caller": self._live_graph.step_op}
        path = self._path_of_save(fetches, feed_dict, options)
        if path is not None:
            return self._save(path)
        run_options.check(options)
        fed = self._feeds(feed_dict) if feed_dict else []
        plan = self._plan_of(fetches, [tensor for tensor, _ in fed])
        if plan.is_plain_step:
            step = self._global_step.value
            with run_options.applied(options, run_metadata):
                values = self._run_step(plan.program, ())
            return plan.build_results(step, {}, [_to_numpy(v) for v in values])
        with self._outside.as_default(), self._eager_mode():
            return self._execute(plan, fed, options, run_metadata)

    def _path_of_save(
        self,
        fetches: object,
        feeds: Mapping[Any, Any] | None,
        options: tf.compat.v1.RunOptions | None,
    ) -> str | None:
        """Return where a run only saves the model: the path; None for any other run."""
        saver = self._live_graph.saver
        if not self.saves_directly or saver is None or _asks(options):
            return None
        return saver.path_of(fetches, feeds)

    def _plan_of(self, fetches: object, fed: Sequence[tf.Tensor]) -> Plan:
        """Return the plan for a structure of fetches and a set of fed tensors."""
        key = (_key(fetches), tuple(tensor.name for tensor in fed))
        plan: Plan | None = self._plans.get(key)
        if plan is None:
            plan = Plan(self._live_graph, fetches, fed, self._resources)
            self._plans.add(key, plan)
        return plan

    def renew(self, traced: structures.RecentlyUsed) -> None:
        """Forget how runs were made, since a callback has changed the step.

        Args:
          traced: keeps what the session traces from now on.
        """
        self._traced = traced
        self._plans = structures.RecentlyUsed()

    def is_loop_step(self, fetches: object) -> bool:
        """Return whether a `MonitoredSession` asks for a step of the loop."""
        # `MonitoredSession` puts the loop's own fetches under "caller", next to the
        # fetches of each hook. Keras gets its own from the step itself. So only those
        # of hooks have to become numpy arrays.
        graph = self._live_graph
        return type(fetches) is dict and fetches.get("caller") is graph.loop_fetches

    def make_callable(
        self,
        fetches: object,
        feed_list: Sequence[tf.Tensor] | None = None,
        accept_options: bool = False,
    ) -> Callable[..., Any]:
        """Return a function that runs `fetches`.

        See `tf.compat.v1.Session.make_callable`.

        Args:
          fetches: what each call returns, as in `run`.
          feed_list: the tensors that the arguments of a call are fed to.
          accept_options: whether a call may have `options=` and `run_metadata=`.
        """
        keys = list(feed_list or ())

        def call(*values: object, **config: Any) -> Any:
            if len(values) != len(keys):
                raise ValueError(
                    f"Expected {len(keys)} values, one for each of `feed_list`; "
                    f"received {len(values)}."
                )
            if config and not accept_options:
                raise TypeError(f"Options {sorted(config)} need `accept_options=True`.")
            return self.run(fetches, dict(zip(keys, values, strict=True)), **config)

        return call

    def partial_run_setup(self, *args: object, **kwargs: object) -> Any:
        """Refuse `partial_run`."""
        raise errors.LiveSessionError(
            "`partial_run` keeps a graph half executed between calls, which is "
            "impossible for a Keras training step. Call `run` for each part.",
            see="live session",
        )

    partial_run = partial_run_setup

    def saved_values(self) -> dict[str, tf.Tensor]:
        """Return `{entry: value}` of a checkpoint; later steps do not change it."""
        variables = self._live_graph.variables.saved()
        with self._outside.as_default(), self._eager_mode():
            self._global_step.push()
            for variable in variables.values():
                if variable.is_aggregated:
                    variable.gather()
            return read(variables)

    def _save(self, path: str) -> bytes:
        """Write a checkpoint of the model, as the ops of the default saver would."""
        values = self.saved_values()
        with self._outside.as_default(), self._eager_mode():
            save(path, values)
        return path.encode()

    def _execute(
        self,
        plan: Plan,
        feeds: Sequence[tuple[Any, Any]],
        options: tf.compat.v1.RunOptions | None,
        metadata: tf.compat.v1.RunMetadata | None,
    ) -> Any:
        """Run a plan, with the work on variables that it needs before and after."""
        step = self._global_step.value
        program = plan.program
        values: list[Any] = []
        is_step = program.needed.runs_step
        if is_step or not program.is_empty:
            if plan.reads_step:
                self._global_step.push()
            for variable in plan.aggregated:
                variable.gather()
            tensors = [tf.constant(value, t.dtype) for t, value in feeds]
            with run_options.applied(options, metadata):
                if is_step:
                    values = self._run_step(program, tensors)
                else:
                    names = program.needed.step_tensors
                    known = {name: self._value(name) for name in names}
                    values = program.run_alone(tensors, known, self._traced)
                values = [_to_numpy(v) for v in values]
            for variable in plan.written:
                variable.spread()
            if plan.writes_step:
                self._global_step.pull()
        return plan.build_results(step, {t.name: v for t, v in feeds}, values)

    def _value(self, name: str) -> Any:
        """Return a step tensor outside a step, computed or the last step's."""
        key = self._live_graph.step_tensors[name].key
        compute = self._outside_steps.get(key)
        if compute is not None and (value := compute()) is not None:
            return value
        self.taken_from_last_step.add(key)
        try:
            return self._last_values[name]
        except KeyError as e:
            raise errors.LiveSessionError(
                f"`session.run` was asked for `{e.args[0]}:0`, a tensor of the "
                "step, which no step so far has returned. Steps return a tensor once "
                "it is looked up: in `begin`, `tf.compat.v1.get_default_graph()."
                f'get_tensor_by_name("{e.args[0]}:0")`, or in `before_run`, as '
                "`SessionRunArgs(fetches)`. It has a value after the next step.",
                see="live session",
            ) from e

    def takes(self, request: Any) -> bool:
        """Return whether what a hook's `before_run` returned can be fetched and fed."""
        if request is None:
            return True
        try:
            feeds.mapper_of(self._live_graph, request.fetches)
            self._feeds(request.feed_dict or {})
        except (errors.UnknownTensorError, errors.RunArgumentsError):
            return False
        return True

    def _feeds(self, feed_dict: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        graph = self._live_graph
        pairs = {
            tensor.name: (tensor, feeds.array_of(graph, tensor, part))
            for key, value in structures.flat_feeds(feed_dict)
            for tensor, part in feeds.dense(graph, key, value)
        }
        return [pairs[name] for name in sorted(pairs)]


def _key(fetches: object) -> Any:
    try:
        return structures.structure_key(fetches)
    except structures.UnknownStructureError:
        return id(fetches)  # the plan keeps the object alive


def _asks(options: tf.compat.v1.RunOptions | None) -> bool:
    return options is not None and bool(options.ByteSize())


def _to_numpy(tensor: Tensor) -> Any:
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor

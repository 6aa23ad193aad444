"""Scenarios: `run_step_fn` and fetches."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from trace_events import type_name
from trace_loop import SCENARIOS, Trace, scenario

from hookbridge.ground import compat

v1 = tf.compat.v1
SessionRunArgs = v1.train.SessionRunArgs


def _step_fns(
    t: Trace,
    step_fn: Callable[[Any, int], Any],
    op: Any,
    *,
    stops: Any = (),
    runs: int | None = None,
    log_result: bool = False,
) -> None:
    def body(monitored: Any, turn: int) -> Any:
        return monitored.run_step_fn(lambda step_context: step_fn(step_context, turn))

    hooks = [t.recorder("A", stops=stops)]
    t.drive(t.session(hooks), op, runs=runs, body=body, log_result=log_result)


@scenario
def run_step_fn(t: Trace) -> None:
    op, loss = t.train_graph()

    def step_fn(step_context: Any, turn: int) -> Any:
        t.note("IN_STEP_FN", session=type_name(step_context.session))
        step_context.session.run(op)  # no hooks
        t.note("RAW_RUN_DONE")
        return step_context.run_with_hooks(fetches=loss)

    _step_fns(t, step_fn, op, runs=2, log_result=True)


def _twice(t: Trace, note: str, **options: Any) -> None:
    """A step function that runs the training twice, with a note between."""
    op = t.train_graph().train_op

    def step_fn(step_context: Any, turn: int) -> Any:
        step_context.run_with_hooks(op)
        t.note(note)
        return step_context.run_with_hooks(op)

    _step_fns(t, step_fn, op, **options)


@scenario
def run_step_fn_twice_with_hooks(t: Trace) -> None:
    _twice(t, "BETWEEN", runs=1, log_result=True)


@scenario
def run_step_fn_request_stop(t: Trace) -> None:
    op = t.train_graph().train_op

    def step_fn(step_context: Any, turn: int) -> Any:
        if turn == 2:
            step_context.request_stop()
        return step_context.run_with_hooks(op)

    _step_fns(t, step_fn, op)


@scenario
def run_step_fn_hook_stops_inside(t: Trace) -> None:
    _twice(t, "AGAIN", stops=[("after_run", 1)])


def _bad_step_fn(t: Trace, step_fn: Any) -> None:
    t.train_with(t.recorder("A"), body=lambda run, turn: run.run_step_fn(step_fn))


class NT(NamedTuple):
    """A structure of fetches."""

    a: Any
    b: Any


class _Tensors(NamedTuple):
    variable: Any
    sparse: Any
    c: Any


@scenario
def nested_fetches(t: Trace) -> None:
    op, loss = t.train_graph()

    def tensors() -> _Tensors:
        initial = v1.constant_initializer(3.0)
        return _Tensors(
            v1.get_variable("cv", shape=[], initializer=initial),
            tf.SparseTensor(indices=[[0, 1]], values=[5.0], dense_shape=[2, 2]),
            tf.constant([[1, 2], [3, 4]], name="c"),
        )

    g = t.late(tensors)
    forms: dict[str, Callable[[], Any]] = {
        "tensor": lambda: SessionRunArgs(loss),
        "name": lambda: SessionRunArgs("loss:0"),
        "op": lambda: SessionRunArgs(op),
        "op_name": lambda: SessionRunArgs(g().c.op.name),
        "none": lambda: None,
        "args_none": lambda: SessionRunArgs(None),
        "variable": lambda: SessionRunArgs(g().variable),
        "list": lambda: SessionRunArgs([loss, g().c]),
        "tuple": lambda: SessionRunArgs((loss, [g().c, (loss,)])),
        "dict": lambda: SessionRunArgs({"a": loss, "b": {"c": g().c, "d": [loss, op]}}),
        "odict": lambda: SessionRunArgs(
            collections.OrderedDict([("z", loss), ("a", g().c)])
        ),
        "namedtuple": lambda: SessionRunArgs(NT(a=loss, b={"x": g().c})),
        "sparse": lambda: SessionRunArgs(g().sparse),
        "empty_list": lambda: SessionRunArgs([]),
        "empty_dict": lambda: SessionRunArgs({}),
        "dup": lambda: SessionRunArgs([loss, loss]),
    }
    hooks = [t.recorder(name, args=args) for name, args in forms.items()]
    t.drive(t.session(hooks), op, runs=1)


def _one_fetch(t: Trace, args: Callable[[Any], Any]) -> None:
    op, loss = t.train_graph()
    t.drive(t.session([t.recorder("A", args=lambda: args(loss))]), op, runs=1)


@scenario
def stale_global_step_fetch(t: Trace) -> None:
    class Hook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.read = compat.private("global_step_read")()

        def before_run(self, run_context: Any) -> Any:
            return SessionRunArgs(self.read)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            fresh = int(run_context.session.run(self.read))
            t.note("STALE", fetched=int(run_values.results), fresh=fresh)

    t.train_with(Hook(), runs=3)


SCENARIOS.update(
    run_step_fn_bad_signature=lambda t: _bad_step_fn(t, lambda ctx, y: None),
    run_step_fn_wrong_arg_name=lambda t: _bad_step_fn(t, lambda ctx: None),
    fetch_invalid=lambda t: _one_fetch(t, lambda loss: SessionRunArgs(3.0)),
    fetch_invalid_name=lambda t: _one_fetch(t, lambda loss: SessionRunArgs("nosuch:0")),
    before_run_returns_non_args=lambda t: _one_fetch(t, t.tensor),
)

"""Keras's function with a tapped step, and how it is called with what hooks fetch.

Fetches and Keras's function are merged into one `tf.function`. Where it cannot be
called in another one (steps that run eagerly, loops over steps in Keras 3), ops of
hooks are called before and after the step.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.taps import StepTap, split, values_of
from hookbridge.adapters.keras_model import structure
from hookbridge.adapters.live_session.imported_ops import compile_function
from hookbridge.adapters.live_session.program import SessionProgram, SplitProgram
from hookbridge.ground import compat
from hookbridge.ground.protocols import AnyFunction, Arguments, KerasModel

_ITERATORS = (tf.data.Iterator, tf.distribute.DistributedIterator)


class TraceOfIterator:
    """Calls a `tf.function` with an iterator, whose trace it looks up once.

    `tf.function` looks it up at each call, which takes as long as a small step. The
    same iterator object always has the same trace.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._iterator: Any = lambda: None
        self._concrete: Any = None

    def knows(self, *args: object) -> bool:
        """Return whether a call with `args` is sure not to trace."""
        return len(args) == 1 and self._iterator() is args[0]

    def __call__(self, *args: Any) -> Any:
        iterator = args[0] if len(args) == 1 else None
        if iterator is None or self._iterator() is not iterator:
            if not isinstance(iterator, _ITERATORS):
                return self._function(*args)
            self._concrete = self._function.get_concrete_function(iterator)
            self._iterator = weakref.ref(iterator)
        return self._concrete(iterator)


def inner_function_of(function: object) -> Any:
    """Return the `tf.function` inside what Keras made, or None."""
    # Keras 2 makes a `tf.function`. Keras 3 makes a Python function around a
    # `tf.function`, which returns an optional. With one step per execution the optional
    # is never empty.
    if hasattr(function, "get_concrete_function"):
        return function
    if inspect.isfunction(function):
        names = compat.closure_of("keras3_step", function) or {}
        inner = names.get("multi_step_on_iterator")
        return inner if hasattr(inner, "get_concrete_function") else None
    return None


def makes_one_step(model: KerasModel) -> bool:
    """Return whether a call of the model's function makes one step, on one replica."""
    replicas = model.distribute_strategy.num_replicas_in_sync
    return bool(max(structure.steps_per_execution(model), replicas) == 1)


def loops_over_one_step() -> bool:
    """Return whether the inner function of Keras 3 loops over a single step too.

    It does since 3.16, and returns an empty optional at the end of the data. Keras does
    not call it for a single step.
    """
    return compat.keras3_version() >= (3, 16)


def _one_step(function: object) -> Any:
    """Return a `tf.function` of an iterator that makes one step, or None."""
    names = compat.closure_of("keras3_one_step", function)
    if names is None or inner_function_of(function) is None:
        return None
    step = names["one_step_on_data"]

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def one_step_on_iterator(iterator: Any) -> Any:
        return step(iterator.get_next())

    return tf.function(one_step_on_iterator, reduce_retracing=True)


class RateFeed(NamedTuple):
    """A learning rate that a hook feeds."""

    variable: Any
    position: int  # that of its value among the feeds of the run


class StepFeeds(NamedTuple):
    """Which of a run's feeds go into the step itself."""

    rate: RateFeed | None = None  # that of `model.optimizer`
    other_rates: tuple[RateFeed, ...] = ()
    tensors: Mapping[str, int] = {}  # positions among the feeds, by the step's keys


NO_FEEDS = StepFeeds()


# Calls the step: (what Keras passes, feeds) -> (what Keras expects, the fetched
# tensors, `{placeholder: value}` of the tapped tensors).
Variant = Callable[[Any, Any], tuple[Any, list[Any], dict[str, Any]]]


class TappedFunction:
    """A Keras function whose step returns tensors of the step as well."""

    def __init__(self, model: KerasModel, function: AnyFunction, tap: StepTap) -> None:
        self._model = model
        self.function = function
        self.tap = tap
        self.inner: Any = inner_function_of(function)
        self.returns_optional: bool = self.inner is not function
        if self.returns_optional and makes_one_step(model) and loops_over_one_step():
            self.inner, self.returns_optional = _one_step(function), False

    def variant(
        self, program: SessionProgram, tapped: Mapping[str, str], fed: StepFeeds
    ) -> Variant:
        """Return a function that calls the step with the fetches of a program.

        Args:
          program: what a run of a session computes before and after the step.
          tapped: step tensors to return, by the name of their placeholder in the graph.
          fed: step tensors that a hook feeds.

        Raises:
          errors.LiveSessionError: step tensors are fed to a step that has several
            replicas, runs eagerly, or runs several steps in a call.
        """
        model = self._model
        if model.distribute_strategy.num_replicas_in_sync > 1:
            _check_no_tensors(fed, "every replica has its own tensor")
        if self.inner is None or (self.returns_optional and not makes_one_step(model)):
            _check_no_tensors(fed, "it runs eagerly, or runs several steps per call")
            return self._in_three_calls(program, tapped, fed)
        return self._merged(program, tapped, fed)

    def _merged(
        self, program: SessionProgram, tapped: Mapping[str, str], fed: StepFeeds
    ) -> Variant:
        """Return one `tf.function`: the step with the program's halves around it."""
        inner: Any = self.inner
        tap, returns_optional = self.tap, self.returns_optional
        needed = program.needed
        output_names = structure.output_names(self._model)
        step_tensors = sorted(needed.step_tensors)

        def merged(args: Arguments, feeds: Sequence[tf.Tensor]) -> Any:
            tap.feed({key: feeds[index] for key, index in fed.tensors.items()})
            early = program.build_before(feeds)
            result = inner(*args)
            outputs, tensors = split(result.get_value() if returns_optional else result)
            values = values_of(tapped, outputs, tensors, output_names)
            fetched = program.build_after(early, {n: values[n] for n in step_tensors})
            return outputs, fetched, values

        if program.feeds:
            fed_function = compile_function(merged, reduce_retracing=True)

            def call(args: Arguments, feeds: Sequence[tf.Tensor]) -> Any:
                with tap.tracing():
                    return fed_function(args, list(feeds))

            return call

        # A function around one of Keras 2 only for fetches would take time to compile.
        is_plain = not (returns_optional or needed.before or needed.after)
        unfed = TraceOfIterator(
            inner if is_plain else compile_function(lambda *args: merged(args, ()))
        )

        def call_unfed(args: Arguments, feeds: Sequence[tf.Tensor]) -> Any:
            with contextlib.nullcontext() if unfed.knows(*args) else tap.tracing():
                result = unfed(*args)
            if not is_plain:
                return result
            outputs, tensors = split(result)
            values = values_of(tapped, outputs, tensors, output_names)
            return outputs, [values[t.op.name] for t in program.tensors], values

        return call_unfed

    def _in_three_calls(
        self, program: SessionProgram, tapped: Mapping[str, str], fed: StepFeeds
    ) -> Variant:
        """Return a call of Keras's function between the halves of the program."""
        function, tap, around = self.function, self.tap, SplitProgram(program)
        output_names = structure.output_names(self._model)

        def call(args: Arguments, feeds: Sequence[tf.Tensor]) -> Any:
            feeds = list(feeds)
            early = around.before(feeds)
            with tap.tracing():
                result = function(*args)
            outputs, tensors = split(result)
            values = values_of(tapped, outputs, tensors, output_names)
            return outputs, around.after(early, values), values

        return call


def with_rate(step: Variant, feed: RateFeed) -> Variant:
    """Return a variant that has a fed learning rate during its step."""
    variable = feed.variable

    def call(args: Arguments, feeds: Sequence[tf.Tensor]) -> Any:
        before = variable.read_value()
        variable.assign(tf.cast(feeds[feed.position], variable.dtype))
        try:
            return step(args, feeds)
        finally:
            variable.assign(before)

    return call


def _check_no_tensors(fed: StepFeeds, why: str) -> None:
    if fed.tensors:
        key = next(iter(fed.tensors))
        raise errors.LiveSessionError(
            f"`{key}` is computed by the model's step and cannot be fed here, "
            f"because {why}. Feed a placeholder that a hook makes in `begin`, or "
            "train with `run_eagerly=False`, `steps_per_execution=1` and no "
            "`tf.distribute` strategy.",
            see="live session",
        )

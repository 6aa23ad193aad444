"""Keras's function with a tapped step, and how it is called with what hooks fetch.

Fetches that compute nothing, such as the loss, need Keras's function only. Others are
merged with it into one `tf.function`, or, where it cannot be called in another one
(steps that run eagerly, loops over steps in Keras 3), called before and after the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from hookbridge import errors, patching
from hookbridge.adapters.fit_loop import eager_step
from hookbridge.adapters.fit_loop.keras_function import SameIterator, traceable
from hookbridge.adapters.fit_loop.step_feeds import StepFeeds, rate_applied
from hookbridge.adapters.fit_loop.taps import StepTap, split, values_of
from hookbridge.adapters.hooked_loop.modes import Mode
from hookbridge.adapters.live_session.program import SessionProgram, SplitProgram
from hookbridge.adapters.live_session.resources import compiled

# Calls the step: (what Keras passes, feeds) -> (what Keras expects, the fetched
# tensors, `{placeholder: value}` of the tapped tensors).
Variant = Callable[[Any, Any], tuple[Any, list[Any], dict[str, Any]]]


def tapped_function(
    owner: Any,
    mode: Mode,
    make: Callable[..., Any],
    tap: StepTap,
    is_filed: bool = False,
) -> Any:
    """A new Keras function whose step is `tap`."""
    filed = {
        name: getattr(owner, name)
        for name in (mode.function, f"{mode.name}_tf_function")
        if hasattr(owner, name)
    }
    with patching.patched(owner, **{mode.step: tap}):
        result = make(force=True)
    function = getattr(owner, mode.function) if result is None else result
    for name, value in () if is_filed else filed.items():
        setattr(owner, name, value)
    return function


class TappedFunction:
    """A Keras function whose step returns tensors of the step as well."""

    def __init__(self, model: Any, function: Any, tap: StepTap) -> None:
        self._model = model
        self.function = function
        self.tap = tap
        self.inner = traceable(function)
        self._is_optional = self.inner is not function

    def variant(
        self, program: SessionProgram, tapped: Mapping[str, str], fed: StepFeeds
    ) -> Variant:
        """A function that calls the step with the fetches of a program."""
        model = self._model
        steps = getattr(model, "steps_per_execution", 1)
        replicas = model.distribute_strategy.num_replicas_in_sync
        if replicas > 1:
            _check_no_tensors(fed, "every replica has a tensor of its own")
        # Keras 3.16 loops over a single step too, if there are several replicas.
        if self.inner is None or (self._is_optional and max(steps, replicas) > 1):
            _check_no_tensors(fed, "it runs eagerly or several steps a call")
            return self._in_three_calls(program, tapped, fed)
        if not program.has_ops:
            return self._as_is(program, tapped)
        return self._merged(program, tapped, fed)

    def _as_is(self, program: SessionProgram, tapped: Mapping[str, str]) -> Variant:
        names = [tensor.op.name for tensor in program.tensors]
        output_names, direct = eager_step.output_names(self._model), self._direct

        def call(args: Any, feeds: Any) -> Any:
            outputs, tensors = direct(*args)
            values = values_of(tapped, outputs, tensors, output_names)
            return outputs, [values[name] for name in names], values

        return call

    @functools.cached_property
    def _direct(self) -> Callable[..., Any]:
        """Calls Keras's step; returns what Keras gets and what is tapped."""
        inner: Any = self.inner
        if self._is_optional:
            function = compiled(lambda *args: inner(*args).get_value())
        else:
            function = inner
        traced = self._traced(SameIterator(function))
        return lambda *args: split(traced(*args))

    def _traced(self, function: SameIterator) -> Callable[..., Any]:
        """Calls `function`, with the tap in place whenever the call may trace."""
        tap = self.tap

        def call(*args: Any) -> Any:
            if function.knows(*args):
                return function(*args)
            with tap.tracing():
                return function(*args)

        return call

    def _merged(
        self, program: SessionProgram, tapped: Mapping[str, str], fed: StepFeeds
    ) -> Variant:
        inner: Any = self.inner
        tap, is_optional = self.tap, self._is_optional
        output_names = eager_step.output_names(self._model)
        step_tensors = sorted(program.closure.step_tensors)

        def merged(args: Any, feeds: Any) -> Any:
            tap.feed({key: feeds[index] for key, index in fed.tensors.items()})
            early = program.build_before(feeds)
            with rate_applied(fed, feeds):
                result = inner(*args)
            outputs, tensors = split(result.get_value() if is_optional else result)
            values = values_of(tapped, outputs, tensors, output_names)
            fetched = program.build_after(early, {n: values[n] for n in step_tensors})
            return outputs, fetched, values

        if program.feeds:
            fed_function = compiled(merged, reduce_retracing=True)

            def call(args: Any, feeds: Any) -> Any:
                with tap.tracing():
                    return fed_function(args, list(feeds))

            return call

        unfed = self._traced(SameIterator(compiled(lambda *args: merged(args, ()))))
        return lambda args, feeds: unfed(*args)

    def _in_three_calls(
        self, program: SessionProgram, tapped: Mapping[str, str], fed: StepFeeds
    ) -> Variant:
        """Calls Keras's function between the two halves of the program."""
        function, tap, around = self.function, self.tap, SplitProgram(program)
        output_names = eager_step.output_names(self._model)

        def call(args: Any, feeds: Any) -> Any:
            feeds = list(feeds)
            early = around.before(feeds)
            with tap.tracing(), rate_applied(fed, feeds):
                result = function(*args)
            outputs, tensors = split(result)
            values = values_of(tapped, outputs, tensors, output_names)
            return outputs, around.after(early, values), values

        return call


def _check_no_tensors(fed: StepFeeds, why: str) -> None:
    for key in fed.tensors:
        raise errors.LiveSessionError(
            f"`{key}` is computed by the model's step and cannot be fed here: {why}. "
            "Feed a placeholder that a hook makes in `begin`, or train with "
            "`run_eagerly=False`, one step per execution and the default strategy.",
            see="live session",
        )

"""Keras's step function, able to return what hooks fetch.

One variant per distinct set of fetches. A step from which nobody fetches runs
Keras's own function. Where Keras's function can be called inside another
`tf.function`, the fetches are merged with it into one call; elsewhere (eager
models, loops over several steps in Keras 3) they are calls of their own before
and after the step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.adapters.fit_loop import step_feeds as fed_rate
from hookbridge.adapters.fit_loop.keras_function import SameIterator, traceable
from hookbridge.adapters.fit_loop.modes import NO_FEEDS, TRAIN, Mode, StepFeeds
from hookbridge.adapters.fit_loop.taps import StepTap, instance_method, split
from hookbridge.adapters.live_session.names import StepNames, eager_names
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.variables import as_int

# Decorators of TensorFlow have no types, so they would take the functions' away.
_plain_python: Callable[[Any], Any] = tf.autograph.experimental.do_not_convert


def _as_function(function: Any) -> Any:
    return tf.function(_plain_python(function))


class StepFunction:
    """Makes and keeps the variants of one model's step function.

    Args:
      model: the Keras model.
      mode: which of its loops.
      make: Keras's own bound `make_<mode>_function`.
      names: the catalogue that the first trace fills.
    """

    def __init__(self, model: Any, mode: Mode, make: Any, names: StepNames) -> None:
        self._model = model
        self._mode = mode
        self._make = make
        self._names = names
        self._step = getattr(model, mode.step)
        self._variants: dict[Any, Callable[..., Any]] = {}
        self._counter = _counter() if mode is TRAIN and _needs_counter(model) else None
        self._plain = self._keras_function(())
        self._bare = self._without_dispatch(self._plain[0])

    @property
    def native(self) -> Any:
        """Keras's own function, without what hooks want."""
        return self._plain[0]

    def _keras_function(self, wanted: Sequence[str]) -> tuple[Any, StepTap]:
        """A fresh function of Keras's whose step returns the `wanted` tensors."""
        model, mode = self._model, self._mode
        tap = StepTap(model, self._step, wanted, self._names)
        tap.counter = self._counter
        # Keras files what it makes on the model, where its loop and TensorBoard
        # look: that must stay what it was.
        filed = {
            name: getattr(model, name)
            for name in (mode.function, f"{mode.name}_tf_function")
            if hasattr(model, name)
        }
        with instance_method(model, mode.step, tap):
            made = self._make(force=True)
        function = getattr(model, mode.function) if made is None else made
        if hasattr(self, "_plain"):
            for name, value in filed.items():
                setattr(model, name, value)
        return function, tap

    def _without_dispatch(self, function: Any) -> Any:
        """Keras's own function, as it would be without any hook, called directly."""
        inner = traceable(function)
        if inner is None:
            return function
        if inner is function:
            return SameIterator(function)
        if self._model.steps_per_execution > 1:
            return function
        # Keras 3 also asks whether the optional is empty: with one step a call it is
        # not. The function itself stays Keras's, so that its errors read the same.
        direct = SameIterator(inner)
        return lambda *args: direct(*args).get_value()

    @property
    def steps_made(self) -> int:
        """A count that each step moves by one, of a model of several steps a call."""
        counter = self._counter
        return as_int(self._model._train_counter if counter is None else counter)

    def discover(self, *args: Any) -> None:
        """Traces the step without running it and fills the catalogue.

        Variables that the first call of an unbuilt model or optimizer makes exist
        afterwards.
        """
        function, tap = self._plain
        inner = traceable(function)
        if inner is None:
            eager_names(self._model, self._names)
            return
        with self._tracing(tap):
            inner.get_concrete_function(*args)

    @contextlib.contextmanager
    def _tracing(self, tap: StepTap) -> Any:
        # Keras 2 looks `train_step` up on the model while it traces.
        with instance_method(self._model, self._mode.step, tap), tap.installed():
            yield

    def run(
        self,
        args: tuple[Any, ...],
        program: SessionProgram,
        feeds: Sequence[Any],
        retained: Mapping[str, str],
        into_step: StepFeeds = NO_FEEDS,
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Runs one step with the fetches of `program`.

        Args:
          args: what Keras passes to its function.
          program: fetches of hooks.
          feeds: eager tensors for `program.feeds`.
          retained: `{placeholder name: key}` of step tensors to return besides.
          into_step: which feeds go into the step.

        Returns:
          What Keras expects, the fetched tensors, the retained tensors by name.

        Raises:
          errors.LiveSessionError: a tensor of the step is fed that cannot be.
        """
        if program.is_empty and not retained and into_step == NO_FEEDS:
            return self._bare(*args), [], {}
        key = (program, tuple(retained))
        variant = self._variants.get(key)
        if variant is None:
            variant = self._build(program, retained, into_step)
            if into_step.rate is not None:
                variant = fed_rate.restoring(variant, into_step.rate[0])
            self._variants[key] = variant
        return variant(args, feeds)  # type: ignore[no-any-return]

    def _build(
        self, program: SessionProgram, retained: Mapping[str, str], fed: StepFeeds
    ) -> Callable[..., Any]:
        self._names.check_fed(fed.tensors)
        wanted = sorted(set(retained.values()))
        function, tap = self._keras_function(wanted)
        needed = sorted(program.closure.step_tensors)
        inner = traceable(function)
        is_optional = inner is not function

        def around(step: Callable[..., Any], args: Any, feeds: Any) -> Any:
            known = program.build_before(feeds)
            with fed_rate.applied(fed, feeds):
                result = step(*args)
            outputs, taps = split(result)
            values = {name: taps[key] for name, key in retained.items()}
            fetched = program.build_after(known, {n: values[n] for n in needed})
            return outputs, fetched, values

        steps = getattr(self._model, "steps_per_execution", 1) if is_optional else 1
        if inner is None or steps > 1:
            self._check_no_tensors(fed, "it runs eagerly or several steps a call")
            return self._in_three_calls(function, tap, program, retained, fed)
        if self._model.distribute_strategy.num_replicas_in_sync > 1:
            self._check_no_tensors(fed, "every replica has a tensor of its own")

        def step(*args: Any) -> Any:
            result = inner(*args)
            return result.get_value() if is_optional else result

        @_plain_python
        def merged(args: Any, feeds: Any) -> Any:
            tap.feeds = {key: feeds[index] for key, index in fed.tensors.items()}
            return around(step, args, feeds)

        if program.feeds:
            compiled = tf.function(merged, reduce_retracing=True)

            def call(args: Any, feeds: Any) -> Any:
                with self._tracing(tap):
                    return compiled(args, list(feeds))

            return call

        direct = SameIterator(
            tf.function(_plain_python(lambda *args: merged(args, ())))
        )

        def call_unfed(args: Any, feeds: Any) -> Any:
            if direct.knows(*args):
                return direct(*args)
            with self._tracing(tap):
                return direct(*args)

        return call_unfed

    def _check_no_tensors(self, fed: StepFeeds, why: str) -> None:
        for key in fed.tensors:
            raise errors.LiveSessionError(
                f"`{key}` is computed by the model's step and cannot be fed here: "
                f"{why}. Feed a placeholder that a hook makes in `begin`, or train "
                "with `run_eagerly=False`, one step per execution and the default "
                "strategy."
            )

    def _in_three_calls(
        self,
        function: Any,
        tap: StepTap,
        program: SessionProgram,
        retained: Mapping[str, str],
        fed: StepFeeds,
    ) -> Callable[..., Any]:
        needed = sorted(program.closure.step_tensors)
        known_names: list[str] = []

        @_as_function
        def before(feeds: Any) -> list[Any]:
            known = {
                n: v
                for n, v in program.build_before(feeds).items()
                if isinstance(v, tf.Tensor) and v.dtype != tf.resource
            }
            known_names[:] = known
            return list(known.values())

        @_as_function
        def after(known: Any, values: Any) -> list[Any]:
            everything = dict(zip(known_names, known, strict=True))
            return program.build_after(
                {**program.handles(), **everything},
                dict(zip(needed, values, strict=True)),
            )

        def call(args: Any, feeds: Any) -> Any:
            feeds = list(feeds)
            known = before(feeds)
            with contextlib.ExitStack() as stack:
                stack.enter_context(self._tracing(tap))
                stack.enter_context(fed_rate.applied(fed, feeds))
                result = function(*args)
            outputs, taps = split(result)
            values = {name: taps[key] for name, key in retained.items()}
            return outputs, after(known, [values[n] for n in needed]), values

        return call


def _needs_counter(model: Any) -> bool:
    """Whether a call makes several steps and Keras does not count them.

    Keras 3 leaves it to the optimizer, which counts its updates: none for one that
    the step does not use, and not those that a loss scale skips.
    """
    return not hasattr(model, "_train_counter") and model.steps_per_execution > 1


def _counter() -> Any:
    # A graph of its own keeps it out of the strategy's scope.
    with tf.Graph().as_default(), compat.private("eager_mode")():
        return tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_made")

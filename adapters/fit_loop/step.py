"""Keras's step function, able to return the tensors that hooks fetch.

There is one variant per distinct set of fetches. Those that compute nothing, as a fetch
of the loss, share Keras's own function, which returns what is fetched besides. Where
something is computed and Keras's function can be called inside another `tf.function`,
both are merged into one call. Elsewhere (steps that run eagerly, loops over several
steps in Keras 3) the fetches are calls of their own before and after the step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors, patching
from hookbridge.adapters.fit_loop import eager_step
from hookbridge.adapters.fit_loop.keras_function import SameIterator, traceable
from hookbridge.adapters.fit_loop.modes import TRAIN, Mode
from hookbridge.adapters.fit_loop.spies import GRADIENTS
from hookbridge.adapters.fit_loop.step_feeds import (
    NO_FEEDS,
    StepFeeds,
    rate_applied,
    restoring_rate,
)
from hookbridge.adapters.fit_loop.taps import StepTap, split, values_of
from hookbridge.adapters.live_session.names import OUTPUTS
from hookbridge.adapters.live_session.program import FunctionCache, SessionProgram
from hookbridge.adapters.live_session.resources import compiled
from hookbridge.adapters.live_session.split_program import SplitProgram
from hookbridge.adapters.live_session.variables import as_int

_BY_KEY = ("loss:", GRADIENTS)


def tapped_function(
    model: Any,
    mode: Mode,
    make: Callable[..., Any],
    tap: StepTap,
    is_filed: bool = False,
) -> Any:
    """A fresh function of Keras's whose step is `tap`.

    Args:
      model: the Keras model.
      mode: which of its loops.
      make: Keras's own bound `make_<mode>_function`.
      tap: what Keras takes for the step.
      is_filed: whether the function stays on the model, where Keras files it for
        its loop and TensorBoard.
    """
    filed = {
        name: getattr(model, name)
        for name in (mode.function, f"{mode.name}_tf_function")
        if hasattr(model, name)
    }
    with patching.patched(model, **{mode.step: tap}):
        made = make(force=True)
    function = getattr(model, mode.function) if made is None else made
    for name, value in () if is_filed else filed.items():
        setattr(model, name, value)
    return function


class KeptFunction:
    """Keras's own function on a model between two runs, with what it was traced for.

    Args:
      function: Keras's function.
      step: what made it.
    """

    def __init__(self, function: Any, step: StepFunction) -> None:
        self._function = function
        self.step = step

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


class StepFunction:
    """Makes and keeps the variants of one model's step function.

    They outlive a run: the model keeps them with its own function, which Keras drops
    in `compile`, and the next loop with equal fetches traces nothing.

    Args:
      model: the Keras model.
      mode: which of its loops.
      make: Keras's own bound `make_<mode>_function`.
      likely: names of the step tensors that hooks are likely to fetch; the first
        trace returns those that it has, and serves all variants that need no others.

    Attributes:
      names: the catalogue of the step, which the first trace fills.
      kept: Keras's own function, for the model to keep between two runs.
      functions: of session programs that run without a step.
    """

    def __init__(
        self, model: Any, mode: Mode, make: Any, likely: frozenset[str] = frozenset()
    ) -> None:
        self._model = model
        self._mode = mode
        self._make = make
        # What replicas or spies compute for a fetch has to be known by its key.
        keys = {name.split(":")[0] for name in likely if name.startswith(_BY_KEY)}
        self._keys = frozenset(keys)
        self._hints = tuple(n for n in sorted(likely) if not n.startswith(_BY_KEY))
        self._step = getattr(model, mode.step)
        self._counter = _counter() if mode is TRAIN and _needs_counter(model) else None
        self.functions = FunctionCache()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._specs: Any = None
        self.names = eager_step.names_for(self._model)
        self._variants = FunctionCache()
        self._tapped: dict[frozenset[str], tuple[Any, StepTap]] = {}
        self._direct: dict[StepTap, Callable[..., Any]] = {}
        self._likely = self._keys
        self._first, self._first_tap = self._make_function(self._keys, self._hints)
        is_tapped = bool(self._keys or self._hints)
        self._bare = _untapped(self._without_dispatch(self._first), is_tapped)
        self.kept = KeptFunction(_untapped(self._first, is_tapped), self)

    def _make_function(
        self, keys: frozenset[str], hints: Sequence[str] = (), is_filed: bool = True
    ) -> tuple[Any, StepTap]:
        tap = StepTap(
            self._model, self._mode, self._step, sorted(keys), self.names, hints
        )
        tap.counter = self._counter
        made = tapped_function(self._model, self._mode, self._make, tap, is_filed)
        return made, tap

    def _keras_function(self, keys: frozenset[str]) -> tuple[Any, StepTap]:
        """A function of Keras's whose step returns at least the tensors of `keys`."""
        if keys <= self._likely:
            return self._first, self._first_tap
        if keys not in self._tapped:
            self._tapped[keys] = self._make_function(keys, is_filed=False)
        return self._tapped[keys]

    def _without_dispatch(self, function: Any) -> Any:
        """Keras's own function, called past the dispatch of `tf.function`."""
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
        specs = tf.nest.map_structure(tf.type_spec_from_value, args)
        if self._specs is not None and self._specs != specs:
            in_its_place = getattr(self._model, self._mode.function)
            self._begin_anew()  # the catalogue has shapes of other data
            setattr(self._model, self._mode.function, in_its_place)
        self._specs = specs
        inner = traceable(self._first)
        if inner is None:
            eager_step.fill_names(self._model, self._mode, self.names)
            return
        with self._first_tap.tracing():
            inner.get_concrete_function(*args)
        self._likely = self._keys.union(self._first_tap.hinted)

    def run(
        self,
        args: tuple[Any, ...],
        program: SessionProgram,
        feeds: Sequence[Any],
        tapped: Mapping[str, str],
        into_step: StepFeeds = NO_FEEDS,
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Runs one step with the fetches of `program`.

        Args:
          args: what Keras passes to its function.
          program: fetches of hooks.
          feeds: eager tensors for `program.feeds`.
          tapped: `{placeholder: key}` of step tensors to return besides.
          into_step: which feeds go into the step.

        Returns:
          What Keras expects, the fetched tensors, and `{placeholder: value}` of the
          tapped tensors.

        Raises:
          errors.LiveSessionError: a tensor of the step is fed that cannot be.
        """
        if program.is_empty and not tapped and into_step == NO_FEEDS:
            return self._bare(*args), [], {}
        rate = into_step.rate and into_step.rate[0]
        key = (program.key, tuple(tapped.items()), id(rate))
        variants = program.own_functions if program.is_of_session else self._variants
        variant = variants.get(key)
        if variant is None:
            variant = self._build(program, dict(tapped), into_step)
            if rate is not None:
                variant = restoring_rate(variant, rate)
            variants.add(key, variant, keep=(program, rate))
        return variant(args, feeds)  # type: ignore[no-any-return]

    def _is_output(self, key: str) -> bool:
        """Whether the tensor is among what Keras's function returns anyway."""
        if key.startswith(OUTPUTS):
            return True
        is_one = self._model.distribute_strategy.num_replicas_in_sync == 1
        return is_one and key != "loss" and key in self.names.loop_keys

    def _build(
        self, program: SessionProgram, tapped: Mapping[str, str], fed: StepFeeds
    ) -> Callable[..., Any]:
        self.names.check_fed(fed.tensors)
        keys = {key for key in tapped.values() if not self._is_output(key)}
        if fed.tensors:  # what is fed is put into the trace
            function, tap = self._make_function(frozenset(keys), is_filed=False)
        else:
            function, tap = self._keras_function(frozenset(keys))
        output_names = eager_step.output_names(self._model)
        step_tensors = sorted(program.closure.step_tensors)
        inner = traceable(function)
        is_optional = inner is not function
        steps = getattr(self._model, "steps_per_execution", 1) if is_optional else 1
        if inner is None or steps > 1:
            _check_no_tensors(fed, "it runs eagerly or several steps a call")
            return _in_three_calls(function, tap, program, tapped, fed, output_names)
        if not program.has_ops:
            names = [tensor.op.name for tensor in program.tensors]
            direct = self._calling_directly(inner, tap, is_optional)

            def call_as_is(args: Any, feeds: Any) -> Any:
                outputs, taken = direct(*args)
                values = values_of(tapped, outputs, taken, output_names)
                return outputs, [values[name] for name in names], values

            return call_as_is
        if self._model.distribute_strategy.num_replicas_in_sync > 1:
            _check_no_tensors(fed, "every replica has a tensor of its own")

        def merged(args: Any, feeds: Any) -> Any:
            tap.feed({key: feeds[index] for key, index in fed.tensors.items()})
            known = program.build_before(feeds)
            with rate_applied(fed, feeds):
                result = inner(*args)
            outputs, taken = split(result.get_value() if is_optional else result)
            values = values_of(tapped, outputs, taken, output_names)
            fetched = program.build_after(known, {n: values[n] for n in step_tensors})
            return outputs, fetched, values

        if program.feeds:
            fed_function = compiled(merged, reduce_retracing=True)

            def call(args: Any, feeds: Any) -> Any:
                with tap.tracing():
                    return fed_function(args, list(feeds))

            return call

        unfed = _traced(SameIterator(compiled(lambda *args: merged(args, ()))), tap)
        return lambda args, feeds: unfed(*args)

    def _calling_directly(
        self, inner: Any, tap: StepTap, is_optional: bool
    ) -> Callable[..., Any]:
        """Calls Keras's step; returns what Keras gets and what is tapped."""
        if tap not in self._direct:
            if is_optional:
                function = compiled(lambda *args: inner(*args).get_value())
            else:
                function = inner
            traced = _traced(SameIterator(function), tap)
            self._direct[tap] = lambda *args: split(traced(*args))
        return self._direct[tap]


def _traced(function: SameIterator, tap: StepTap) -> Callable[..., Any]:
    """A function that may trace the step only where the step is tapped."""

    def call(*args: Any) -> Any:
        if function.knows(*args):
            return function(*args)
        with tap.tracing():
            return function(*args)

    return call


def _untapped(function: Callable[..., Any], is_tapped: bool) -> Any:
    """A function of Keras's that gives what Keras gets, whatever is tapped in it."""
    return (lambda *args: split(function(*args))[0]) if is_tapped else function


def _check_no_tensors(fed: StepFeeds, why: str) -> None:
    for key in fed.tensors:
        raise errors.LiveSessionError(
            f"`{key}` is computed by the model's step and cannot be fed here: {why}. "
            "Feed a placeholder that a hook makes in `begin`, or train with "
            "`run_eagerly=False`, one step per execution and the default strategy.",
            see="live session",
        )


def _in_three_calls(
    function: Any,
    tap: StepTap,
    program: SessionProgram,
    tapped: Mapping[str, str],
    fed: StepFeeds,
    output_names: Sequence[str],
) -> Callable[..., Any]:
    """A variant that calls Keras's function between the two halves of the program."""
    around = SplitProgram(program)

    def call(args: Any, feeds: Any) -> Any:
        feeds = list(feeds)
        known = around.before(feeds)
        with contextlib.ExitStack() as stack:
            stack.enter_context(tap.tracing())
            stack.enter_context(rate_applied(fed, feeds))
            result = function(*args)
        outputs, taken = split(result)
        values = values_of(tapped, outputs, taken, output_names)
        return outputs, around.after(known, values), values

    return call


def _needs_counter(model: Any) -> bool:
    """Whether a call makes several steps and Keras does not count them.

    Keras 3 leaves the count to the optimizer. It counts its updates: none if the step
    does not use it, and not those that a loss scale skips.
    """
    return not hasattr(model, "_train_counter") and model.steps_per_execution > 1


def _counter() -> Any:
    # A graph of its own keeps it out of the strategy's scope.
    with tf.Graph().as_default(), compat.private("eager_mode")():
        return tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_made")

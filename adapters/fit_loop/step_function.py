"""Keras's step function, able to return the tensors that hooks fetch.

There is one variant per distinct set of fetches; `tapped_function` makes them. Who has
which function, and when:

    models_own_function  the model, between two runs and for a loop inside a run
    _plain_call          Keras's own function, for a step of which hooks fetch nothing
    _first               the function that `discover` traces, before the first step
    _by_keys             functions whose step returns more tensors than the first one's
    _variants            by fetches and feeds: one of these with the ops of hooks around
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop import eager_step
from hookbridge.adapters.fit_loop.batches import BATCH, batch_tensors
from hookbridge.adapters.fit_loop.spies import GRADIENTS
from hookbridge.adapters.fit_loop.step_source import StepSource
from hookbridge.adapters.fit_loop.tapped_function import (
    NO_FEEDS,
    StepFeeds,
    TappedFunction,
    TraceOfIterator,
    makes_one_step,
    with_rate,
)
from hookbridge.adapters.fit_loop.taps import StepTap, split
from hookbridge.adapters.hooked_loop.modes import PREDICT, TRAIN
from hookbridge.adapters.keras_model.optimizers import as_int, optimizer_of
from hookbridge.adapters.keras_model.structure import steps_per_execution
from hookbridge.adapters.keras_model.variables import host_variable
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.step_names import StepNames
from hookbridge.ground.protocols import AnyFunction, KerasModel
from hookbridge.ground.structures import RecentlyUsed

_BY_KEY = ("loss:", GRADIENTS, BATCH)


class ModelsOwnFunction:
    """Keras's own function, as the model has it between two runs."""

    def __init__(self, native: AnyFunction, step_function: StepFunction) -> None:
        self._native = native
        self.step_function = step_function

    def __call__(self, *args: object) -> Any:
        return self._native(*args)


class StepFunction:
    """Makes and keeps the variants of one model's step function.

    They outlive a run: the model keeps them with its own function until `compile`, so
    that the next loop with equal fetches traces nothing.
    """

    def __init__(
        self, source: StepSource, expected_names: frozenset[str] = frozenset()
    ) -> None:
        self._source = source
        self._model = source.model
        # These keys must be known before the trace: replicas sum the loss, and spies
        # read the loss scale of gradients. One that ends with a slash means all below.
        by_key = {name for name in expected_names if name.startswith(_BY_KEY)}
        self._keys_to_trace = frozenset(name.split(":")[0] for name in by_key)
        # The step returns these too, if it has tensors with such names.
        self._names_to_try = tuple(sorted(expected_names - by_key))
        is_counted = source.mode is TRAIN and _needs_counter(source.model)
        self._counter = (
            host_variable(lambda: tf.constant(0, tf.int64)) if is_counted else None
        )
        # What sessions have traced of programs that they run without a step.
        self.traced_programs: RecentlyUsed = RecentlyUsed()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget all variants of the step and make its function again."""
        self._specs: Any = None
        self._optimizer = optimizer_of(self._model)
        self.names: StepNames = eager_step.names_for(self._model)
        self._variants = RecentlyUsed()
        self._by_keys: dict[frozenset[str], TappedFunction] = {}
        self._first = self._make_function(self._keys_to_trace, self._names_to_try)
        self._keys_of_first = self._keys_to_trace
        is_tapped = bool(self._keys_to_trace or self._names_to_try)
        self._plain_call = _without_taps(self._without_dispatch(self._first), is_tapped)
        self.models_own_function: ModelsOwnFunction = ModelsOwnFunction(
            _without_taps(self._first.function, is_tapped), self
        )

    @property
    def for_inner_loop(self) -> ModelsOwnFunction:
        """What a loop inside the run calls: what the model has between two runs."""
        return self.models_own_function

    @property
    def optimizer(self) -> Any:
        """The optimizer that the step trains with.

        A traced step goes on with the optimizer that the model had when Keras made the
        function, until somebody makes a new one.
        """
        return optimizer_of(self._model) if self.names.is_eager else self._optimizer

    def forget_variants(self) -> None:
        """Drop what was made for variables that the model may no longer have."""
        self._variants = RecentlyUsed()
        self.traced_programs = RecentlyUsed()

    def _make_function(
        self,
        keys: frozenset[str],
        names_to_try: Sequence[str] = (),
        for_model: bool = True,
    ) -> TappedFunction:
        """Make a function of Keras, whose step returns the tensors of `keys` too."""
        tap = StepTap(
            self._source,
            sorted(keys),
            self.names,
            names_to_try,
            counter=self._counter,
            optimizer=self._optimizer,
        )
        function = self._source.function_with(tap, for_model=for_model)
        return TappedFunction(self._model, function, tap)

    def _returning(self, keys: frozenset[str]) -> TappedFunction:
        """Return a Keras function whose step returns at least the tensors of `keys`."""
        if keys <= self._keys_of_first:
            return self._first
        if keys not in self._by_keys:
            self._by_keys[keys] = self._make_function(keys, for_model=False)
        return self._by_keys[keys]

    def _without_dispatch(self, first: TappedFunction) -> Any:
        """Return Keras's own function, called past the dispatch of `tf.function`."""
        function, inner = first.function, first.inner
        if inner is None:
            return function
        if not first.returns_optional:
            return TraceOfIterator(inner)
        if not makes_one_step(self._model):
            return function
        # Keras 3 also asks whether the optional is empty: with one step per call it is
        # not. The inner function stays Keras's, so that its errors read the same.
        direct = TraceOfIterator(inner)
        return lambda *args: direct(*args).get_value()

    @property
    def steps_made(self) -> int:
        """A count that each step raises by one; only for several steps per call."""
        counter = self._counter
        return as_int(self._model._train_counter if counter is None else counter)

    def discover(self, *args: Any) -> None:
        """Trace the step without running it and fill the catalogue."""
        # Afterwards the variables of an unbuilt model or optimizer exist.
        specs = tf.nest.map_structure(tf.type_spec_from_value, args)
        if self._specs is not None and self._specs != specs:
            on_model = self._source.function_on_model
            self._begin_anew()  # the catalogue has shapes of other data
            self._source.function_on_model = on_model
        self._specs = specs
        first = self._first
        if first.inner is None:
            eager_step.fill_names(self._model, self._source.mode, self.names)
            if self._source.mode is PREDICT and isinstance(args[0], list):
                args = tuple(args[0][:1])
            for key, spec in batch_tensors(self._source.method, args).items():
                self.names.add_short(key, spec.dtype, spec.shape)
            return
        with first.tap.tracing():
            first.inner.get_concrete_function(*args)
        self._keys_of_first = self._keys_to_trace.union(first.tap.found_keys)

    def run(
        self,
        args: tuple[Any, ...],
        program: SessionProgram,
        feeds: Sequence[Any],
        tapped: Mapping[str, str],
        into_step: StepFeeds = NO_FEEDS,
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Make a step with the variant for what hooks fetch and feed.

        Args:
          args: what Keras passes to its function.
          program: what the session computes around the step.
          feeds: the values of the program's feeds.
          tapped: keys of the step tensors to return, by their placeholders.
          into_step: those of the feeds that go into the step itself.

        Returns:
          What Keras expects, the tensors that hooks fetch, and `{placeholder: value}`
          of the tapped tensors.
        """
        if program.is_empty and not tapped and into_step == NO_FEEDS:
            return self._plain_call(*args), [], {}
        own_rate = None if into_step.rate is None else into_step.rate.variable
        other_ids = tuple(id(rate.variable) for rate in into_step.other_rates)
        key = (program.key, tuple(tapped.items()), id(own_rate), other_ids)
        variants = program.step_variants if program.is_of_session else self._variants
        variant = variants.get(key)
        if variant is None:
            self.names.check_fed(into_step.tensors)
            wanted = frozenset(
                tensor_key
                for tensor_key in tapped.values()
                if not self._source.returns(tensor_key, self.names)
            )
            if into_step.tensors:  # the trace contains the feeds
                function = self._make_function(wanted, for_model=False)
            else:
                function = self._returning(wanted)
            variant = function.variant(program, dict(tapped), into_step)
            own_rates = [] if into_step.rate is None else [into_step.rate]
            for rate in (*own_rates, *into_step.other_rates):
                variant = with_rate(variant, rate)
            variants.add(key, variant, keep=(program, into_step))
        return variant(args, feeds)  # type: ignore[no-any-return]


def _without_taps(function: Callable[..., Any], is_tapped: bool) -> Any:
    """Return a Keras function whose result has no tapped tensors."""
    return (lambda *args: split(function(*args))[0]) if is_tapped else function


def _needs_counter(model: KerasModel) -> bool:
    """Return whether a call makes several steps and Keras does not count them."""
    # In Keras 3 only the optimizer counts. It counts updates, not steps: a step may not
    # use the optimizer, and a loss scale may skip an update.
    return not hasattr(model, "_train_counter") and steps_per_execution(model) > 1

"""Keras's step under `ParameterServerStrategy`, scheduled with the fetches of hooks.

The step runs on a worker, ops of hooks on the coordinator, which has their variables:
those that do not depend on the step when it is scheduled, the others when its values
have arrived.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge import errors
from hookbridge.adapters.fit_loop.eager_step import names_for
from hookbridge.adapters.fit_loop.spies import SCHEDULED_RATE
from hookbridge.adapters.fit_loop.step_source import StepSource
from hookbridge.adapters.fit_loop.tapped_function import StepFeeds
from hookbridge.adapters.fit_loop.taps import StepTap, split
from hookbridge.adapters.keras_model.optimizers import optimizer_of
from hookbridge.adapters.live_session.imported_ops import compile_function
from hookbridge.adapters.live_session.step_names import StepNames
from hookbridge.adapters.parameter_server.step_values import Layout, StepValue
from hookbridge.ground import compat, patching
from hookbridge.ground.protocols import AnyFunction, Arguments, KerasModel


class ScheduledStep:
    """Makes the variants of a model's training step and schedules them."""

    models_own_function = None  # the model keeps nothing after the run

    def __init__(self, source: StepSource) -> None:
        model = source.model
        self._source = source
        self._model = model
        self.names: StepNames = names_for(model)
        self.optimizer: Any = optimizer_of(model)
        self._coordinator = model._cluster_coordinator
        self._variants: dict[Any, _Variant] = {}
        self._untapped: Any = None

    def for_inner_loop(self, *args: object) -> Any:
        """Make a step of a loop inside this one, with Keras's own function."""
        # It is made in the first call, since validation does not call it.
        if self._untapped is None:
            self._untapped = self._source.function_with(
                self._source.method, for_model=False
            )
        return self._untapped(*args)

    def discover(self, *args: object) -> None:
        """Trace the step without running it and fill the catalogue."""
        function, tap = self._keras_function(())
        with tap.tracing():
            scheduled, arguments = _scheduled_by(self._coordinator, function, args)
            scheduled.get_concrete_function(*compat.worker_specs(arguments))

    def _keras_function(self, keys: Sequence[str]) -> tuple[Any, StepTap]:
        tap = StepTap(self._source, keys, self.names)
        return self._source.function_with(tap, for_model=False), tap

    def schedule(
        self,
        args: tuple[Any, ...],
        keys: tuple[str, ...],
        fed: StepFeeds,
        feeds: Sequence[Any],
    ) -> StepValue:
        of_rate = [] if fed.rate is None else [fed.rate.position]
        indices = sorted({*fed.tensors.values(), *of_rate})
        key = (keys, tuple(sorted(fed.tensors.items())), fed.rate is not None)
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = self._build(keys, fed, indices)
        return variant.schedule(args, [feeds[index] for index in indices])

    def _build(
        self, keys: tuple[str, ...], fed: StepFeeds, indices: Sequence[int]
    ) -> _Variant:
        """Make the variant of the step for these taps and feeds."""
        self.names.check_fed(fed.tensors)
        function, tap = self._keras_function(keys)
        of_key = {key: indices.index(index) for key, index in fed.tensors.items()}
        if fed.other_rates:
            raise errors.LiveSessionError(
                "Only the rate of `model.optimizer`, `learning_rate:0`, can be fed "
                "under `ParameterServerStrategy`. Set the rate of another optimizer "
                "by `optimizer.learning_rate`.",
                see="parameter servers",
            )
        if fed.rate is not None:
            if not hasattr(self._model.optimizer, "_learning_rate"):
                raise errors.LiveSessionError(
                    "`learning_rate:0` cannot be fed under `ParameterServerStrategy` "
                    f"with `{type(self._model.optimizer).__name__}`. Use an optimizer "
                    "of `tf.keras.optimizers`, not of its `legacy` module, or set "
                    "`model.optimizer.learning_rate`.",
                    see="parameter servers",
                )
            of_key[SCHEDULED_RATE] = indices.index(fed.rate.position)
        return _Variant(self._model, function, tap, of_key, len(indices))


class _Variant:
    """The step with some taps and feeds, traced again for each iterator.

    Args:
      model: the model of the step.
      function: Keras's function, whose step is tapped by `tap`.
      tap: what the step is given and what it returns.
      places: which feed goes where in the step, by their keys.
      num_feeds: how many feeds each step gets.
    """

    def __init__(
        self,
        model: KerasModel,
        function: AnyFunction,
        tap: StepTap,
        places: Mapping[str, int],
        num_feeds: int,
    ) -> None:
        self._model = model
        self._coordinator = model._cluster_coordinator
        self._function = function
        self._tap = tap
        self._places = places
        self._num_feeds = num_feeds
        self._layout = Layout()
        self._compiled: Any = None
        # Its trace for the iterator of the last step.
        self._concrete: Any = None
        self._iterator: weakref.ref[Any] | None = None
        # Whether Keras also passes how many steps are to be made.
        self._takes_count = False

    def schedule(self, args: Arguments, feeds: Sequence[Any]) -> StepValue:
        """Schedule a step on a worker."""
        arguments = args
        if self._iterator is None or self._iterator() is not args[0]:
            arguments = self._trace(args, feeds)
        elif self._takes_count:
            arguments = (*args, self._model._steps_per_execution.value())
        steps = int(arguments[len(args)]) if self._takes_count else 1
        remote = self._coordinator.schedule(self._concrete, args=(*feeds, *arguments))
        return StepValue(remote, self._layout, steps)

    def _trace(self, args: Arguments, feeds: Sequence[Any]) -> Arguments:
        """Trace the step for an iterator; return what Keras gives the step."""
        with self._tap.tracing():
            inner, arguments = _scheduled_by(self._coordinator, self._function, args)
            if self._compiled is None:
                self._compiled = _packing_step(
                    inner, self._tap, self._layout, self._places, self._num_feeds
                )
            self._concrete = self._compiled.get_concrete_function(
                *feeds, *compat.worker_specs(arguments)
            )
        self._iterator = weakref.ref(args[0])
        self._takes_count = len(arguments) > len(args)
        return arguments


def _packing_step(
    inner: AnyFunction,
    tap: StepTap,
    layout: Layout,
    places: Mapping[str, int],
    num_feeds: int,
) -> Any:
    """Make a step that takes the feeds first and packs what it returns."""

    def step(*everything: Any) -> Any:
        feeds, args = everything[:num_feeds], everything[num_feeds:]
        tap.feed({key: feeds[index] for key, index in places.items()})
        return layout.pack(split(inner(*args)))

    return compile_function(step)


def _scheduled_by(
    coordinator: object, function: AnyFunction, args: Arguments
) -> tuple[Any, tuple[Any, ...]]:
    """Return the function that Keras's function would schedule, and its arguments."""
    calls: list[tuple[Any, tuple[Any, ...]]] = []

    def schedule(fn: AnyFunction, args: Any = None, kwargs: object = None) -> None:
        calls.append((fn, tuple(args or ())))

    with patching.patched(coordinator, schedule=schedule):
        function(*args)
    if len(calls) != 1 or not hasattr(calls[0][0], "get_concrete_function"):
        raise errors.RefusedError(
            "Hooks cannot run with this model under `ParameterServerStrategy`: "
            "its `make_train_function` does not schedule one `tf.function` for "
            "each step. Leave `make_train_function` as Keras has it.",
            see="parameter servers",
        )
    return calls[0]

"""Keras's step under `ParameterServerStrategy`, scheduled with the fetches of hooks.

The step runs on a worker, ops of hooks on the coordinator, which has their variables:
those that do not depend on the step when it is scheduled, the others when its values
have arrived.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from hookbridge import errors
from hookbridge.adapters.fit_loop.eager_step import names_for
from hookbridge.adapters.fit_loop.spies import SCHEDULED_RATE
from hookbridge.adapters.fit_loop.step_source import StepSource
from hookbridge.adapters.fit_loop.tapped_function import StepFeeds
from hookbridge.adapters.fit_loop.taps import StepTap, split
from hookbridge.adapters.keras_model.optimizers import optimizer_of
from hookbridge.adapters.live_session.imported_ops import compiled
from hookbridge.adapters.live_session.step_names import StepNames
from hookbridge.adapters.parameter_server.step_values import Layout, StepValue
from hookbridge.ground import compat, patching
from hookbridge.ground.protocols import AnyFunction, Arguments


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
        self._variants: dict[Any, Callable[..., StepValue]] = {}
        self._untapped: Any = None

    def inside(self, *args: object) -> Any:
        """Keras's own function, which a loop inside this one calls."""
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
            scheduled, arguments = self._scheduled_by(function, args)
            scheduled.get_concrete_function(*compat.worker_specs(arguments))

    def _keras_function(self, keys: Sequence[str]) -> tuple[Any, StepTap]:
        tap = StepTap(self._source, keys, self.names)
        return self._source.function_with(tap, for_model=False), tap

    def _scheduled_by(
        self, function: AnyFunction, args: Arguments
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the function that Keras would schedule, and its arguments."""
        calls: list[tuple[Any, tuple[Any, ...]]] = []

        def schedule(fn: AnyFunction, args: Any = None, kwargs: Any = None) -> None:
            calls.append((fn, tuple(args or ())))

        with patching.patched(self._coordinator, schedule=schedule):
            function(*args)
        if len(calls) != 1 or not hasattr(calls[0][0], "get_concrete_function"):
            raise errors.RefusedError(
                "Hooks cannot run with this model under `ParameterServerStrategy`: "
                "its `make_train_function` does not schedule one `tf.function` for "
                "each step. Leave `make_train_function` as Keras has it.",
                see="parameter servers",
            )
        return calls[0]

    def schedule(
        self,
        args: tuple[Any, ...],
        keys: tuple[str, ...],
        fed: StepFeeds,
        feeds: Sequence[Any],
    ) -> StepValue:
        indices = sorted({*fed.tensors.values(), *([fed.rate[1]] if fed.rate else [])})
        key = (keys, tuple(sorted(fed.tensors.items())), fed.rate is not None)
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = self._build(keys, fed, indices)
        return variant(args, [feeds[index] for index in indices])

    def _build(
        self, keys: tuple[str, ...], fed: StepFeeds, indices: Sequence[int]
    ) -> Callable[..., StepValue]:
        """Make the variant of the step for these taps and feeds."""
        self.names.check_fed(fed.tensors)
        function, tap = self._keras_function(keys)
        layout = Layout()
        of_key = {key: indices.index(index) for key, index in fed.tensors.items()}
        if fed.other_rates:
            raise errors.LiveSessionError(
                "Only the rate of `model.optimizer`, `learning_rate:0`, can be fed "
                "under `ParameterServerStrategy`. Set the rate of another optimizer "
                "by `optimizer.learning_rate`.",
                see="parameter servers",
            )
        if fed.rate is not None:
            self._check_rate()
            of_key[SCHEDULED_RATE] = indices.index(fed.rate[1])
        count = len(indices)

        def packed(inner: AnyFunction) -> Any:
            def step(*everything: Any) -> Any:
                feeds, args = everything[:count], everything[count:]
                tap.feed({key: feeds[index] for key, index in of_key.items()})
                return layout.pack(split(inner(*args)))

            return compiled(step)

        whole: Any = None
        concrete: Any = None
        traced_for: weakref.ref[Any] | None = None

        def call(args: Arguments, feeds: Sequence[Any]) -> StepValue:
            nonlocal whole, concrete, traced_for
            if traced_for is None or traced_for() is not args[0]:
                with tap.tracing():
                    inner, arguments = self._scheduled_by(function, args)
                    if whole is None:
                        whole = packed(inner)
                    specs = compat.worker_specs(arguments)
                    concrete = whole.get_concrete_function(*feeds, *specs)
                traced_for = weakref.ref(args[0])
            else:
                arguments = args
                if steps_argument:
                    arguments = (*args, self._model._steps_per_execution.value())
            steps_argument[:] = arguments[len(args) :]
            steps = int(steps_argument[0]) if steps_argument else 1
            remote = self._coordinator.schedule(concrete, args=(*feeds, *arguments))
            return StepValue(remote, layout, steps)

        steps_argument: list[Any] = []
        return call

    def _check_rate(self) -> None:
        if not hasattr(self._model.optimizer, "_learning_rate"):
            raise errors.LiveSessionError(
                "`learning_rate:0` cannot be fed under `ParameterServerStrategy` with "
                f"`{type(self._model.optimizer).__name__}`. Use an optimizer of "
                "`tf.keras.optimizers`, not of its `legacy` module, or set "
                "`model.optimizer.learning_rate`.",
                see="parameter servers",
            )

"""Keras's step under `ParameterServerStrategy`, scheduled with what hooks want.

The step travels to a worker; what hooks compute around it stays on the
coordinator, which has their variables. So a run is cut in three: what depends on
nothing of the step runs when it is scheduled, the step on a worker, the rest when
its values are there.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.adapters.fit_loop.modes import TRAIN, StepFeeds
from hookbridge.adapters.fit_loop.taps import (
    SCHEDULED_RATE,
    StepTap,
    instance_method,
    split,
)
from hookbridge.adapters.live_session.names import StepNames
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.parameter_server.values import Layout, StepValue

_plain_python: Callable[[Any], Any] = tf.autograph.experimental.do_not_convert


class SplitProgram:
    """The part of a run that the coordinator does, before and after the step.

    Args:
      program: fetches of hooks, merged.
    """

    def __init__(self, program: SessionProgram) -> None:
        self._program = program
        self._needed = sorted(program.closure.step_tensors)
        self._names: list[str] = []
        self._before = tf.function(_plain_python(self._build_before))
        self._after = tf.function(_plain_python(self._build_after))

    def _build_before(self, feeds: Any) -> list[Any]:
        known = {
            n: v
            for n, v in self._program.build_before(feeds).items()
            if isinstance(v, tf.Tensor) and v.dtype != tf.resource
        }
        self._names = list(known)
        return list(known.values())

    def _build_after(self, known: Any, values: Any) -> list[Any]:
        everything = dict(zip(self._names, known, strict=True))
        return self._program.build_after(
            {**self._program.handles(), **everything},
            dict(zip(self._needed, values, strict=True)),
        )

    @property
    def has_before(self) -> bool:
        """Whether anything runs before the step."""
        return bool(self._program.feeds or self._program.closure.before)

    @property
    def has_after(self) -> bool:
        """Whether anything runs after the step."""
        return bool(self._program.closure.after)

    def before(self, feeds: Sequence[Any]) -> list[Any]:
        """Runs what depends on nothing of the step."""
        return list(self._before(list(feeds)))

    def after(self, known: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
        """Runs what depends on the step; returns the fetched values.

        Args:
          known: what `before` returned.
          values: `{step tensor name: value}`.
        """
        return list(self._after(list(known), [values[n] for n in self._needed]))

    def known(self, known: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
        """The fetched values where nothing runs after the step; see `after`."""
        everything: dict[str, Any] = {f"{n}:0": v for n, v in values.items()}
        if known:
            everything.update(zip(self._names, known, strict=True))
        return [everything[t.name] for t in self._program.tensors]


class ScheduledStep:
    """Makes the variants of a model's training step and schedules them.

    Args:
      model: the Keras model.
      make: Keras's own bound `make_train_function`.
      names: the catalogue that the first trace fills.
    """

    def __init__(self, model: Any, make: Any, names: StepNames) -> None:
        self._model = model
        self._make = make
        self._names = names
        self._step = model.train_step
        self._coordinator = model._cluster_coordinator
        self._variants: dict[Any, Callable[..., StepValue]] = {}

    def discover(self, *args: Any) -> None:
        """Traces the step without running it and fills the catalogue."""
        function, tap = self._keras_function(())
        with self._tracing(tap):
            scheduled, arguments = self._scheduled_by(function, args)
            scheduled.get_concrete_function(*compat.worker_specs(arguments))

    def _keras_function(self, wanted: Sequence[str]) -> tuple[Any, StepTap]:
        model = self._model
        tap = StepTap(model, self._step, wanted, self._names)
        filed = {
            name: getattr(model, name)
            for name in (TRAIN.function, "train_tf_function")
            if hasattr(model, name)
        }
        with instance_method(model, TRAIN.step, tap):
            made = self._make(force=True)
        function = getattr(model, TRAIN.function) if made is None else made
        for name, value in filed.items():
            setattr(model, name, value)
        return function, tap

    @contextlib.contextmanager
    def _tracing(self, tap: StepTap) -> Any:
        with instance_method(self._model, TRAIN.step, tap), tap.installed():
            yield

    def _scheduled_by(self, function: Any, args: Any) -> tuple[Any, tuple[Any, ...]]:
        """What Keras's function would schedule, and with which arguments."""
        found: list[tuple[Any, tuple[Any, ...]]] = []

        def schedule(fn: Any, args: Any = None, kwargs: Any = None) -> None:
            found.append((fn, tuple(args or ())))

        with instance_method(self._coordinator, "schedule", schedule):
            function(*args)
        if len(found) != 1 or not hasattr(found[0][0], "get_concrete_function"):
            raise errors.RefusedError(
                "Hooks cannot run with this model under `ParameterServerStrategy`: "
                "its `make_train_function` does not schedule one `tf.function` for "
                "each step. Leave `make_train_function` as Keras has it."
            )
        return found[0]

    def schedule(
        self,
        args: tuple[Any, ...],
        wanted: tuple[str, ...],
        fed: StepFeeds,
        feeds: Sequence[Any],
    ) -> StepValue:
        """Schedules one step.

        Args:
          args: what Keras passes to its function.
          wanted: keys of the step's tensors to return besides.
          fed: which feeds go into the step.
          feeds: eager tensors of the run.
        """
        indices = sorted({*fed.tensors.values(), *([fed.rate[1]] if fed.rate else [])})
        key = (wanted, tuple(sorted(fed.tensors.items())), fed.rate is not None)
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = self._build(wanted, fed, indices)
        return variant(args, [feeds[index] for index in indices])

    def _build(
        self, wanted: tuple[str, ...], fed: StepFeeds, indices: Sequence[int]
    ) -> Callable[..., StepValue]:
        self._names.check_fed(fed.tensors)
        function, tap = self._keras_function(wanted)
        layout = Layout()
        of_key = {key: indices.index(index) for key, index in fed.tensors.items()}
        if fed.rate is not None:
            self._check_rate()
            of_key[SCHEDULED_RATE] = indices.index(fed.rate[1])
        count = len(indices)

        def packed(inner: Any) -> Any:
            @_plain_python
            def step(*everything: Any) -> Any:
                feeds, args = everything[:count], everything[count:]
                tap.feeds = {key: feeds[place] for key, place in of_key.items()}
                return layout.pack(split(inner(*args)))

            return tf.function(step)

        whole: Any = None
        concrete: Any = None
        traced_for: weakref.ref[Any] | None = None

        def call(args: Any, feeds: Sequence[Any]) -> StepValue:
            nonlocal whole, concrete, traced_for
            if traced_for is None or traced_for() is not args[0]:
                with self._tracing(tap):
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
                "`model.optimizer.learning_rate`."
            )

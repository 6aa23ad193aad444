"""One `(fetches, feeds)` of a live session as a function of the eager runtime.

The ops that the fetches need are cut out of the live graph and imported into a
`tf.function`, where the handles of eager variables replace their placeholders. Around
a training step they are cut in two: ops that depend on tensors of the step run after
it, the others before it. So a hook that fetches the global step or a weight together
with the step gets the value from before the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.live_session.growing_graph import GrowingGraph
from hookbridge.adapters.live_session.imported_ops import (
    ImportedOps,
    SessionResources,
    compile_function,
)
from hookbridge.adapters.live_session.needed_ops import NeededOps
from hookbridge.ground.structures import RecentlyUsed


class SessionProgram:
    """The fetches of one run, ready to be built around a step or alone."""

    def __init__(
        self,
        graph: GrowingGraph,
        fetches: Sequence[Any],
        feeds: Sequence[Any],
        resources: SessionResources,
    ) -> None:
        self.graph = graph
        self._resources = resources
        self.feeds: list[Any] = list(feeds)
        self.fed: frozenset[str] = frozenset(t.name for t in feeds)
        fetched = [f for f in fetches if f.name not in self.fed]
        self.tensors: list[Any] = [
            f for f in fetched if not isinstance(f, tf.Operation)
        ]
        roots = [f if isinstance(f, tf.Operation) else f.op for f in fetched]
        needed = NeededOps(graph, roots, self.fed)
        self.needed: NeededOps = needed
        outputs = dict.fromkeys(
            [*(t.name for t in self.tensors), *(op.name for op in roots)]
        )
        inputs = sorted({t.name for op in needed.after for t in op.inputs})
        self._after = ImportedOps(graph, needed.after, outputs, resources)
        outputs.update(dict.fromkeys(inputs))
        self._before = ImportedOps(graph, needed.before, outputs, resources)
        self._concrete: Any = None
        # For a program of one session: variants of the step around which it is built,
        # and what `run_alone` has traced of it.
        self.step_variants: RecentlyUsed = RecentlyUsed()
        self.traced_alone: RecentlyUsed = RecentlyUsed()
        # Whether it uses variables, queues and so on of hooks. They end with the
        # session, and so does what was traced with them.
        self.is_of_session: bool = bool(
            needed.iterators or self._before.has_resources or self._after.has_resources
        )

    @functools.cached_property
    def key(self) -> Any:
        """A key that is equal for programs of a model that do the same, in any run."""
        needed, known = self.needed, self.graph.variables.handles
        return (
            self._before.key(),
            self._after.key(),
            *(t.name for t in self.tensors),
            *((t.name, t.dtype, str(t.shape)) for t in self.feeds),
            *((name, id(known[name].handle)) for name in sorted(needed.handles)),
            *sorted(needed.step_tensors),
        )

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to run beside the step itself."""
        needed = self.needed
        return not (needed.before or needed.after or needed.step_tensors)

    def handles(self) -> dict[str, Any]:
        """Return the handles of variables and iterators in the traced function."""
        function_graph = tf.compat.v1.get_default_graph()
        needed, known = self.needed, self.graph.variables.handles
        handles = {name: known[name].handle for name in sorted(needed.handles)}
        for name in sorted(needed.iterators):
            handles[name] = self._resources.iterator(name)
        return {f"{n}:0": function_graph.capture(h) for n, h in handles.items()}

    def build_before(self, feed_values: Sequence[Any]) -> dict[str, Any]:
        """Build the ops that run before the step; return `{tensor name: value}`."""
        values = self.handles()
        values.update(zip((t.name for t in self.feeds), feed_values, strict=True))
        values.update(self._before.build(values, self.fed))
        return values

    def build_after(
        self, values: dict[str, Any], step_values: Mapping[str, Any]
    ) -> list[Any]:
        """Build the ops that run after the step; return the fetched tensors.

        Args:
          values: tensors that are there before the step, by name.
          step_values: what the step has returned, by the name of its placeholder's op.
        """
        values = dict(values)
        values.update({f"{name}:0": v for name, v in step_values.items()})
        values.update(self._after.build(values, self.fed))
        return [values[t.name] for t in self.tensors]

    def run_alone(
        self,
        feed_values: Sequence[Any],
        step_values: Mapping[str, Any],
        traced: RecentlyUsed,
    ) -> list[Any]:
        """Run everything without a step.

        Args:
          feed_values: the values of the feeds.
          step_values: what an earlier step has returned, by names of placeholders.
          traced: keeps what is traced, unless the program is of one session.
        """
        names = sorted(self.needed.step_tensors)
        arguments = [*feed_values, *(step_values[name] for name in names)]
        if self._concrete is None:
            if self.is_of_session:
                traced = self.traced_alone
            key = (self.key, *(a.dtype for a in arguments))
            self._concrete = traced.get(key)
            if self._concrete is None:
                self._concrete = self._trace(names, arguments)
                traced.add(key, self._concrete, keep=self)
        return list(self._concrete(*arguments))

    def _trace(self, names: list[str], arguments: Sequence[Any]) -> Callable[..., Any]:
        """Trace both halves as one function, which takes the step's tensors too."""
        count = len(self.feeds)

        def body(*args: tf.Tensor) -> list[Any]:
            early = self.build_before(args[:count])
            return self.build_after(early, dict(zip(names, args[count:], strict=True)))

        shapes = [t.shape for t in self.feeds] + [tf.TensorShape(None)] * len(names)
        types = [a.dtype for a in arguments]
        signature = list(map(tf.TensorSpec, shapes, types))
        function: Any = compile_function(body, input_signature=signature)
        return function.get_concrete_function()  # type: ignore[no-any-return]


class SplitProgram:
    """The halves of a program that run before a step and after it."""

    def __init__(self, program: SessionProgram) -> None:
        self._program = program
        self._step_tensors = sorted(program.needed.step_tensors)
        self._names: list[str] = []
        self._before = compile_function(self._build_before)
        self._after = compile_function(self._build_after)

    def _build_before(self, feeds: Sequence[tf.Tensor]) -> list[Any]:
        early = {
            n: v
            for n, v in self._program.build_before(feeds).items()
            if isinstance(v, tf.Tensor) and v.dtype != tf.resource
        }
        self._names = list(early)
        return list(early.values())

    def _build_after(
        self, early: Sequence[tf.Tensor], values: Sequence[tf.Tensor]
    ) -> list[Any]:
        everything = dict(zip(self._names, early, strict=True))
        return self._program.build_after(
            {**self._program.handles(), **everything},
            dict(zip(self._step_tensors, values, strict=True)),
        )

    def before(self, feeds: Sequence[Any]) -> list[Any]:
        """Run the ops that do not depend on the step; return `early` for `after`."""
        if self._program.feeds or self._program.needed.before:
            return list(self._before(list(feeds)))
        return []

    def after(self, early: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
        """Run the ops that depend on the step; return the fetched values."""
        if self._program.needed.after:
            of_step = [values[name] for name in self._step_tensors]
            return list(self._after(list(early), of_step))
        everything: dict[str, Any] = {f"{n}:0": v for n, v in values.items()}
        everything.update(zip(self._names, early, strict=True))
        return [everything[t.name] for t in self._program.tensors]

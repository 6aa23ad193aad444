"""What a recorder fetches from a step of `fit`, by the names that hooks have there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.batches import BATCH
from hookbridge.adapters.keras_model import structure
from hookbridge.adapters.keras_model.optimizers import inner_optimizer
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.ground import collected, compat
from hookbridge.ground.protocols import Graph, RunContext
from hookbridge.reference.ports.keras_steps import settings_of

v1 = tf.compat.v1

_MOVING = re.compile(r"(^|/)moving_\w+$")


def is_of_fit(graph: Graph) -> bool:
    """Return whether hooks begin in a `fit`, also in one in a v1 graph."""
    loops = ("graph_fit_arrays", "graph_fit_generator")
    return isinstance(graph, LiveGraph) or compat.running_locals(*loops) is not None


class FitFetches:
    """What is fetched from the steps of one `fit`, or of a loop of the user's own."""

    # Another set of fetches is another function, whose random operations start again.
    fetches_on = True

    def __init__(self, graph: Any) -> None:
        self._is_eager = isinstance(graph, LiveGraph)
        with self._outside():
            several = structure.steps_per_execution(_model())
        if several > 1:
            raise errors.RefusedError(
                f"`hb.recorder` cannot record a `fit` with steps_per_execution="
                f"{several}: one call makes several steps, and only the last one is "
                "seen. Instead, compile the model with `steps_per_execution=1`.",
                see="reference runs",
            )
        self._graph = graph
        names = [name for name, kind, _ in self.variables() if kind == "weight"]
        gradients = {name: self._tensor(f"gradients/{name}") for name in names}
        loop = getattr(graph, "loop_fetches", {})
        self._fetches: dict[str, Any] = {
            "batch": {
                key.removeprefix(BATCH): self._tensor(key) for key in self._batch()
            },
            "gradients": {n: [g] for n, g in gradients.items() if g is not None},
            "applied": {},
            "metrics": {n: t for n, t in loop.items() if n != "loss"},
        }
        for name in ("loss", "learning_rate"):
            tensor = self._tensor(name)
            if tensor is not None:
                self._fetches[name] = tensor

    def variables(self) -> Iterator[tuple[str, str, Any]]:
        """Yield `(name, kind, variable)` of all that a checkpoint would hold."""
        graph = self._graph
        trainable = graph.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES)
        counter = collected.global_step(graph)
        every = graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
        weights = {variable.op.name for variable in trainable}
        for variable in every:
            name = variable.op.name
            if variable is counter:
                kind = "counter"
            elif name in weights:
                kind = "weight"
            else:
                kind = "state" if self._is_state(variable) else "other"
            yield name, kind, variable

    def _is_state(self, variable: Any) -> bool:
        """Return whether it is an untrained weight: a moving average, or frozen."""
        if not self._is_eager:
            return _MOVING.search(variable.op.name) is not None
        of_model = self._graph.variables.handles.get(variable.op.name)
        return of_model is not None and bool(of_model.is_weight)

    def facts(self) -> dict[str, Any]:
        """Return what `recording.json` says of the model."""
        optimizer = getattr(_model(), "optimizer", None)
        with self._outside():
            inner = None if optimizer is None else inner_optimizer(optimizer)
            described = [] if inner is None else [settings_of(inner)]
            # With a seed for the operation, nothing is drawn.
            seed = v1.random.get_seed(0)[0]
        return {"host": "fit", "seeds": {"graph": seed}, "optimizer": described}

    def _outside(self) -> contextlib.AbstractContextManager[Any]:
        """Enter the mode of the loop: in an eager one, hooks have a graph too."""
        mode = compat.private("eager_mode") if self._is_eager else None
        return mode() if mode else contextlib.nullcontext()

    def fetches(self, run_context: RunContext) -> dict[str, Any]:
        """Return the fetches of each step."""
        fed = run_context.original_args.feed_dict or {}
        if not fed:
            return self._fetches
        # Keras of a v1 graph feeds its inputs.
        batch = {tensor.op.name: tensor for tensor in fed if tf.is_tensor(tensor)}
        return {**self._fetches, "batch": batch}

    def variations(self, folder: str) -> dict[str, Any]:
        """Return None: the step is not in a graph that can be copied."""
        return {}

    def random_ops(self, fetches: object) -> list[str]:
        """Return none: the step is not in this graph."""
        return []

    def _batch(self) -> list[str]:
        names = getattr(self._graph, "names", None)
        return [] if names is None else names.keys_below(BATCH)

    def _tensor(self, name: str) -> Any:
        try:
            return self._graph.as_graph_element(f"{name}:0", allow_operation=False)
        except KeyError:
            return None


def _model() -> Any:
    """Return the model whose `fit` runs; None in a loop of the user's own."""
    return (compat.running_locals("fit") or {}).get("self")

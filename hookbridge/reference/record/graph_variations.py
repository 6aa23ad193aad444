"""Runs the first step of a recorded graph again, each time with one thing changed.

A port often differs from its original by a known mistake of porting. What the loss and
the gradients would be with the mistake is computed here, in a copy of the graph on the
CPU. The training and its graph are not touched.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge.adapters.session_graph import graph_ops
from hookbridge.ground.collected import VARIABLES
from hookbridge.ground.protocols import Graph, Operation
from hookbridge.ground.walks import reached
from hookbridge.reference.record.mistakes_in_nodes import node_variations
from hookbridge.reference.record.mistakes_in_values import value_variations
from hookbridge.reference.record.variation import Edit, Variation
from hookbridge.reference.recordings.array_norms import norm, whole_gradient

v1 = tf.compat.v1

# All variations together may take this long, and a graph may have this many numbers.
_SECONDS, _NUMBERS = 120.0, 50_000_000
_READS = ("ReadVariableOp", "Identity")


class GraphCopy:
    """The part of a graph that computes a loss and gradients, with values to feed.

    Args:
      graph: the graph of the training.
      fetches: what the recorder fetches from a step.
      batch: `{name: array}` that the first step got.
      weights: `{name: array}` of the variables before the first step.
    """

    def __init__(
        self,
        graph: Graph,
        fetches: Mapping[str, Any],
        batch: Mapping[str, Any],
        weights: Mapping[str, Any],
    ) -> None:
        self.loss: str = fetches["loss"].name
        self.gradients: dict[str, list[str]] = {
            name: [tensor.name for tensor in parts]
            for name, parts in fetches["gradients"].items()
        }
        tensors = [fetches["loss"], *itertools.chain(*fetches["gradients"].values())]
        ends = [tensor.op for tensor in tensors]
        fed = {tensor.op.name for tensor in fetches["batch"].values()}

        def needed_by(op: Any) -> list[Any]:
            return [] if op.name in fed or _is_read(op) else graph_ops.inputs_of(op)

        # Those that compute these ends, up to feeds and reads of variables.
        computing = reached(ends, needed_by)
        self.ops: list[Any] = sorted(computing, key=lambda op: str(op.name))
        self.feeds: dict[str, Any] = {
            fetches["batch"][name].name: value for name, value in batch.items()
        }
        self.reads: dict[str, str] = dict(_reads(self.ops, weights))
        self.weights: dict[str, Any] = dict(weights)
        definition = graph.as_graph_def()
        names = {op.name for op in self.ops}
        self.definition: Any = tf.compat.v1.GraphDef()
        self.definition.versions.CopyFrom(definition.versions)
        self.definition.library.CopyFrom(definition.library)
        for node in definition.node:
            if node.name in names:
                self._copy(node, fed)

    def _copy(self, node: Any, fed: set[str]) -> None:
        """Copy a node; one that is fed becomes a placeholder."""
        if node.name not in fed and node.name not in self.reads:
            made = self.definition.node.add()
            made.CopyFrom(node)
            del made.input[:]
            made.input.extend(i for i in node.input if not i.startswith("^"))
            made.device = ""
            for key in ("_class", "_XlaCompile"):
                made.attr.pop(key, None)

    def opened(self, edit: Edit | None) -> OpenedCopy:
        """Return the copy in a session, with its nodes edited."""
        definition = tf.compat.v1.GraphDef()
        definition.CopyFrom(self.definition)
        if edit is not None:
            edit(definition)
        with tf.Graph().as_default() as graph:
            fed = {name: _placeholder(name, v) for name, v in self.feeds.items()}
            for read, variable in self.reads.items():
                name = f"{read}:0"
                fed[name] = _placeholder(name, self.weights[variable])
            tf.graph_util.import_graph_def(definition, input_map=fed, name="")
        return OpenedCopy(self, graph, fed)


class OpenedCopy:
    """A copy of a graph in a session of its own.

    Args:
      copy: what is run.
      graph: the copy's graph.
      fed: the placeholders of what is fed, by the names in the training's graph.
    """

    def __init__(self, copy: GraphCopy, graph: Graph, fed: Mapping[str, Any]) -> None:
        self._copy, self._graph, self._fed = copy, graph, fed
        # The graph runs a few times only: nothing is gained by optimizing it.
        config = v1.ConfigProto(device_count={"GPU": 0})
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        self.session: Any = v1.Session(graph=graph, config=config)

    def run(self, variation: Variation | None = None) -> dict[str, Any]:
        """Return the loss and the norms of gradients, with one thing changed."""
        copy = self._copy
        values, weights, gradients = copy.feeds, copy.weights, dict(copy.gradients)
        if variation is not None:
            values, weights = values | variation.values, weights | variation.weights
            gradients |= variation.gradients
        feeds = {self._tensor(name): value for name, value in values.items()}
        for read, variable in copy.reads.items():
            feeds[self._fed[f"{read}:0"]] = weights[variable]
        names = {"loss": copy.loss, "gradients": gradients}
        results = self.session.run(tf.nest.map_structure(self._tensor, names), feeds)
        return {
            "loss": float(np.mean(results["loss"])),
            "gradient_norms": {
                name: norm(whole_gradient(parts, copy.weights[name].shape))
                for name, parts in results["gradients"].items()
            },
        }

    def _tensor(self, name: str) -> Any:
        fed = self._fed.get(name)
        return self._graph.get_tensor_by_name(name) if fed is None else fed


def recorded_variations(copy: GraphCopy, loss: float) -> Iterator[dict[str, Any]]:
    """Yield what each variation gives, for `recording.json`.

    Nothing is given of a graph whose copy does not give the recorded loss, such as one
    with random operations.
    """
    if sum(value.size for value in copy.weights.values()) > _NUMBERS:
        return
    end = time.monotonic() + _SECONDS
    plain: dict[str, Any] = {}
    # Those with the same edit, or none, have one session.
    every = itertools.chain(value_variations(copy), node_variations(copy))
    for edit, variations in itertools.groupby(every, lambda v: v.edit):
        opened = copy.opened(edit)
        with opened.session:
            if edit is None and not plain:
                plain = opened.run()
                if not math.isclose(plain["loss"], loss, rel_tol=1e-4):
                    return
            for variation in variations:
                if time.monotonic() > end:
                    return
                yield from _try_variation(opened, variation, plain)


def _try_variation(
    opened: OpenedCopy, variation: Variation, plain: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield what a variation gives, if that is something else than without it."""
    try:
        result = opened.run(variation)
    except tf.errors.OpError as e:
        # Another padding may give another shape: no port can have this mistake.
        logging.debug("No variation %r: %s", variation.text, e)
        return
    if math.isfinite(result["loss"]) and result != plain:
        yield {"name": variation.name, "text": variation.text, **result}


def _is_read(op: Operation) -> bool:
    return (
        op.type in _READS and len(op.inputs) == 1 and op.inputs[0].op.type in VARIABLES
    )


def _reads(ops: list[Any], weights: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield ops that read a variable, and which."""
    for op in ops:
        if _is_read(op):
            name = graph_ops.source_op(op.inputs[0]).name
            if name in weights:
                yield op.name, name


def _placeholder(name: str, value: object) -> Any:
    array = np.asarray(value)
    shape = [None, *array.shape[1:]] if array.ndim else []
    return v1.placeholder(array.dtype, shape, name=f"fed/{name.partition(':')[0]}")

"""The global step and the saver of a graph during one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.keras_model.optimizers import made_counter_of, optimizer_of
from hookbridge.ground import collected, compat
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import KerasModel, Session

v1 = tf.compat.v1

# The collections to which the run, its hooks and their scaffolds add.
_OWN = (
    v1.GraphKeys.GLOBAL_STEP,
    v1.GraphKeys.SAVERS,
    v1.GraphKeys.SUMMARY_OP,
    v1.GraphKeys.INIT_OP,
    v1.GraphKeys.LOCAL_INIT_OP,
    v1.GraphKeys.READY_OP,
    v1.GraphKeys.READY_FOR_LOCAL_INIT_OP,
    compat.private("global_step_read_key"),
)

# The last saver made for a graph, and the ids of the saved objects.
_SAVER = Fact[tuple[list[int], Any]]("graph", "saver")
_UNTRAINED_STEP = Fact[Any]("graph", "step of models that were never trained")


class GraphCollections:
    """Puts the model's step and saver where hooks look for them, and removes them."""

    def __init__(self, graph: tf.Graph) -> None:
        self._graph = graph
        self._before = {key: graph.get_collection(key) for key in _OWN}

    def enter(self, step: tf.Variable) -> None:
        """Make `step` the global step."""
        for key in _OWN:
            self._graph.clear_collection(key)
        self._graph.add_to_collection(v1.GraphKeys.GLOBAL_STEP, step)

    def add_saver(self, step: tf.Variable) -> None:
        """Add a saver of all variables, including those of hooks."""
        saved = [
            *v1.global_variables(),
            *self._graph.get_collection(v1.GraphKeys.SAVEABLE_OBJECTS),
        ]
        entry, key = _SAVER.get(self._graph), list(map(id, saved))
        if entry is None or entry[0] != key:
            if not any(v.op.name == "global_step" for v in saved):
                saved.append(_saved_step(step))
            entry = (key, v1.train.Saver(saved, sharded=True, allow_empty=True))
            _SAVER.put(self._graph, entry)
        self._graph.add_to_collection(v1.GraphKeys.SAVERS, entry[1])

    def leave(self) -> None:
        """Put the collections back as they were before the run."""
        self._mine = {key: self._graph.get_collection(key) for key in _OWN}
        self._set(self._before)

    def enter_again(self) -> None:
        self._set(self._mine)

    def _set(self, collections: Mapping[str, Sequence[Any]]) -> None:
        for key, values in collections.items():
            self._graph.clear_collection(key)
            for value in values:
                self._graph.add_to_collection(key, value)


def _saved_step(step: tf.Variable) -> Any:
    """Save the step under the name by which a session loop restores it."""
    saveable_object = compat.private("saveable_object")

    class SavedStep(saveable_object.SaveableObject):  # type: ignore[misc, name-defined]
        """The step, saved a second time: it is saved under its own name too."""

        def restore(
            self, restored_tensors: Sequence[tf.Tensor], restored_shapes: object
        ) -> Any:
            return v1.assign(step, restored_tensors[0])

    value = tf.identity(step)
    spec = saveable_object.SaveSpec(value, "", "global_step", dtype=value.dtype)
    return SavedStep(value, [spec], "global_step")


def step_of(model: KerasModel, session: Session) -> Any:
    """Return the variable that counts the steps of a model: its optimizer's."""
    # A model that was never trained has none. Then the step is the graph's own global
    # step, or a new variable in no collection.
    step = made_counter_of(optimizer_of(model))
    if step is None:
        step = collected.global_step(session.graph)
    if step is None:
        step = _UNTRAINED_STEP.get(session.graph)
    if step is None:
        step = v1.Variable(
            np.int64(0), trainable=False, collections=[], name="hookbridge/step"
        )
        _UNTRAINED_STEP.put(session.graph, step)
        session.run(step.initializer)
    return step

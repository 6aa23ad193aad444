"""Initialises what hooks have added to a graph whose session trains already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def run_scaffold(session: Any, scaffold: Any) -> None:
    """Finalizes the scaffold of hooks and runs the user's own ops in it."""
    # The ops that `finalize` makes initialise everything: they would reset the model.
    own = (scaffold.init_op, scaffold.local_init_op)
    scaffold.finalize()
    if own[0] is not None:
        session.run(own[0], scaffold.init_feed_dict)
    if scaffold.init_fn is not None:
        scaffold.init_fn(session)
    if own[1] is not None:
        session.run(own[1])


def initialise(session: Any, again: Sequence[Any]) -> None:
    """Initialises what has no value, and `again`; leaves Keras's variables to Keras."""
    graph = session.graph
    variables = [
        v
        for v in dict.fromkeys([*v1.global_variables(), *v1.local_variables()])
        if not getattr(v, "_keras_initialized", False)
    ]
    if variables:
        known = session.run([v1.is_variable_initialized(v) for v in variables])
        new = [v for v, is_known in zip(variables, known, strict=True) if not is_known]
        session.run([v.initializer for v in (*new, *again)])
    for key in (v1.GraphKeys.RESOURCES, v1.GraphKeys.LOCAL_RESOURCES):
        for resource in graph.get_collection(key):
            if not session.run(resource.is_initialized):
                session.run(resource.create)
    session.run(graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS))

"""The loop of a session: a graph is built, and its train op runs until the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from hookbridge.loops.sessions.callable_session import training_session
from hookbridge.loops.towers.build import VARIABLE_DEVICE
from hookbridge.loops.towers.inputs import InputFn, make_dataset, next_training_batch

if TYPE_CHECKING:
    from hookbridge.loops.clusters.session_cluster import SessionCluster


class Steps(NamedTuple):
    """What a session needs of a graph."""

    train_op: Any
    hooks: Sequence[Any]
    scaffold: Any = None


def run_steps(
    build: Callable[[Any], Steps],
    input_fn: InputFn,
    *,
    cluster: SessionCluster | None = None,
    config: Any = None,
    seed: int | None = None,
    **options: Any,
) -> None:
    """Runs steps until the data, a hook or another task ends the session.

    `build` gets the tensors of the next batch, in the graph; `options` are further
    arguments of `MonitoredTrainingSession`.
    """
    place = None if cluster is None else cluster.device_setter()
    with tf.Graph().as_default(), tf.compat.v1.device(place):
        tf.compat.v1.set_random_seed(seed)
        with tf.device(VARIABLE_DEVICE):
            batch = next_training_batch(make_dataset(input_fn, name="input_fn"))
        steps = build(batch)
        opened: Any = training_session if cluster is None else cluster.training_session
        with opened(
            steps.hooks,
            scaffold=steps.scaffold,
            config=config,
            log_step_count_steps=None,
            **options,
        ) as session:
            while not session.should_stop():
                session.run(steps.train_op)

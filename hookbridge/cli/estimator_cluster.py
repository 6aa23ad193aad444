"""Checks and settings of a cluster before Estimator starts its servers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from hookbridge import errors
from hookbridge.cluster import ClusterConfig
from hookbridge.cluster_checks import CHIEF_TYPES


@contextlib.contextmanager
def for_estimator() -> Iterator[ClusterConfig]:
    """Sets `TF_CONFIG` as Estimator needs it, and yields the place of this process.

    Estimator refuses a blank value and a cluster without a chief. In such a cluster
    every task takes the first worker for the chief.

    Raises:
      errors.InvalidArgumentError: `TF_CONFIG` is malformed, or describes a cluster
        in which an Estimator cannot train; the message names the key.
    """
    from hookbridge.loops.tasks.jobs import check_jobs

    given = os.environ.get("TF_CONFIG", "")
    cluster = ClusterConfig.from_environment().with_chief()
    check_jobs(cluster)
    if cluster.task_type == "evaluator" and "master" in cluster.cluster:
        raise errors.InvalidArgumentError(
            "TF_CONFIG['task']['type'] is 'evaluator' in a cluster with the job "
            "'master', which evaluates by itself; expected the job 'chief' in its "
            "place."
        )
    # Estimator reads further keys; they are kept.
    value = json.loads(given) if given.strip() else {}
    for key in ("cluster", "task"):
        value.pop(key, None)
    if cluster.cluster:
        value.update(json.loads(cluster.to_json()))
    os.environ["TF_CONFIG"] = json.dumps(value)
    try:
        yield cluster
    finally:
        if given:
            os.environ["TF_CONFIG"] = given
        else:
            os.environ.pop("TF_CONFIG")


def check_before_servers(
    train_input_fn: Any, num_towers: int, cluster: ClusterConfig
) -> None:
    """Makes checks that Estimator makes only after its server has started.

    Raises:
      errors.InvalidArgumentError: the batch does not divide among the towers.
      errors.ClusterError: this task's port is in use.
    """
    import tensorflow as tf

    from hookbridge.loops.tasks.ports import check_own_port
    from hookbridge.loops.towers.inputs import check_first_batch, next_training_batch

    if cluster.task_type in cluster.cluster:
        check_own_port(cluster)
    if num_towers == 1 or cluster.task_type not in (*CHIEF_TYPES, "worker"):
        return
    with tf.Graph().as_default(), tf.device("/device:CPU:0"):
        batch = train_input_fn()
        if isinstance(batch, tf.data.Dataset):
            batch = next_training_batch(batch)
        check_first_batch(batch, num_towers)

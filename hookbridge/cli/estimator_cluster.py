"""Checks and settings of a cluster before Estimator starts its servers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from hookbridge import errors
from hookbridge.cluster import ClusterConfig


@contextlib.contextmanager
def for_estimator() -> Iterator[ClusterConfig]:
    """Sets `TF_CONFIG` as Estimator needs it, and yields the place of this process.

    Estimator refuses a blank value and a cluster without a chief. In such a cluster
    every task takes the first worker for the chief.
    """
    from hookbridge.loops.tasks.jobs import check_jobs

    before = os.environ.get("TF_CONFIG", "")
    cluster = ClusterConfig.from_environment().with_chief()
    check_jobs(cluster)
    if cluster.task_type == "evaluator" and "master" in cluster.cluster:
        raise errors.InvalidArgumentError(
            "TF_CONFIG['task']['type'] is 'evaluator' in a cluster with the job "
            "'master', which evaluates by itself; expected the job 'chief' in its "
            "place."
        )
    os.environ["TF_CONFIG"] = cluster.to_json() if cluster.cluster else "{}"
    try:
        yield cluster
    finally:
        if before:
            os.environ["TF_CONFIG"] = before
        else:
            os.environ.pop("TF_CONFIG")

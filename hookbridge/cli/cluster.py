"""`hookbridge cluster`: a command in a local cluster of real processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from absl import flags

from hookbridge import errors
from hookbridge.loops.tasks.local_cluster import LocalCluster

SUMMARY = "Run a command in a local cluster, with TF_CONFIG set for each task."
USAGE = "[--flag=value ...] -- COMMAND [ARGUMENT ...]"


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    default = LocalCluster()
    flags.DEFINE_integer(
        "num_workers",
        default.num_workers,
        "Workers beside the chief.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "num_ps",
        default.num_ps,
        "Parameter servers; ended when all other tasks are done.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "chief",
        default.chief,
        "Whether there is a chief; without one, worker 0 is it.",
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "evaluator",
        default.evaluator,
        "Whether there is an evaluator.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "grace_secs",
        default.grace_secs,
        "Seconds a task may take to end after it was told to.",
        lower_bound=0.0,
        flag_values=values,
    )


def run(values: Any, arguments: Sequence[str]) -> int:
    """Runs the command; returns the first exit code that is not 0."""
    if not arguments:
        raise errors.InvalidArgumentError(
            "Received no command; expected one after `--`, for example "
            "`hookbridge cluster --num_workers=2 -- python train.py`."
        )
    cluster = LocalCluster(
        num_workers=values.num_workers,
        num_ps=values.num_ps,
        chief=values.chief,
        evaluator=values.evaluator,
        grace_secs=values.grace_secs,
    )
    if not cluster.chief and not cluster.num_workers:
        raise errors.InvalidArgumentError(
            "Received --nochief and --num_workers=0; expected a chief or a worker."
        )
    return cluster.run(arguments)

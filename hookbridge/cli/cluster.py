"""`hookbridge cluster` runs a command in a local cluster of real processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookbridge import errors
from hookbridge.cli.flag_table import define_fields
from hookbridge.loops.tasks.local_cluster import LocalCluster

SUMMARY = "Run a command in a local cluster, with TF_CONFIG set for each task."
USAGE = "[--flag=value ...] -- COMMAND [ARGUMENT ...]"
# TensorFlow has no option for either.
NOTE = (
    "TensorFlow's servers listen on all network interfaces without authentication,\n"
    "although the addresses say localhost: run this where nobody else can connect."
)
FIELDS = {
    "num_workers": "Workers beside the chief.",
    "num_ps": "Parameter servers; ended when all other tasks are done.",
    "chief": "Whether there is a chief; without one, worker 0 is it.",
    "evaluator": "Whether there is an evaluator.",
    "grace_secs": "Seconds a task may take to end after it was told to.",
}
LEAST = {"num_workers": 0, "num_ps": 0, "grace_secs": 0.0}


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    define_fields(values, LocalCluster(), FIELDS, LEAST)


def run(values: Any, arguments: Sequence[str]) -> int:
    """Runs the command; returns the first exit code that is not 0."""
    if not arguments:
        raise errors.InvalidArgumentError(
            "Received no command; expected one after `--`, for example "
            "`hookbridge cluster --num_workers=2 -- python train.py`."
        )
    cluster = LocalCluster(**{name: values[name].value for name in FIELDS})
    if not cluster.chief and not cluster.num_workers:
        raise errors.InvalidArgumentError(
            "Received --nochief and --num_workers=0; expected a chief or a worker."
        )
    return cluster.run(arguments)

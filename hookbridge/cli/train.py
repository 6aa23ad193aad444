"""`hookbridge train` trains a model definition file, or an Estimator's functions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hookbridge import errors
from hookbridge.cli import job_flags
from hookbridge.cli.flag_table import define, refuse

SUMMARY = "Train a model definition file in any loop, driven by its guests."
USAGE = "--model_def=FILE.py --model_dir=DIR [--flag=value ...]"
EXAMPLE = (
    "hookbridge train --model_def=examples/digits_keras.py --loop=fit --epochs=5 \\\n"
    "    --train_files=examples/data/digits.csv --header_lines=1 --model_dir=runs/fit"
)
NOTE = (
    "`hookbridge train FILE.py` trains the `model_fn` and `train_input_fn` of a file."
)

# Flags that the functions of an Estimator have no use for.
OF_DEFINITIONS = (
    *("loop", "train_files", "eval_files", "header_lines", "bad_rows"),
    *("train_batch_size", "eval_batch_size", "batch_per_tower"),
    *("num_workers", "num_ps", "sync", "progress"),
)


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    job_flags.define_flags(
        values,
        *("train_batch_size", "eval_batch_size", "train_steps", "epochs"),
        *("steps_per_epoch", "num_towers", "num_workers"),
        files=("train_files", "eval_files"),
    )
    define(values, "num_ps", 0, "Parameter servers.", lower_bound=0)
    define(values, "sync", False, "Whether workers make one update together.")
    define(values, "progress", True, "A line that says how far it is.")
    text = "Whether each tower gets a batch of its own."
    define(values, "batch_per_tower", False, text)
    text = "The towers' devices; by default the GPUs, or else logical CPUs."
    define(values, "devices", None, text, list)


def run(values: Any, arguments: Sequence[str]) -> int:
    """Trains; evaluates too if there are data for it."""
    if values.model_def is not None:
        if arguments:
            raise errors.InvalidArgumentError(
                f"Received --model_def and the argument {arguments[0]!r}; expected "
                "one of them."
            )
        return job_flags.run_here_or_in_cluster(values, _train, "train")
    if len(arguments) != 1:
        raise errors.InvalidArgumentError(
            f"Received {len(arguments)} arguments; expected --model_def=FILE.py, or "
            "one Python file with `model_fn` and `train_input_fn`."
        )
    reason = "only --model_def=FILE.py makes use of it"
    refuse(values, OF_DEFINITIONS, f"the file {arguments[0]!r}", reason)
    return _train_functions(values, arguments[0])


def _train(job: Any) -> None:
    told = job.train()
    if told:
        print(told)


def _train_functions(values: Any, path: str) -> int:
    """Trains the Estimator of a file's `model_fn` and `train_input_fn`."""
    if not values.model_dir:
        raise errors.InvalidArgumentError(
            "Received no --model_dir; expected the folder for checkpoints."
        )
    if values.epochs and not values.steps_per_epoch:
        raise errors.InvalidArgumentError(
            f"Received --epochs={values.epochs} without --steps_per_epoch; expected "
            "both, since a session counts steps."
        )
    from hookbridge.arguments import writable
    from hookbridge.cli import estimator_cluster, estimator_job
    from hookbridge.training import user_file

    with estimator_cluster.for_estimator() as cluster:
        writable(values.model_dir, name="--model_dir")
        job = user_file.load_file(path)
        try:
            estimator_job.run(job, values, cluster)
        except errors.HookBridgeError:
            raise
        except (Exception, SystemExit) as e:
            print(user_file.told(path, e, "train"), file=sys.stderr)
            return 1
    return 0

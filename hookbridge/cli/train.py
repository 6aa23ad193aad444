"""`hookbridge train` trains an Estimator from the functions of a user's file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from hookbridge import errors

SUMMARY = "Train a file's model_fn, replicated over towers, driven by its guests."
USAGE = "[--flag=value ...] FILE.py"


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    flags.DEFINE_string(
        "model_dir", None, "Where checkpoints and events go.", flag_values=values
    )
    for name, text in (
        ("max_steps", "Ends the training at this global step."),
        ("steps_per_epoch", "Steps that make an epoch, for callbacks."),
        ("epochs", "Ends the training after so many epochs."),
    ):
        flags.DEFINE_integer(name, None, text, lower_bound=1, flag_values=values)
    flags.DEFINE_integer(
        "num_towers",
        1,
        "Devices of this process that share each batch.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_list(
        "devices",
        None,
        "The towers' devices, as many as --num_towers; by default the GPUs, or else "
        "logical CPU devices.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "seed",
        None,
        "Graph-level random seed.",
        lower_bound=0,
        upper_bound=2**31 - 1,
        flag_values=values,
    )


def run(values: Any, arguments: Sequence[str]) -> int:
    """Trains; evaluates too if the file has an `eval_input_fn`."""
    if len(arguments) != 1:
        raise errors.InvalidArgumentError(
            f"Received {len(arguments)} arguments; expected one Python file with "
            "`model_fn` and `train_input_fn`."
        )
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
    from hookbridge.cli import estimator_cluster, estimator_job, user_file

    with estimator_cluster.for_estimator() as cluster:
        writable(values.model_dir, name="--model_dir")
        job = user_file.load_file(arguments[0])
        try:
            estimator_job.run(job, values, cluster)
        except errors.HookBridgeError:
            raise
        except (Exception, SystemExit) as e:
            print(user_file.told(arguments[0], e), file=sys.stderr)
            return 1
    return 0

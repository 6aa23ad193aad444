"""Flags of the commands that run a model definition file: `train` and its like."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from hookbridge import compat, errors
from hookbridge.cli.flag_table import define
from hookbridge.cluster import ClusterConfig
from hookbridge.cluster_checks import CHIEF_TYPES
from hookbridge.training.settings import LOOPS, TrainingSettings

# Flag -> help. Each command chooses its flags from these two tables.
_FILES = {
    "train_files": "Training data: files, patterns, folders; with commas.",
    "eval_files": "The same for evaluation.",
    "predict_files": "The same for prediction.",
}
_COUNTS = {
    "train_batch_size": (32, "Examples in a step of one process."),
    "eval_batch_size": (64, "Examples in a batch of evaluation and prediction."),
    "train_steps": (None, "Ends the training at this global step."),
    "epochs": (None, "Ends the training after so many epochs."),
    "steps_per_epoch": (None, "Steps of an epoch; counted by default."),
    "num_towers": (1, "Devices of a process that share each batch."),
    "num_workers": (1, "Processes that train."),
}
# Errors of a run that had begun: they are no errors in usage.
_RUNS = (
    errors.LiveModelError,
    errors.LiveSessionError,
    errors.NeverCalledError,
    errors.ClusterError,
)
OTHER_NAMES = {
    "job-dir": "model_dir",
    "max_steps": "train_steps",
    "num_gpus": "num_towers",
}


def define_flags(values: Any, *counts: str, files: tuple[str, ...]) -> None:
    """Defines the flags of a command.

    Args:
      values: the `FlagValues` that get the flags.
      *counts: the names of its counts.
      files: the names of its data flags.
    """
    define(values, "model_def", None, "The model definition file.", str)
    define(values, "loop", "estimator", "Which loop runs it.", LOOPS)
    define(values, "model_dir", None, "Where checkpoints and logs go.", str)
    for name in files:
        define(values, name, None, _FILES[name], list)
    for name in counts:
        default, text = _COUNTS[name]
        define(values, name, default, text, int, lower_bound=1)
    text = "Lines at the top of text files that are no data."
    define(values, "header_lines", 0, text, lower_bound=0)
    text = "What a broken row does: skip counts it."
    define(values, "bad_rows", "stop", text, ("stop", "skip"))
    text = "Of initial weights and random operations."
    define(values, "seed", None, text, int, lower_bound=0, upper_bound=2**31 - 1)
    for other, name in OTHER_NAMES.items():
        if name in values:
            flags.DEFINE_alias(other, name, flag_values=values)


def settings_of(values: Any) -> TrainingSettings:
    """The settings that the flags describe."""
    fields = {
        name: values[name].value
        for name in TrainingSettings.__dataclass_fields__
        if name in values and values[name].value is not None
    }
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    return TrainingSettings(**fields)


def only_flags(values: Any, arguments: Sequence[str]) -> None:
    """Raises `errors.InvalidArgumentError` if there is no --model_def, or more."""
    if values.model_def is None or arguments:
        raise errors.InvalidArgumentError(
            f"Received {' '.join(arguments) or 'no --model_def'}; expected "
            "--model_def=FILE.py and flags."
        )


def run_job(values: Any, act: Callable[[Any], None], command: str) -> int:
    """Runs one command on a model definition file in this process.

    Args:
      values: the command's flags.
      act: called with the `TrainingJob`.
      command: the command's name, for messages.

    Returns:
      The exit code: 0, or 1 if the run failed.
    """
    settings = settings_of(values)
    settings.check()
    use_keras_of_graphs()
    from hookbridge.cli import estimator_cluster
    from hookbridge.training import user_file
    from hookbridge.training.job import TrainingJob
    from hookbridge.training.mirrored import split_cpu

    with estimator_cluster.for_estimator() as cluster:
        module = user_file.load_file(settings.model_def)
        job: Any = None
        try:
            if settings.loop == "fit":
                split_cpu(settings)
            job = TrainingJob(module, settings, cluster)
            act(job)
        except (Exception, SystemExit) as e:
            if isinstance(e, errors.HookBridgeError) and not isinstance(e, _RUNS):
                raise
            if isinstance(e, SystemExit) and not e.code:
                return 0  # a worker or server of `fit` whose chief is done
            if job is None:
                message = user_file.told(settings.model_def, e, command)
            else:
                message = job.told(e, command)
            print(message, file=sys.stderr)
            return 1
    return 0


def run_here_or_in_cluster(values: Any, act: Callable[[Any], None], name: str) -> int:
    """`run_job` in this process, or in each process of a local cluster.

    Where there is a `TF_CONFIG`, this process is a task of that cluster.
    """
    settings = settings_of(values)
    if os.environ.get("TF_CONFIG"):
        _check_sizes(values)
        return run_job(values, act, name)
    if not settings.num_ps:
        return run_job(values, act, name)
    settings.check()
    from hookbridge.loops.tasks.local_cluster import LocalCluster

    given = [values[flag].serialize() for flag in values if values[flag].present]
    words = [word for line in given for word in line.split("\n")]
    beside = settings.num_workers - (settings.loop != "fit")  # `fit` has a coordinator
    cluster = LocalCluster(num_workers=beside, num_ps=settings.num_ps)
    return cluster.run(
        [sys.executable, "-m", "hookbridge", name, *dict.fromkeys(words)]
    )


def _check_sizes(values: Any) -> None:
    """Raises if the flags tell another cluster than `TF_CONFIG`."""
    config = ClusterConfig.from_environment().with_chief()
    jobs = ("worker",) if values.loop == "fit" else (*CHIEF_TYPES, "worker")
    workers = sum(len(config.cluster.get(job, ())) for job in jobs)
    sizes = {"num_workers": workers or 1, "num_ps": len(config.cluster.get("ps", ()))}
    for name, size in sizes.items():
        if values[name].present and values[name].value != size:
            raise errors.InvalidArgumentError(
                f"Received --{name}={values[name].value}, and TF_CONFIG says {size}; "
                "expected one of them: this process is a task of TF_CONFIG's cluster."
            )


def use_keras_of_graphs() -> None:
    """Makes `tf.keras` Keras 2, which all loops can run, if that is still open.

    TF_USE_LEGACY_KERAS=0 keeps Keras 3, for `--loop=fit`.
    """
    if "tensorflow" in sys.modules or compat.installed_tf_version() < (2, 16):
        return
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

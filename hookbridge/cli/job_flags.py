"""Flags of the commands that run a model definition file: `train` and its like."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from hookbridge.cli.parser import Parser, Values
from hookbridge.ground import compat
from hookbridge.jobs.training.training_settings import LOOPS, TrainingSettings

# Group -> flag -> help, and its type where the default is None. The defaults are those
# of `TrainingSettings`.
_FLAGS: dict[str, dict[str, tuple[str, Any]]] = {
    "": {
        "loop": (
            "The training loop (default: fit for a file with `custom_model`, estimator "
            "for one with `model_fn`).",
            LOOPS,
        )
    },
    "data": {
        "train_files": (
            "Training data: files, patterns or folders, separated by commas.",
            list,
        ),
        "eval_files": ("Evaluation data: files, patterns or folders.", list),
        "predict_files": ("Prediction data: files, patterns or folders.", list),
        "header_lines": ("Number of header lines at the top of each text file.", None),
        "bad_rows": (
            "Stop at a row that cannot be read, or skip and count it.",
            ("stop", "skip"),
        ),
        "train_batch_size": ("Examples in each step of one process.", None),
        "eval_batch_size": (
            "Examples in each batch of an evaluation or prediction.",
            None,
        ),
    },
    "length": {
        "epochs": ("Maximum number of epochs.", int),
        "steps_per_epoch": (
            "Steps in each epoch (default: all rows of the data once).",
            int,
        ),
        "train_steps": ("Global step at which the training ends.", int),
    },
    "cluster": {
        "num_towers": (
            "Number of GPUs (without GPUs: CPUs) of a process that share each batch.",
            None,
        ),
        "batch_per_tower": ("Give each tower a whole batch.", None),
        "num_workers": (
            "Number of workers, in addition to the chief, without TF_CONFIG.",
            None,
        ),
        "num_ps": ("Number of parameter servers, without TF_CONFIG.", None),
        "sync": ("Average the gradients of all workers for each update.", None),
    },
    "output": {
        "model_dir": ("Folder for checkpoints and logs.", str),
        "seed": ("Seed of the initial weights and of random operations.", int),
        "progress": ("Show no progress line.", None),
        "report": ("Record what each hook and callback sees and costs.", None),
    },
}
# The flags of a command that reads data with the newest checkpoint, besides its files.
_WITHOUT_TRAINING = (
    "loop",
    "header_lines",
    "bad_rows",
    "eval_batch_size",
    "model_dir",
    "seed",
)
_LEAST = {"header_lines": 0, "num_ps": 0, "num_workers": 0, "seed": 0}
# What gcloud's AI Platform and programs written for it call them.
_ALIASES = {
    "model_dir": ("job_dir",),
    "train_files": ("data_dir",),
    "train_steps": ("max_steps",),
    "num_towers": ("num_gpus",),
}


def define(parser: Parser, files: str = "") -> None:
    """Define the flags of `train`, or of a command that reads the files of a flag."""
    parser.argument("file", flag="model_def")
    for title, flags in _FLAGS.items():
        if files:
            names = [name for name in flags if name in (files, *_WITHOUT_TRAINING)]
        else:
            names = [name for name in flags if name != "predict_files"]
        if title and names:
            parser.group(title)
        for name in names:
            default = TrainingSettings.__dataclass_fields__[name].default
            text, kind = flags[name]
            parser.flag(
                name,
                None if default in ((), "") else default,
                text,
                kind,
                least=_LEAST.get(name, 1),
                aliases=_ALIASES.get(name, ()),
            )
    parser.flag("format", "text", "Format of the result.", ("text", "json"))


def settings_of(values: Values) -> TrainingSettings:
    """Return the settings that the flags describe."""
    fields: dict[str, Any] = {"model_def": values.file}
    for name in TrainingSettings.__dataclass_fields__:
        value = getattr(values, name, None)
        if value is not None:
            fields[name] = tuple(value) if isinstance(value, list) else value
    return TrainingSettings(**fields)


def use_keras_of_graphs() -> None:
    """Make `tf.keras` Keras 2, which all loops can run, if it is not chosen yet.

    TF_USE_LEGACY_KERAS=0 keeps Keras 3, for `--loop=fit`.
    """
    if "tensorflow" in sys.modules or compat.installed_tf_version() < (2, 16):
        return
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

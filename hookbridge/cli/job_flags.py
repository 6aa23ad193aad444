"""Flags of the commands that run a model definition file: `train` and its like."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from hookbridge.cli.parser import Parser, Values
from hookbridge.ground import compat
from hookbridge.jobs.training.settings import LOOPS, TrainingSettings

# Group -> flag -> help, and its type where the default is None. The defaults are those
# of `TrainingSettings`.
_FLAGS: dict[str, dict[str, tuple[str, Any]]] = {
    "": {
        "loop": (
            "Which loop runs it; by default fit for `custom_model`, estimator for "
            "`model_fn`.",
            LOOPS,
        )
    },
    "data": {
        "train_files": ("Training data: files, patterns, folders; with commas.", list),
        "eval_files": ("Data of the evaluation: files, patterns, folders.", list),
        "predict_files": ("Data of the prediction: files, patterns, folders.", list),
        "header_lines": ("Lines at the top of text files that are no data.", None),
        "bad_rows": ("What a broken row does: skip counts it.", ("stop", "skip")),
        "train_batch_size": ("Examples in a step of one process.", None),
        "eval_batch_size": ("Examples in a batch of evaluation and prediction.", None),
    },
    "length": {
        "epochs": ("Ends the training after so many epochs.", int),
        "steps_per_epoch": ("Steps of an epoch; counted by default.", int),
        "train_steps": ("Ends the training at this global step.", int),
    },
    "cluster": {
        "num_towers": ("GPUs, or else CPUs, of a process that share each batch.", None),
        "batch_per_tower": ("Each tower gets a batch of its own.", None),
        "num_workers": ("Workers beside the chief, where no TF_CONFIG says it.", None),
        "num_ps": ("Parameter servers, where no TF_CONFIG says it.", None),
        "sync": ("The workers make one update together.", None),
    },
    "output": {
        "model_dir": ("Where checkpoints and logs go.", str),
        "seed": ("Of initial weights and random operations.", int),
        "progress": ("No line that says how far it is.", None),
        "report": ("Record what each guest sees and costs, for report.html.", None),
    },
}
# The flags of a command that reads data with the newest checkpoint, besides its files.
_READING = ("loop", "header_lines", "bad_rows", "eval_batch_size", "model_dir", "seed")
_LEAST = {"header_lines": 0, "num_ps": 0, "num_workers": 0, "seed": 0}
# What gcloud's AI Platform and programs written for it call them.
_ALIASES = {
    "model_dir": ("job_dir",),
    "train_files": ("data_dir",),
    "train_steps": ("max_steps",),
    "num_towers": ("num_gpus",),
}


def define(parser: Parser, files: str = "") -> None:
    """Defines the flags of `train`, or of a command that reads the files of a flag."""
    parser.argument("file", flag="model_def")
    for title, flags in _FLAGS.items():
        if files:
            names = [name for name in flags if name in (files, *_READING)]
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
    parser.flag("format", "text", "How the result is printed.", ("text", "json"))


def settings_of(values: Values) -> TrainingSettings:
    """The settings that the flags describe."""
    fields: dict[str, Any] = {"model_def": values.file}
    for name in TrainingSettings.__dataclass_fields__:
        value = getattr(values, name, None)
        if value is not None:
            fields[name] = tuple(value) if isinstance(value, list) else value
    return TrainingSettings(**fields)


def use_keras_of_graphs() -> None:
    """Makes `tf.keras` Keras 2, which all loops can run, if that is still open.

    TF_USE_LEGACY_KERAS=0 keeps Keras 3, for `--loop=fit`.
    """
    if "tensorflow" in sys.modules or compat.installed_tf_version() < (2, 16):
        return
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

"""`hookbridge demo`: one list of guests in a session loop and in `Model.fit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from absl import flags

from hookbridge import errors
from hookbridge.demo.settings import DemoSettings

SUMMARY = "Train a digits classifier in both loops, driven by one list of guests."
USAGE = "[--flag=value ...]"


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    default = DemoSettings()
    flags.DEFINE_integer(
        "epochs",
        default.epochs,
        "Train for at most so many epochs.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "batch_size",
        default.batch_size,
        "Examples in a step; a multiple of --num_towers times --num_workers.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "num_towers",
        default.num_towers,
        "Towers of the session loop, in each worker.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "num_workers",
        default.num_workers,
        "Workers of each of the two clusters.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "local",
        False,
        "Run both loops in this process, with ten guests, without clusters.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "learning_rate",
        default.learning_rate,
        "Learning rate at the start.",
        lower_bound=0.0,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "seed",
        default.seed,
        "Seed of the weights, the split and the order of the data.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_string(
        "model_dir",
        default.model_dir,
        "Where everything is written; files of an earlier demo are replaced.",
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "json",
        False,
        "Print the report as JSON on stdout instead of the table.",
        flag_values=values,
    )


def run(values: Any, arguments: Sequence[str]) -> int:
    """Runs the demo; returns 1 if a guest did not see the documented events."""
    if arguments:
        raise errors.InvalidArgumentError(
            f"Received the argument {arguments[0]!r}; expected flags only. "
            "See `hookbridge demo --help`."
        )
    if values.local and values["num_workers"].present:
        raise errors.InvalidArgumentError(
            f"Received --local and --num_workers={values.num_workers}; expected one of "
            "them: --local runs in this process, without workers."
        )
    settings = DemoSettings(
        epochs=values.epochs,
        batch_size=values.batch_size,
        num_towers=values.num_towers,
        num_workers=0 if values.local else values.num_workers,
        learning_rate=values.learning_rate,
        seed=values.seed,
        model_dir=values.model_dir,
    )
    settings.check()
    if values.local:
        from hookbridge.demo.run import run_demo
    else:
        from hookbridge.demo.cluster_run import run_demo

    return run_demo(settings, as_json=values.json)

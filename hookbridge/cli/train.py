"""`hookbridge train` trains a model definition file."""

from __future__ import annotations

from typing import Any

from hookbridge.cli import job_flags
from hookbridge.cli.parser import Parser, Values

SUMMARY = "Train a model definition file in any loop, driven by its guests."
USAGE = "FILE.py --model_dir=DIR [--flag=value ...]"
EXAMPLE = (
    "hookbridge train examples/digits_keras.py --epochs=5 --header_lines=1 \\\n"
    "    --train_files=examples/data/digits.csv --model_dir=runs/fit"
)
NOTE = (
    "Other spellings: --model_def=FILE.py; --job-dir, --data_dir, --max_steps and\n"
    "--num_gpus for --model_dir, --train_files, --train_steps and --num_towers."
)


def define_flags(parser: Parser) -> None:
    """Defines the command's flags."""
    job_flags.define_file(parser)
    job_flags.define(
        parser,
        "data",
        *("train_files", "eval_files", "header_lines", "bad_rows"),
        *("train_batch_size", "eval_batch_size"),
    )
    job_flags.define(parser, "length", "epochs", "steps_per_epoch", "train_steps")
    job_flags.define(
        parser,
        "cluster",
        *("num_towers", "devices", "batch_per_tower", "num_workers", "num_ps", "sync"),
    )
    job_flags.define_output(parser, "progress", "report")


def run(values: Values) -> int:
    """Trains; evaluates too if there are data for it."""

    def train(job: Any) -> None:
        summary, results = job.train()
        if summary and values.format == "text":
            print(summary)
        if results:
            job_flags.show(values, results)

    return job_flags.run_here_or_in_cluster(values, train, "train")

"""`hookbridge evaluate` evaluates the newest checkpoint of a job."""

from __future__ import annotations

from hookbridge.cli import job_flags
from hookbridge.cli.parser import Parser, Values

SUMMARY = "Evaluate the newest checkpoint of a model definition file."
USAGE = "FILE.py --model_dir=DIR [--flag=value ...]"
EXAMPLE = (
    "hookbridge evaluate examples/digits_keras.py --header_lines=1 \\\n"
    "    --eval_files=examples/data/digits.csv --model_dir=runs/fit"
)


def define_flags(parser: Parser) -> None:
    """Defines the command's flags."""
    job_flags.define_reading(parser, "eval_files")


def run(values: Values) -> int:
    """Prints the metrics, and drives `on_test_*` of the file's callbacks."""
    return job_flags.run_job(
        values, lambda job: job_flags.show(values, job.evaluate()), "evaluate"
    )

"""`hookbridge evaluate` evaluates the newest checkpoint of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookbridge.cli import job_flags

SUMMARY = "Evaluate the newest checkpoint of a model definition file."
USAGE = "--model_def=FILE.py --model_dir=DIR [--flag=value ...]"
EXAMPLE = (
    "hookbridge evaluate --model_def=examples/digits_keras.py --loop=fit \\\n"
    "    --eval_files=examples/data/digits.csv --header_lines=1 --model_dir=runs/fit"
)


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    job_flags.define_flags(values, "eval_batch_size", files=("eval_files",))


def run(values: Any, arguments: Sequence[str]) -> int:
    """Prints the metrics, and drives `on_test_*` of the file's callbacks."""
    job_flags.only_flags(values, arguments)
    return job_flags.run_job(values, _evaluate, "evaluate")


def _evaluate(job: Any) -> None:
    found = job.evaluate()
    print(" ".join(f"{name}={value:.6g}" for name, value in sorted(found.items())))

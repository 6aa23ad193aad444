"""`hookbridge predict` predicts with the newest checkpoint of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookbridge.cli import job_flags

SUMMARY = "Predict with the newest checkpoint of a model definition file."
USAGE = "--model_def=FILE.py --model_dir=DIR [--flag=value ...]"
EXAMPLE = (
    "hookbridge predict --model_def=examples/digits_keras.py --loop=fit \\\n"
    "    --predict_files=examples/data/digits.csv --header_lines=1 \\\n"
    "    --model_dir=runs/fit"
)
NOTE = (
    "The predictions go to the file's callbacks: on_predict_batch_end of, for example,"
    "\nhb.callbacks.PredictionOutputsProcessor(process_fn)."
)


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    job_flags.define_flags(values, "eval_batch_size", files=("predict_files",))


def run(values: Any, arguments: Sequence[str]) -> int:
    """Drives `on_predict_*` of the file's callbacks."""
    job_flags.only_flags(values, arguments)
    return job_flags.run_job(values, _predict, "predict")


def _predict(job: Any) -> None:
    print(f"examples={job.predict()}")

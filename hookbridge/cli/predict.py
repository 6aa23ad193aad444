"""`hookbridge predict` predicts with the newest checkpoint of a job."""

from __future__ import annotations

from hookbridge.cli import job_flags
from hookbridge.cli.parser import Parser, Values

SUMMARY = "Predict with the newest checkpoint of a model definition file."
USAGE = "FILE.py --model_dir=DIR [--flag=value ...]"
EXAMPLE = (
    "hookbridge predict examples/digits_keras.py --header_lines=1 \\\n"
    "    --predict_files=examples/data/digits.csv --model_dir=runs/fit"
)
NOTE = (
    "The predictions go to the file's callbacks: on_predict_batch_end of, for example,"
    "\nhb.callbacks.PredictionOutputsProcessor(process_fn)."
)


def define_flags(parser: Parser) -> None:
    """Defines the command's flags."""
    job_flags.define_reading(parser, "predict_files")


def run(values: Values) -> int:
    """Drives `on_predict_*` of the file's callbacks."""
    return job_flags.run_job(
        values,
        lambda job: job_flags.show(values, {"examples": job.predict()}),
        "predict",
    )

"""`hookbridge train`, `evaluate` and `predict` on one model definition file."""

from __future__ import annotations

from functools import partial
from typing import Any

from hookbridge.cli import job_flags
from hookbridge.cli.parser import Values

_USAGE = "FILE.py --model_dir=DIR [--flag=value ...]"
_EXAMPLE = (
    "hookbridge {} examples/digits_keras.py {}--header_lines=1 \\\n"
    "    --{}_files=examples/data/digits.csv --model_dir=runs/fit"
)


class Train:
    """Trains; evaluates too if there are data for it."""

    SUMMARY = "Train a model definition file in any loop, driven by its guests."
    USAGE = _USAGE
    EXAMPLE = _EXAMPLE.format("train", "--epochs=5 ", "train")
    NOTE = (
        "Other spellings: --model_def=FILE.py; --job-dir, --data_dir, --max_steps and\n"
        "--num_gpus for --model_dir, --train_files, --train_steps and --num_towers."
    )
    define_flags = staticmethod(job_flags.define)

    @staticmethod
    def run(values: Values) -> int:
        """Runs the training, here or in a local cluster."""

        def train(job: Any) -> None:
            summary, results = job.train()
            if summary and values.format == "text":
                print(summary)
            if results:
                job_flags.show(values, results)

        return job_flags.run_here_or_in_cluster(values, train, "train")


class Evaluate:
    """Prints the metrics, and drives `on_test_*` of the file's callbacks."""

    SUMMARY = "Evaluate the newest checkpoint of a model definition file."
    USAGE = _USAGE
    EXAMPLE = _EXAMPLE.format("evaluate", "", "eval")
    define_flags = staticmethod(partial(job_flags.define, files="eval_files"))

    @staticmethod
    def run(values: Values) -> int:
        """Runs the evaluation."""
        return job_flags.run_job(
            values, lambda job: job_flags.show(values, job.evaluate()), "evaluate"
        )


class Predict:
    """Drives `on_predict_*` of the file's callbacks."""

    SUMMARY = "Predict with the newest checkpoint of a model definition file."
    USAGE = _USAGE
    EXAMPLE = _EXAMPLE.format("predict", "", "predict")
    NOTE = (
        "The predictions go to the file's callbacks: on_predict_batch_end of, for "
        "example,\nhb.callbacks.PredictionOutputsProcessor(process_fn)."
    )
    define_flags = staticmethod(partial(job_flags.define, files="predict_files"))

    @staticmethod
    def run(values: Values) -> int:
        """Runs the prediction."""
        return job_flags.run_job(
            values,
            lambda job: job_flags.show(values, {"examples": job.predict()}),
            "predict",
        )

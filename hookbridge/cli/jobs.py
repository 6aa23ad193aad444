"""`hookbridge train`, `evaluate` and `predict` on one model definition file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hookbridge.cli import job_flags, job_run
from hookbridge.cli.parser import Parser, Values

_EXAMPLE = (
    "hookbridge {} examples/digits_keras.py {}--header_lines=1 \\\n"
    "    --{}_files=examples/data/digits.csv --model_dir=runs/fit"
)


@dataclass(frozen=True)
class JobCommand:
    """A command, as its module would be: `work` returns lines to print, and results."""

    name: str
    SUMMARY: str
    EXAMPLE: str
    work: Callable[[Any], tuple[str, Mapping[str, Any]]]
    files: str = ""  # the flag with the data of a command that does not train
    NOTE: str = ""
    USAGE: str = "FILE.py --model_dir=DIR [--flag=value ...]"

    def define_flags(self, parser: Parser) -> None:
        """Define the command's flags."""
        job_flags.define(parser, self.files)

    def run(self, values: Values) -> int:
        """Run the command; a training perhaps in a local cluster."""

        def act(job: object) -> None:
            text, results = self.work(job)
            if text and values.format == "text":
                print(text)
            if results:
                print(_shown(results, values.format))

        run = job_run.run_job if self.files else job_run.run_here_or_in_cluster
        return run(values, act, self.name)


def _shown(results: Mapping[str, Any], form: str) -> str:
    if form == "json":
        return json.dumps(dict(results), default=float)
    return " ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in sorted(results.items())
    )


def _evaluate(job: Any) -> tuple[str, Mapping[str, Any]]:
    return "", job.evaluate()


def _predict(job: Any) -> tuple[str, Mapping[str, Any]]:
    return "", {"examples": job.predict()}


TRAIN = JobCommand(
    name="train",
    SUMMARY="Train a model definition file in any loop, with its hooks and callbacks.",
    EXAMPLE=_EXAMPLE.format("train", "--epochs=5 ", "train"),
    work=lambda job: job.train(),
    NOTE="Other spellings: --model_def=FILE.py; --job-dir, --data_dir, --max_steps,\n"
    "--num_gpus for --model_dir, --train_files, --train_steps, --num_towers.",
)
EVALUATE = JobCommand(
    name="evaluate",
    SUMMARY="Evaluate the newest checkpoint of a model definition file.",
    EXAMPLE=_EXAMPLE.format("evaluate", "", "eval"),
    work=_evaluate,
    files="eval_files",
)
PREDICT = JobCommand(
    name="predict",
    SUMMARY="Predict with the newest checkpoint of a model definition file.",
    EXAMPLE=_EXAMPLE.format("predict", "", "predict"),
    work=_predict,
    files="predict_files",
    NOTE="The predictions go to the file's callbacks: on_predict_batch_end of, for "
    "example,\nhb.callbacks.PredictionOutputsProcessor(process_fn).",
)

"""The whole programs of this folder, how they are run, and the losses they print.

This file also runs on Python 3.7, where the losses of TensorFlow 1.15 are recorded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAMS_DIR = HERE / "programs"
RECORDED = HERE.parent / "data" / "tf1_program_losses.json"
UNTOUCHED, TOUCHED = "1.15", "2.15"


class Program(NamedTuple):
    """A program and the TensorFlow that it was written for.

    Attributes:
      file: its main file, below `programs/`.
      arguments: its command line. It writes into the working directory only.
      native: the TensorFlow that runs it unchanged, `UNTOUCHED` or `TOUCHED`.
    """

    file: str
    arguments: str
    native: str = UNTOUCHED

    def command(self) -> list[str]:
        """The words after `python`, or after `hookbridge run`."""
        return [str(PROGRAMS_DIR / self.file), *self.arguments.split()]


PROGRAMS = {
    # Premade Estimators of iris.
    "iris": Program("iris/premade_estimator.py", "--model_dir=m"),
    # `replicate_model_fn` and `TowerOptimizer`, MNIST's own files.
    "mnist_towers": Program(
        "mnist_towers/mnist.py", "--multi_gpu --data_dir=d --model_dir=m --export_dir=e"
    ),
    # Queues that feed a MonitoredTrainingSession.
    "queue_fed": Program("queue_fed/pictures_train.py", "--data_dir=d --train_dir=m"),
    # `contrib.learn.Experiment` and `learn_runner`.
    "experiment": Program("experiment/task.py", "--job-dir=m --min-eval-frequency=0"),
    # Two train ops in a plain session, all at module level.
    "gan": Program("gan.py", ""),
    # Nets of slim under `slim.learning.train`.
    "slim_nets": Program("slim_nets/train_image_classifier.py", "--train_dir=m"),
    # A sequence model with a conditional random field.
    "tagger": Program("tagger/main.py", "data"),
    # Keras of TensorFlow 1.
    "keras_fit": Program("keras_fit.py", ""),
    # Parameter servers and `Model.fit`.
    "ps_fit": Program("ps_fit.py", "", TOUCHED),
}

# SyncReplicasOptimizer: one process for each task, whose flags give the cluster.
REPLICA = Program("mnist_replica.py", "--sync_replicas")

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
_LOSS = re.compile(r"(\w*loss\w*)\s*[=:]\s*(" + _NUMBER + ")", re.IGNORECASE)
# The prefixes that the loggers of TensorFlow and absl write.
_PREFIX = re.compile(r"^(?:INFO:tensorflow:|[IWEF]\d{4} [^\]]*\] )")
_STEP = re.compile(r"global step: (\d+)\), loss: (" + _NUMBER + ")")


def losses_of(*outputs: str) -> list[tuple[str, str]]:
    """All losses in the outputs of a program: `(name, loss as printed)`.

    Two loggers may show the same line; it counts once.
    """
    found: list[tuple[str, str]] = []
    for output in outputs:
        last = ""
        for line in output.splitlines():
            line = _PREFIX.sub("", line)
            if line != last:
                found += _LOSS.findall(line)
            last = line
    return found


def losses_by_step(output: str) -> list[tuple[str, str]]:
    """The losses of the replica program; a step that two workers print counts once."""
    steps = {int(step): loss for step, loss in _STEP.findall(output)}
    return [(str(step), steps[step]) for step in sorted(steps)]


def printed_losses(output: str) -> set[float]:
    """Every loss that a worker of the replica program prints."""
    return {float(loss) for _, loss in _STEP.findall(output)}

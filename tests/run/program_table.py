"""The whole programs of tests, how they are run, and what they print.

This file also runs on Python 3.7, where the results of TensorFlow 1.15 are recorded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAMS_DIR = HERE / "programs"
SMALL_DIR = HERE.parent / "migrate" / "programs"
RECORDED = HERE.parent / "data" / "tf1_program_losses.json"
UNTOUCHED, TOUCHED = "1.15", "2.15"


class Program(NamedTuple):
    """A program and the TensorFlow that it was written for.

    Attributes:
      path: its main file.
      arguments: its command line. It writes into the working directory only.
      native: the TensorFlow that runs it unchanged, `UNTOUCHED` or `TOUCHED`.
    """

    path: Path
    arguments: str = ""
    native: str = UNTOUCHED

    def command(self) -> list[str]:
        """The words after `python`, or after `hookbridge run`."""
        return [str(self.path), *self.arguments.split()]

    @property
    def is_small(self) -> bool:
        """Whether it is one file, without a command line."""
        return self.path.parent == SMALL_DIR

    def told(self, out: str, err: str) -> list[str]:
        """The lines with its losses and steps; of TensorFlow's log the losses alone."""
        if self.is_small:
            return [line for line in _TELLS.findall(out) if _NUMBERS.search(line)]
        return losses_of(out, err)


WHOLE = {
    # Premade Estimators of iris.
    "iris": Program(PROGRAMS_DIR / "iris/premade_estimator.py", "--model_dir=m"),
    # `replicate_model_fn` and `TowerOptimizer`, MNIST's own files.
    "mnist_towers": Program(
        PROGRAMS_DIR / "mnist_towers/mnist.py",
        "--multi_gpu --data_dir=d --model_dir=m --export_dir=e",
    ),
    # Queues that feed a MonitoredTrainingSession.
    "queue_fed": Program(
        PROGRAMS_DIR / "queue_fed/pictures_train.py", "--data_dir=d --train_dir=m"
    ),
    # `contrib.learn.Experiment` and `learn_runner`.
    "experiment": Program(
        PROGRAMS_DIR / "experiment/task.py", "--job-dir=m --min-eval-frequency=0"
    ),
    # Two train ops in a plain session, all at module level.
    "gan": Program(PROGRAMS_DIR / "gan.py"),
    # Nets of slim under `slim.learning.train`.
    "slim_nets": Program(
        PROGRAMS_DIR / "slim_nets/train_image_classifier.py", "--train_dir=m"
    ),
    # A sequence model with a conditional random field.
    "tagger": Program(PROGRAMS_DIR / "tagger/main.py", "data"),
    # Keras of TensorFlow 1.
    "keras_fit": Program(PROGRAMS_DIR / "keras_fit.py"),
    # Parameter servers and `Model.fit`.
    "ps_fit": Program(PROGRAMS_DIR / "ps_fit.py", "", TOUCHED),
}
_SMALL = {
    TOUCHED: "monitored_session train_and_eval sync_replicas early_stopping listeners "
    "keras_estimator half_upgraded",
    UNTOUCHED: "custom_hooks feeding_hook",
}
PROGRAMS = {
    **WHOLE,
    **{
        name: Program(SMALL_DIR / f"{name}.py", "", native)
        for native, names in _SMALL.items()
        for name in names.split()
    },
}

# SyncReplicasOptimizer: one process for each task, whose flags give the cluster.
REPLICA = Program(PROGRAMS_DIR / "mnist_replica.py", "--sync_replicas")

# The lines that a small program prints; TensorFlow's log is in another stream.
_TELLS = re.compile(
    r"^((?:step|loss|w|x|own|listener|train|eval|seen|predicted)\b[^\n]*)$", re.M
)
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
_NUMBERS = re.compile(_NUMBER)
_LOSS = re.compile(r"(\w*loss\w*)\s*[=:]\s*(" + _NUMBER + ")", re.IGNORECASE)
# The prefixes that the loggers of TensorFlow and absl write.
_PREFIX = re.compile(r"^(?:INFO:tensorflow:|[IWEF]\d{4} [^\]]*\] )")
_STEP = re.compile(r"global step: (\d+)\), loss: (" + _NUMBER + ")")


def losses_of(*outputs: str) -> list[str]:
    """All losses in the outputs of a program, each with its name.

    Two loggers may show the same line; it counts once.
    """
    found: list[str] = []
    for output in outputs:
        last = ""
        for line in output.splitlines():
            line = _PREFIX.sub("", line)
            if line != last:
                found += [f"{name} {loss}" for name, loss in _LOSS.findall(line)]
            last = line
    return found


def numbers(line: str) -> list[str]:
    """The numbers of a line, as printed."""
    return _NUMBERS.findall(line)


def losses_by_step(output: str) -> list[tuple[str, str]]:
    """The losses of the replica program; a step that two workers print counts once."""
    steps = {int(step): loss for step, loss in _STEP.findall(output)}
    return [(str(step), steps[step]) for step in sorted(steps)]


def printed_losses(output: str) -> set[float]:
    """Every loss that a worker of the replica program prints."""
    return {float(loss) for _, loss in _STEP.findall(output)}

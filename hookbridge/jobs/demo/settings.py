"""The demo's settings, which are checked before TensorFlow is imported."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.arguments import check_divides, writable
from hookbridge.ground.imports import extras
from hookbridge.ground.imports.package_files import of_wheel

# This file marks the directory of a demo; the next demo may replace its files.
MARKER = "written_by_hookbridge_demo"
_HERE = "hookbridge.jobs.demo"
_FILE = "digits_in_both_loops.py"
FILE = of_wheel(_HERE, _FILE, in_checkout=f"examples/{_FILE}")
DATA = of_wheel(_HERE, "data", in_checkout="examples/data") / "digits.csv"
TRAINING_IMAGES = 1445  # the others are for the evaluation
LOOPS = ("session", "fit")


@dataclass(frozen=True)
class DemoSettings:
    """The demo's configuration."""

    epochs: int = 30
    batch_size: int = 32
    num_towers: int = 2
    num_trainers: int = 2
    model_dir: str = "runs/demo"
    progress: bool = True

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in one pass over the training images."""
        return TRAINING_IMAGES // self.batch_size

    def trainers(self, loop: str) -> int:
        """Return how many processes of a loop's cluster train; 0 without a cluster."""
        return 0 if loop == "fit" and needs_keras_2() else self.num_trainers

    def missing(self) -> list[str]:
        """Return what this environment lacks for the demo, a line for each."""
        lines = []
        if importlib.util.find_spec("tensorboard") is None:
            lines.append(
                "TensorBoard is not installed: the `TensorBoard` callback is "
                f"skipped. Install it with {extras.install('tensorboard')}."
            )
        if self.num_trainers and needs_keras_2():
            lines.append(
                "No Keras 2: `Model.fit` runs in this process, since Keras 3 cannot "
                "train with parameter servers. Install it with "
                f"{extras.install_tf_keras()}."
            )
        return lines

    def flags(self, loop: str) -> list[str]:
        """Return the flags of `hookbridge train` for one loop."""
        trainers = max(1, self.trainers(loop))
        # Each process of a session has its share of a batch; those of `fit` take turns.
        share = self.batch_size // (trainers if loop == "session" else 1)
        flags = [
            str(FILE),
            f"--loop={loop}",
            f"--model_dir={Path(self.model_dir) / loop}",
            f"--train_files={DATA}",
            f"--eval_files={DATA}",
            "--header_lines=1",
            f"--train_batch_size={share}",
            "--eval_batch_size=2000",
            f"--epochs={self.epochs}",
            f"--steps_per_epoch={self.steps_per_epoch}",
            "--report",
        ]
        if loop == "session":
            flags.append(f"--num_towers={self.num_towers}")
        if self.trainers(loop):
            # The chief of a session trains too; that of `fit` coordinates.
            workers = trainers - 1 if loop == "session" else trainers
            flags += [f"--num_workers={workers}", "--num_ps=1"]
            flags += ["--sync"] if loop == "session" else []
        return [*flags, *([] if self.progress else ["--no_progress"])]

    def check(self) -> None:
        """Refuse values that cannot work."""
        if self.batch_size > TRAINING_IMAGES:
            raise errors.InvalidArgumentError(
                f"Received batch_size={self.batch_size}; expected at most "
                f"{TRAINING_IMAGES}, the number of training images."
            )
        check_divides(self.batch_size, self.num_towers * max(1, self.num_trainers))
        directory = Path(writable(self.model_dir, name="model_dir"))
        if any(directory.iterdir()) and not (directory / MARKER).exists():
            raise errors.InvalidArgumentError(
                f"Received model_dir={self.model_dir!r}, which holds files of "
                "something else; expected an empty or new directory, or one of an "
                "earlier demo."
            )
        (directory / MARKER).touch()


def needs_keras_2() -> bool:
    """Return whether there is Keras 3 alone, which knows no parameter servers."""
    is_new = compat.installed_tf_version() >= (2, 16)
    return is_new and importlib.util.find_spec("tf_keras") is None

"""The demo's settings, which are checked before TensorFlow is imported."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from hookbridge import errors
from hookbridge.arguments import check_divides, writable
from hookbridge.demo.data import TRAINING_IMAGES

# This file marks the directory of a demo; the next demo may replace its files.
MARKER = "written_by_hookbridge_demo"


@dataclass(frozen=True)
class DemoSettings:
    """The demo's configuration.

    Attributes:
      epochs: the most epochs; early stopping may end the run earlier.
      batch_size: examples in a step, over all towers.
      num_towers: towers of the session loop, in each worker.
      num_workers: workers of each cluster; 0 runs both loops in this process.
      learning_rate: the learning rate at the start.
      seed: the seed of the weights, the split and the order of the data.
      model_dir: where both runs write.
      progress: whether a line shows the progress of each loop.
    """

    epochs: int = 30
    batch_size: int = 32
    num_towers: int = 2
    num_workers: int = 2
    learning_rate: float = 3e-3
    seed: int = 0
    model_dir: str = "runs/demo"
    progress: bool = True

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in one pass over the training images."""
        return TRAINING_IMAGES // self.batch_size

    def devices(self) -> tuple[str, ...]:
        """One device for each tower: GPUs if there are enough, else CPUs."""
        import tensorflow as tf

        gpus = len(tf.config.list_physical_devices("GPU"))
        kind = "GPU" if gpus >= self.num_towers else "CPU"
        return tuple(f"/device:{kind}:{i}" for i in range(self.num_towers))

    def check(self) -> None:
        """Refuses values that cannot work.

        Raises:
          errors.InvalidArgumentError: a value, or a combination, is impossible, or
            `model_dir` holds files that are not a demo's.
          errors.UnwritableError: `model_dir` cannot be written.
        """
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise errors.InvalidArgumentError(
                f"Received learning_rate={self.learning_rate}; expected a number "
                "above 0, for example 0.003."
            )
        if self.batch_size > TRAINING_IMAGES:
            raise errors.InvalidArgumentError(
                f"Received batch_size={self.batch_size}; expected at most "
                f"{TRAINING_IMAGES}, the number of training images."
            )
        check_divides(self.batch_size, self.num_towers * max(1, self.num_workers))
        directory = Path(writable(self.model_dir, name="model_dir"))
        if any(directory.iterdir()) and not (directory / MARKER).exists():
            raise errors.InvalidArgumentError(
                f"Received model_dir={self.model_dir!r}, which holds files of "
                "something else; expected an empty or new directory, or one of an "
                "earlier demo."
            )
        (directory / MARKER).touch()

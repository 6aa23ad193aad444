"""One process's part of a job, for both kinds of loops and for the messages."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from hookbridge import checkpoints, errors
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.tasks.task_checks import trainers
from hookbridge.jobs.training.definition import ModelDefinition
from hookbridge.jobs.training.job_inputs import Inputs
from hookbridge.jobs.training.keras_model import built_model
from hookbridge.jobs.training.training_settings import TrainingSettings

SAVE_SECS = 600


@dataclass(frozen=True)
class JobProcess:
    """What one process of a job works with."""

    definition: ModelDefinition
    settings: TrainingSettings
    inputs: Inputs
    config: ClusterConfig
    params: dict[str, Any]

    @property
    def is_chief(self) -> bool:
        """Return whether the results of the job are those of this process."""
        return self.config.is_chief or not self.config.cluster

    @property
    def replicas(self) -> int | None:
        """How many workers make one update together; None if each makes its own."""
        if not (self.settings.sync and self.config.cluster):
            return None
        return len(trainers(self.config))

    def model(
        self, batches: object, scope: AbstractContextManager[Any] | None = None
    ) -> Any:
        """Return the file's Keras model with its first weights; see `built_model`."""
        return built_model(self.definition, batches, self.settings.seed, scope)

    def checkpoint(self) -> str | None:
        """Return the newest checkpoint, or None."""
        return checkpoints.newest(self.settings.model_dir)

    def global_step(self) -> int:
        """Return the step of the newest checkpoint; 0 without one."""
        path = self.checkpoint()
        if path is None:
            return 0
        return int(tf.train.load_variable(path, tf.compat.v1.GraphKeys.GLOBAL_STEP))

    def trained_checkpoint(self) -> str:
        """Return the newest checkpoint, which has to be there."""
        path = self.checkpoint()
        if path is None:
            raise errors.InvalidArgumentError(
                f"Received --model_dir={self.settings.model_dir!r}, which has no "
                "checkpoint; expected the folder of a training. Run `hookbridge "
                "train` first."
            )
        return path

    def does_not_fit(self, checkpoint: str) -> errors.InvalidArgumentError:
        """Return the error for a checkpoint without variables of the loop's graph."""
        return errors.InvalidArgumentError(
            f"Received --loop={self.settings.loop} and "
            f"--model_dir={self.settings.model_dir!r}, whose checkpoint {checkpoint} "
            "lacks variables of this training; expected a checkpoint of the same "
            "loop and model. `fit` and the other loops name the slots of an "
            "optimizer in different ways: go on with the loop that wrote it, or use "
            "an empty folder."
        )

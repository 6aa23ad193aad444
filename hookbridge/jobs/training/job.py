"""Runs one command of a job in this process."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.signals import on_sigterm
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.ground.protocols import RunContext, RunValues
from hookbridge.insight.report.account import AccountRecorder
from hookbridge.insight.report.run_report import write_html
from hookbridge.jobs.loops.tasks.task_checks import trainers
from hookbridge.jobs.loops.towers.spec import EVAL, PREDICT, TRAIN
from hookbridge.jobs.training.definition import ModelDefinition
from hookbridge.jobs.training.job_inputs import Inputs
from hookbridge.jobs.training.job_process import JobProcess
from hookbridge.jobs.training.summary import failure, interruption, report, summary
from hookbridge.jobs.training.training_settings import TrainingSettings

# What TensorFlow says of each checkpoint that does not fit a graph.
_RESTORE = "Restoring from checkpoint failed"
MODES = {"train": TRAIN, "evaluate": EVAL, "predict": PREDICT}


class StepWatchHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook that counts the steps in every loop, and ends it after SIGTERM."""

    def __init__(self) -> None:
        self.steps: int = 0
        self.preempted: bool = False

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Count a step, and end the training after it if SIGTERM came."""
        self.steps += 1
        if self.preempted:
            run_context.request_stop()

    @contextlib.contextmanager
    def saving_at_sigterm(self) -> Iterator[None]:
        """End the training inside at SIGTERM as a stop does, with a checkpoint.

        Raises:
          SystemExit: with `exit_codes.PREEMPTED`, after the block, if SIGTERM came.
        """
        with on_sigterm(self._preempt):
            yield
        if self.preempted:
            raise SystemExit(exit_codes.PREEMPTED)

    def _preempt(self) -> None:
        self.preempted = True


class TrainingJob:
    """A definition file, its data and the loop that runs it."""

    def __init__(
        self, module: ModuleType, settings: TrainingSettings, config: ClusterConfig
    ) -> None:
        definition = ModelDefinition(module, settings.model_dir)
        inputs = Inputs(definition, settings, _shard(settings, config))
        params = {
            "batch_size": settings.train_batch_size,
            "epochs": settings.epochs,
            "saved_model_path": os.path.join(settings.model_dir, "saved_model"),
            "checkpoint_path": settings.model_dir,
        }
        self._process = JobProcess(definition, settings, inputs, config, params)
        self._watch = StepWatchHook()
        self._first_step = 0  # at which the training of this process has begun
        self._loop: Any
        if settings.loop == "fit":
            from hookbridge.jobs.training.fit_training import FitTraining

            self._loop = FitTraining(self._process)
        else:
            from hookbridge.jobs.training.session_training import SessionTraining

            self._loop = SessionTraining(self._process)

    def train(self) -> tuple[str, dict[str, float]]:
        """Train; with data for it, evaluate at the end, without guests."""
        process, began = self._process, time.monotonic()
        settings = process.settings
        process.inputs.function(TRAIN)  # so that missing files are reported first
        steps_per_epoch = self._steps_per_epoch()
        last_step = settings.last_step(steps_per_epoch)
        guests = process.definition.guests(TRAIN)
        recorder = AccountRecorder(guests) if settings.report else None
        before = process.global_step()
        step = self._train(guests, steps_per_epoch, last_step)
        secs = time.monotonic() - began
        results: dict[str, float] = {"global_step": step}
        is_evaluator = process.config.task_type == "evaluator"
        # A session of a cluster cannot be asked again: the others have ended.
        has_data = process.inputs.has(EVAL) and process.checkpoint()
        if is_evaluator or (process.is_chief and has_data):
            results = self._loop.evaluate([])
        facts = {**results, "seconds": secs}
        if recorder is not None and process.config.task_type != "ps":
            self._save_account(
                recorder, facts if process.is_chief else {"global_step": step}
            )
        if not process.is_chief:
            return "", results if is_evaluator else {}
        if os.path.isdir(settings.model_dir):  # not for a remote folder
            write_html(report(settings, facts), settings.model_dir)
        return summary(process, facts, before, last_step), results

    def _steps_per_epoch(self) -> int | None:
        """Return the steps of an epoch; raise if `--epochs` needs them in vain."""
        process = self._process
        steps = process.inputs.steps_per_epoch()
        if process.settings.epochs is not None and steps is None:
            raise errors.InvalidArgumentError(
                f"Received --epochs={process.settings.epochs} without "
                "--steps_per_epoch; expected both, since `train_input_fn` of "
                f"{process.definition.path} does not show how long an epoch is."
            )
        return steps

    def _save_account(self, recorder: AccountRecorder, facts: dict[str, float]) -> None:
        """Write what the guests saw in this process, for the report of the job."""
        config = self._process.config
        task = f"{config.task_type} {config.task_index}"
        account = recorder.account(
            task if config.cluster else "this process",
            facts,
            is_chief=self._process.is_chief,
        )
        account.save(self._process.settings.model_dir)

    def _train(
        self, guests: list[Any], steps_per_epoch: int | None, last_step: int | None
    ) -> int:
        """Train; return the global step at the end."""
        process, watch = self._process, self._watch
        before = self._first_step = process.global_step()
        # The loops of clusters save at SIGTERM by themselves.
        saving: AbstractContextManager[None] = contextlib.nullcontext()
        if not process.config.cluster:
            saving = watch.saving_at_sigterm()
        with self._named_causes(watch), saving:
            guests = [*guests, watch]
            step: int = self._loop.train(guests, steps_per_epoch, last_step)
        was_done = last_step is not None and before >= last_step
        if not (was_done or watch.steps or self._may_see_no_step(step > before)):
            raise process.inputs.nothing_to_train_on()
        return step

    @contextlib.contextmanager
    def _named_causes(self, watch: StepWatchHook) -> Iterator[None]:
        """Name the cause of an error before the first step, where it is known."""
        process = self._process
        checkpoint = process.checkpoint()
        try:
            yield
        except tf.errors.NotFoundError as e:  # TensorFlow's own for a restore
            if checkpoint is None or _RESTORE not in str(e):
                raise
            raise process.does_not_fit(checkpoint) from e
        except ValueError as e:  # Keras's own for a `fit` without data
            is_ours = isinstance(e, errors.HookBridgeError)
            if not is_ours and watch.steps == 0 and process.inputs.is_empty(TRAIN):
                raise process.inputs.nothing_to_train_on() from e
            raise

    def _may_see_no_step(self, has_moved: bool) -> bool:
        """Return whether other processes may have made all steps of this training."""
        config = self._process.config
        return bool(config.cluster) and (has_moved or not config.is_chief)

    def message_of(self, error: BaseException, command: str) -> str:
        """Return the message about a failed run.

        Args:
          error: what the run raised.
          command: the command, such as "train".
        """
        return failure(self._process, error, MODES[command], command)

    def interruption(self) -> str:
        """Return the message about a training that Ctrl-C has ended."""
        # In a cluster other processes make steps too.
        is_alone = not self._process.config.cluster
        step = self._first_step + self._watch.steps if is_alone else None
        return interruption(self._process, step)

    def evaluate(self) -> dict[str, float]:
        """Evaluate the newest checkpoint; `{metric: value}`."""
        return dict(self._loop.evaluate(self._process.definition.guests(EVAL)))

    def predict(self) -> int:
        """Predict with the newest checkpoint; return how many examples there were."""
        examples = 0
        for outputs in self._loop.predict():
            arrays = tf.nest.flatten(outputs)
            if not arrays:  # a session that fetches nothing would never end
                raise self._process.definition.wrong(
                    "model_fn", outputs, "predictions, a tensor or a dict of tensors"
                )
            examples += len(arrays[0])
        return examples


def _shard(settings: TrainingSettings, config: ClusterConfig) -> tuple[int, int]:
    """Return how many processes share the rows, and the index of this process."""
    if not config.cluster or settings.loop == "fit":
        return 1, 0
    tasks = trainers(config)
    own_task = (config.task_type, config.task_index)
    return len(tasks), tasks.index(own_task) if own_task in tasks else 0

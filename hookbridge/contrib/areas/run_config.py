"""`tf.contrib.learn.RunConfig`: Estimator's, with the old arguments."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

import tensorflow as tf

from hookbridge.estimator import revive

# Attributes that do not change `uid`, as in TensorFlow 1. The name is private, but
# programs with a `uid` of their own read it.
_DEFAULT_UID_WHITE_LIST = (
    *("tf_random_seed", "save_summary_steps", "save_checkpoints_steps"),
    *("save_checkpoints_secs", "session_config", "keep_checkpoint_max"),
    *("keep_checkpoint_every_n_hours", "log_step_count_steps"),
)


class TaskType:
    """`tf.contrib.learn.TaskType`."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


class ModeKeys:
    """`tf.contrib.learn.ModeKeys`."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: Any) -> None:
        """Refuses what is no mode.

        Raises:
          ValueError: it is none.
        """
        known = (cls.TRAIN, cls.EVAL, cls.INFER)
        if key not in known:
            raise ValueError(f"Received the mode {key!r}; expected one of {known}.")


class Environment:
    """`tf.contrib.learn.python.learn.estimators.run_config.Environment`."""

    CLOUD = "cloud"
    GOOGLE = "google"
    LOCAL = "local"


def _tf_config() -> Any:
    return json.loads(os.environ.get("TF_CONFIG") or "{}")


@functools.cache
def _run_config() -> Any:
    class RunConfig(revive.namespaces().v1.RunConfig):  # type: ignore[misc]
        """Estimator's `RunConfig` with the arguments of `tf.contrib.learn`."""

        def __init__(
            self,
            master: str | None = None,
            num_cores: int = 0,
            log_device_placement: bool = False,
            gpu_memory_fraction: float = 1,
            tf_random_seed: int | None = None,
            save_summary_steps: int = 100,
            save_checkpoints_secs: int | None = 0,
            save_checkpoints_steps: int | None = None,
            keep_checkpoint_max: int = 5,
            keep_checkpoint_every_n_hours: int = 10000,
            log_step_count_steps: int = 100,
            protocol: str | None = None,
            evaluation_master: str = "",
            model_dir: str | None = None,
            session_config: Any = None,
            session_creation_timeout_secs: int = 7200,
        ) -> None:
            if save_checkpoints_secs == 0:  # "not given", in TensorFlow 1
                save_checkpoints_secs = None if save_checkpoints_steps else 600
            super().__init__(
                model_dir=model_dir,
                tf_random_seed=tf_random_seed,
                save_summary_steps=save_summary_steps,
                save_checkpoints_secs=save_checkpoints_secs,
                save_checkpoints_steps=save_checkpoints_steps,
                session_config=session_config,
                keep_checkpoint_max=keep_checkpoint_max,
                keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
                log_step_count_steps=log_step_count_steps,
                protocol=protocol,
                session_creation_timeout_secs=session_creation_timeout_secs,
            )
            if master is not None:
                self._master = master
            if evaluation_master:
                self._evaluation_master = evaluation_master
            # Estimators never read this; they read `session_config`.
            self._tf_config = tf.compat.v1.ConfigProto(
                log_device_placement=log_device_placement,
                inter_op_parallelism_threads=num_cores,
                intra_op_parallelism_threads=num_cores,
                gpu_options=tf.compat.v1.GPUOptions(
                    per_process_gpu_memory_fraction=gpu_memory_fraction
                ),
            )

        @property
        def tf_config(self) -> Any:
            """The session's configuration that the old arguments ask for."""
            return self._tf_config

        @property
        def environment(self) -> str:
            """`TF_CONFIG`'s environment."""
            return str(_tf_config().get("environment", Environment.LOCAL))

        @staticmethod
        def get_task_id() -> int:
            """The index of this task in `TF_CONFIG`."""
            return int(_tf_config().get("task", {}).get("index") or 0)

        def uid(self, whitelist: Any = _DEFAULT_UID_WHITE_LIST) -> str:
            """A string that tells whether two objects configure the same run."""
            left_out = {f"_{name}" for name in whitelist or ()}
            state = {k: v for k, v in vars(self).items() if k not in left_out}
            if "_cluster_spec" in state:
                state["_cluster_spec"] = sorted(
                    state["_cluster_spec"].as_dict().items()
                )
            return ", ".join(f"{k}={v!r}" for k, v in sorted(state.items()))

    RunConfig.__qualname__ = "RunConfig"
    return RunConfig


def __getattr__(name: str) -> Any:
    # The base class is in a package that is imported only if it is needed.
    if name == "RunConfig":
        return _run_config()
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")

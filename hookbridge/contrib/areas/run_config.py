"""`tf.contrib.learn.RunConfig`: Estimator's, with the old arguments."""

from __future__ import annotations

from typing import Any

from hookbridge.estimator import restored_package

# Attributes that do not change `uid`, as in TensorFlow 1. The name is private, but
# programs with a `uid` of their own read it.
_DEFAULT_UID_WHITE_LIST = (
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
)


class RunConfig(restored_package.namespaces().v1.RunConfig):  # type: ignore[misc]
    """Estimator's `RunConfig` with the arguments of `tf.contrib.learn`.

    Estimators do not read `num_cores` and the two after it; nor do they here.
    """

    def __init__(
        self,
        master: str | None = None,
        *,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        save_checkpoints_secs: int | None = 0,
        save_checkpoints_steps: int | None = None,
        evaluation_master: str = "",
        **options: Any,
    ) -> None:
        if save_checkpoints_secs == 0:  # "not given", in TensorFlow 1
            save_checkpoints_secs = None if save_checkpoints_steps else 600
        super().__init__(
            save_checkpoints_secs=save_checkpoints_secs,
            save_checkpoints_steps=save_checkpoints_steps,
            **options,
        )
        if master is not None:
            self._master = master
        if evaluation_master:
            self._evaluation_master = evaluation_master

    def uid(self, whitelist: Any = _DEFAULT_UID_WHITE_LIST) -> str:
        """Return a string that tells whether two objects configure the same run."""
        left_out = {f"_{name}" for name in whitelist or ()}
        state = {k: v for k, v in vars(self).items() if k not in left_out}
        if "_cluster_spec" in state:
            state["_cluster_spec"] = sorted(state["_cluster_spec"].as_dict().items())
        return ", ".join(f"{k}={v!r}" for k, v in sorted(state.items()))

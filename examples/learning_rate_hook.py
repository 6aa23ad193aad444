"""The classic hook that feeds the learning rate, in a session and in `fit`.

    hookbridge train examples/learning_rate_hook.py --loop=fit \
        --train_files=examples/data/digits.csv --header_lines=1 --epochs=1 \
        --model_dir=runs/rates

The same with `--loop=session` and `--loop=estimator`.
"""

from __future__ import annotations

from typing import Any

# The model and the data are those of `digits_keras.py`.
from digits_keras import custom_model as custom_model
from digits_keras import dataset_fn as dataset_fn
from digits_keras import eval_metrics_fn as eval_metrics_fn
from digits_keras import loss as loss
from digits_keras import optimizer as optimizer
from tensorflow.compat import v1


class LearningRateHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Halves the learning rate every 20 steps, by feeding it."""

    def begin(self) -> None:
        self._step = 0

    def before_run(self, run_context: Any) -> Any:
        rate = 0.01 * 0.5 ** (self._step // 20)
        return v1.train.SessionRunArgs(
            "learning_rate:0", feed_dict={"learning_rate:0": rate}
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._step % 20 == 0:
            print(f"step {self._step}: learning rate {run_values.results:.5f}")
        self._step += 1


def hooks() -> list[Any]:
    """Hooks, for all loops."""
    return [LearningRateHook()]

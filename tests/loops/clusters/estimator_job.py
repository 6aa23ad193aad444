"""One task of an Estimator cluster; started by the tests beside it.

TF_CONFIG=... python tests/loops/clusters/estimator_job.py EVENTS [name=value ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from job_events import Steps, Stopper, one_of_each_role  # noqa: E402
from job_notes import OPTIONS, note  # noqa: E402

import hookbridge as hb  # noqa: E402

v1 = tf.compat.v1


class TestStopper(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Stops the training in the evaluation whose number is the option."""

    def __init__(self) -> None:
        super().__init__()
        self.tests = 0

    def on_test_end(self, logs: Any = None) -> None:
        self.tests += 1
        if self.tests == int(OPTIONS.get("stop_in_test", "-1")):
            self.model.stop_training = True
            note("stop_in_test")


class Asking(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Asks for a stop in the first of the two runs of an evaluation."""

    def begin(self) -> None:
        note("asking")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        note("asked")
        run_context.request_stop()


def input_fn() -> Any:
    """The same batch without end."""
    return tf.data.Dataset.from_tensors(([1.0, 2.0], [3.0, 5.0])).repeat()


def eval_input_fn() -> Any:
    """Two batches."""
    return input_fn().take(2)


def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
    """A line through two points, trained by all workers together."""
    slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
    offset = v1.get_variable("offset", [], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean((features * slope + offset - labels) ** 2)
    hooks: list[Any] = []
    train_op = None
    if mode == "train":
        optimizer = v1.train.AdamOptimizer(0.01)
        if "aggregate" in OPTIONS:
            optimizer = v1.train.SyncReplicasOptimizer(
                optimizer, int(OPTIONS["aggregate"])
            )
        step = v1.train.get_global_step()
        train_op = optimizer.minimize(loss, global_step=step)
        if "aggregate" in OPTIONS:
            hooks.append(optimizer.make_session_run_hook(config.is_chief))
        note("variables", names=sorted(v.op.name for v in v1.global_variables()))
    return hb.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, training_hooks=hooks
    )


def main() -> None:
    """Runs the task that `TF_CONFIG` names."""
    note("start")
    estimator = hb.estimator.Estimator(
        model_fn,
        OPTIONS["dir"],
        config=hb.estimator.RunConfig(
            save_checkpoints_secs=2,
            experimental_max_worker_delay_secs=int(OPTIONS.get("delay_secs", "0")),
        ),
    )
    result = hb.loops.train_and_evaluate(
        estimator,
        hb.estimator.TrainSpec(
            input_fn,
            max_steps=int(OPTIONS.get("last_step", "100000")),
            hooks=hb.as_hooks(
                [Steps(), Stopper(), *one_of_each_role()], steps_per_epoch=10
            ),
        ),
        hb.estimator.EvalSpec(
            eval_input_fn,
            hooks=hb.as_hooks([*one_of_each_role(), TestStopper(), Asking()]),
        ),
    )
    metrics = result[0] if result else None
    note("left", evaluated=None if not metrics else int(metrics["global_step"]))


if __name__ == "__main__":
    main()

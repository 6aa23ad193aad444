"""Every stock hook, how to make one, and what shows that it did its work.

One table for the tests and for docs/hook-support.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import hook_hosts as hosts
import tensorflow as tf

v1 = tf.compat.v1
train = v1.train

MODES = ("fit", "evaluate", "predict")
STRATEGIES = ("default", "MirroredStrategy")


class Row(NamedTuple):
    """A stock hook.

    Attributes:
      name: its public name.
      make: `(directory, mode) -> hook`.
      check: `(hook, directory, mode) -> bool`, whether its effect is there.
      refused: why it is refused in every cell, or None.
      refused_in: `{mode: reason}` for single modes.
    """

    name: str
    make: Callable[[Path, str], Any]
    check: Callable[[Any, Path, str], bool] = lambda hook, directory, mode: True
    refused: str | None = None
    refused_in: dict[str, str] = {}  # noqa: RUF012 - never written to


def _tensor(mode: str) -> str:
    return "hidden/Relu:0" if mode == "predict" else "loss:0"


class Noted(train.LoggingTensorHook):  # type: ignore[misc]
    """The stock hook, its formatter noting what it would log."""

    def __init__(self, tensors: list[str], **kwargs: Any) -> None:
        self.lines: list[Any] = []
        super().__init__(tensors, formatter=self.note, **kwargs)

    def note(self, values: Any) -> str:
        self.lines.append(values)
        return ""


def _checkpoints(hook: Any, directory: Path, mode: str) -> bool:
    path = tf.train.latest_checkpoint(str(directory))
    return path is not None and set(hosts.WEIGHTS) <= set(hosts.read_checkpoint(path))


class _SummaryMaker(train.SummarySaverHook):  # type: ignore[misc]
    """The stock hook with a summary of the hook's own."""

    def begin(self) -> None:
        name = "hidden/Relu:0"
        value = v1.get_default_graph().get_tensor_by_name(name)
        self._summary_op = v1.summary.scalar("mean", tf.reduce_mean(value))
        super().begin()


def _timelines(hook: Any, directory: Path, mode: str) -> bool:
    paths = list(directory.glob("timeline-*.json"))
    return bool(paths) and all(json.loads(p.read_text())["traceEvents"] for p in paths)


def _in_graph(make: Callable[[], Any]) -> Any:
    with tf.Graph().as_default():
        return make()


class _Final(train.FinalOpsHook):  # type: ignore[misc]
    """The stock hook with ops that it makes itself."""

    def __init__(self) -> None:
        super().__init__(None)

    def begin(self) -> None:
        self._final_ops = {"step": train.get_global_step() + 1}
        super().begin()


class _Feeding(train.FeedFnHook):  # type: ignore[misc]
    """The stock hook with a placeholder that it makes itself."""

    def __init__(self) -> None:
        super().__init__(lambda: {"fed:0": 3.0})
        self.seen: list[float] = []

    def begin(self) -> None:
        self.double = v1.placeholder(tf.float32, [], name="fed") * 2

    def before_run(self, run_context: Any) -> Any:
        feeds = super().before_run(run_context).feed_dict
        return train.SessionRunArgs(self.double, feed_dict=feeds)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(float(run_values.results))


NO_STEP = "the global step does not move outside training"
CLUSTER = "queues of a session cluster"

ROWS = (
    Row("StopAtStepHook", lambda d, m: train.StopAtStepHook(num_steps=2)),
    Row(
        "CheckpointSaverHook",
        lambda d, m: train.CheckpointSaverHook(str(d), save_steps=2),
        _checkpoints,
    ),
    Row(
        "SummarySaverHook",
        lambda d, m: _SummaryMaker(
            save_steps=1, output_dir=str(d), summary_op=tf.constant(b"")
        ),
        lambda h, d, m: any(t == "mean" for _, t, _ in hosts.read_scalars(d)),
    ),
    Row(
        "LoggingTensorHook",
        lambda d, m: Noted([_tensor(m)], every_n_iter=2, at_end=True),
        lambda h, d, m: len(h.lines) >= 3,
    ),
    Row(
        "StepCounterHook",
        lambda d, m: train.StepCounterHook(every_n_steps=2, output_dir=str(d)),
        lambda h, d, m: (
            m != "fit"
            or any(t == "global_step/sec" for _, t, _ in hosts.read_scalars(d))
        ),
    ),
    Row("NanTensorHook", lambda d, m: train.NanTensorHook(_tensor(m))),
    Row(
        "FinalOpsHook",
        lambda d, m: _Final(),
        lambda h, d, m: h.final_ops_values["step"] >= 1,
    ),
    Row(
        "FeedFnHook", lambda d, m: _Feeding(), lambda h, d, m: set(h.seen) == {6.0}
    ),
    Row("GlobalStepWaiterHook", lambda d, m: train.GlobalStepWaiterHook(0)),
    Row(
        "ProfilerHook",
        lambda d, m: _in_graph(
            lambda: train.ProfilerHook(save_steps=1, output_dir=str(d))
        ),
        lambda h, d, m: _timelines(h, d, m),
    ),
    Row(
        "SyncReplicasOptimizer hook",
        lambda d, m: _in_graph(
            lambda: train.SyncReplicasOptimizer(
                train.GradientDescentOptimizer(0.1), 1
            ).make_session_run_hook(True)
        ),
        refused="SyncReplicasOptimizer",
    ),
)


def cell(row: Row, mode: str) -> str:
    """What the table says of a hook in a mode."""
    reason = row.refused or row.refused_in.get(mode)
    return "carried" if reason is None else f"refused: {reason}"

"""Every stock hook, how to make it, and how to check its effect.

The tests and docs/hook-support.md use this one table.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import hook_loops
import tensorflow as tf

import hookbridge as hb
from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1
train: Any = v1.train
MODES = ("fit", "evaluate", "predict")
STRATEGIES = ("default", "MirroredStrategy")


def _estimator(directory: Path) -> Any:
    return hb.estimator.Estimator(lambda features, labels, mode: None, str(directory))


def _experimental(name: str, *args: Any, **options: Any) -> Any:
    return getattr(hb.estimator.experimental, name)(*args, **options)


def _debug(name: str, *args: Any, **options: Any) -> Any:
    hooks = importlib.import_module("tensorflow.python.debug.wrappers.hooks")
    return getattr(hooks, name)(*args, **options)


def _stop_if(name: str, directory: Path, limit: float) -> Any:
    """An early-stopping hook on a metric that stays at 1."""
    with tf.Graph().as_default():
        writer = v1.summary.FileWriter(str(directory / "eval"))
    for step in (0, 100):
        value = v1.Summary.Value(tag="score", simple_value=1.0)
        writer.add_summary(v1.Summary(value=[value]), step)
    writer.close()
    every = {"run_every_secs": None, "run_every_steps": 1}
    arguments = (_estimator(directory), "score", limit, str(directory / "eval"))
    return _experimental(name, *arguments, **every)


class Row(NamedTuple):
    """A stock hook."""

    name: str
    make: Callable[[Path, str], Any]
    check: Callable[[Any, Path, str], bool] = lambda hook, directory, mode: True
    refused: str | None = None


def _tensor(mode: str) -> str:
    return "hidden/Relu:0" if mode == "predict" else "loss:0"


class Noted(train.LoggingTensorHook):  # type: ignore[misc]
    """The stock hook with a formatter that notes the values to log."""

    def __init__(self, tensors: list[str], **kwargs: Any) -> None:
        self.lines: list[Any] = []
        super().__init__(tensors, formatter=self.note, **kwargs)

    def note(self, values: Any) -> str:
        self.lines.append(values)
        return ""


def _checkpoints(hook: Any, directory: Path, mode: str) -> bool:
    path = tf.train.latest_checkpoint(str(directory))
    return path is not None and set(hook_loops.WEIGHTS) <= set(
        hook_loops.read_checkpoint(path)
    )


class _SummaryMaker(train.SummarySaverHook):  # type: ignore[misc]
    """The stock hook with a summary of the hook's own."""

    def begin(self) -> None:
        name = "hidden/Relu:0"
        value = v1.get_default_graph().get_tensor_by_name(name)
        self._summary_op = v1.summary.scalar("mean", tf.reduce_mean(value))
        super().begin()


def _timelines(directory: Path) -> bool:
    paths = list(directory.glob("timeline-*.json"))
    return bool(paths) and all(json.loads(p.read_text())["traceEvents"] for p in paths)


def _in_graph(make: Callable[[], Any]) -> Any:
    with tf.Graph().as_default():
        return make()


class _Nan(train.NanTensorHook):  # type: ignore[misc]
    """The stock hook on the mean of a layer's output, which every mode has."""

    def __init__(self) -> None:
        super().__init__(None)

    def begin(self) -> None:
        output = v1.get_default_graph().get_tensor_by_name("hidden/Relu:0")
        self._loss_tensor = tf.reduce_mean(output)


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


class _Stopping(train.StopAtStepHook):  # type: ignore[misc]
    """The stock hook; counts its runs."""

    def __init__(self, mode: str) -> None:
        # Only training moves the step; other modes have reached `last_step` already.
        super().__init__(**({"num_steps": 2} if mode == "fit" else {"last_step": 0}))
        self.runs = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1
        super().after_run(run_context, run_values)


ROWS = (
    Row(
        "StopAtStepHook",
        lambda d, m: _Stopping(m),
        lambda h, d, m: h.runs == (2 if m == "fit" else 1),
    ),
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
        lambda h, d, m: any(
            t.startswith("mean") for _, t, _ in hook_loops.read_scalars(d)
        ),
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
            or any(t == "global_step/sec" for _, t, _ in hook_loops.read_scalars(d))
        ),
    ),
    Row("NanTensorHook", lambda d, m: _Nan()),
    Row(
        "FinalOpsHook",
        lambda d, m: _Final(),
        lambda h, d, m: h.final_ops_values["step"] >= 1,
    ),
    Row(
        "hb.in_begin",
        lambda d, m: hb.in_begin(
            lambda: train.FinalOpsHook({"step": train.get_global_step() + 1})
        ),
        lambda h, d, m: h.final_ops_values["step"] >= 1,
    ),
    Row("FeedFnHook", lambda d, m: _Feeding(), lambda h, d, m: set(h.seen) == {6.0}),
    Row("GlobalStepWaiterHook", lambda d, m: train.GlobalStepWaiterHook(0)),
    Row(
        "ProfilerHook",
        # Outside training the global step stands still, and TensorFlow's writer takes
        # one trace per step: here, as in a session, the hook must not trigger twice.
        lambda d, m: _in_graph(
            lambda: train.ProfilerHook(
                save_steps=1 if m == "fit" else 100, output_dir=str(d)
            )
        ),
        lambda h, d, m: m != "fit" or _timelines(d),
    ),
    Row(
        "tf.estimator.experimental.make_early_stopping_hook",
        lambda d, m: _experimental(
            "make_early_stopping_hook",
            _estimator(d),
            lambda: False,
            run_every_secs=None,
            run_every_steps=2,
        ),
        lambda h, d, m: m != "fit" or h._timer.last_triggered_step() is not None,
    ),
    *(
        Row(
            f"tf.estimator.experimental.{name}",
            lambda d, m, name=name, limit=limit: _stop_if(name, d, limit),  # type: ignore[misc]
            lambda h, d, m: (
                m != "fit" or h._timer.last_triggered_step() < hook_loops.BATCHES - 1
            ),
        )
        for name, limit in (
            ("stop_if_higher_hook", 0.5),
            ("stop_if_lower_hook", 1.5),
            ("stop_if_no_increase_hook", 10),
            ("stop_if_no_decrease_hook", 10),
        )
    ),
    Row(
        "tf.estimator.experimental.make_stop_at_checkpoint_step_hook",
        lambda d, m: _experimental(
            "make_stop_at_checkpoint_step_hook", _estimator(d), 100, 0
        ),
    ),
    Row(
        "tf.estimator.experimental.InMemoryEvaluatorHook",
        lambda d, m: _experimental("InMemoryEvaluatorHook", _estimator(d), print),
        refused="variables of the Estimator's graph",
    ),
    Row(
        "tfdbg.DumpingDebugHook",
        lambda d, m: _debug("DumpingDebugHook", str(d)),
        refused="debugger of real sessions",
    ),
    Row(
        "tfdbg.LocalCLIDebugHook",
        lambda d, m: _debug("LocalCLIDebugHook", ui_type="readline"),
        refused="debugger of real sessions",
    ),
    *(
        Row(
            f"tfdbg.{name}",
            lambda d, m, name=name: _debug(name, ["localhost:1"]),  # type: ignore[misc]
            refused="debugger of real sessions",
        )
        for name in ("GrpcDebugHook", "TensorBoardDebugHook")
    ),
    Row(
        "SyncReplicasOptimizer.make_session_run_hook",
        lambda d, m: _in_graph(
            lambda: train.SyncReplicasOptimizer(
                train.GradientDescentOptimizer(0.1), 1
            ).make_session_run_hook(True)
        ),
        refused="queues of `SyncReplicasOptimizer`",
    ),
)
CARRIED = [row for row in ROWS if row.refused is None]


def company(row: Row, mode: str) -> str:
    """The group of hooks that can share one loop with this one."""
    if row.name == "StopAtStepHook" and mode == "fit":
        return row.name
    stops = row.name == "StopAtStepHook" or ".stop_if_" in row.name
    return "stop at once" if stops else "never stop"


def run_all(
    model: Callable[[], Any], mode: str, folders: Callable[[str], Path]
) -> dict[str, tuple[Any, Path]]:
    """`{name: (its hook after the run, its folder)}` of all hooks that are carried.

    Hooks of a company share a run, since tracing takes long.
    """
    found: dict[str, tuple[Any, Path]] = {}
    for name in sorted({company(row, mode) for row in CARRIED}):
        made = {}
        for row in CARRIED:
            if company(row, mode) == name:
                folder = folders("hook")
                made[row.name] = row.make(folder, mode), folder
        hooks = [HookToCallback(hook) for hook, _ in made.values()]
        data = (hook_loops.X,) if mode == "predict" else (hook_loops.X, hook_loops.Y)
        arguments = {"batch_size": hook_loops.BATCH, "verbose": 0, "callbacks": hooks}
        getattr(model(), mode)(*data, **arguments)
        found |= made
    return found


def carried() -> str:
    """The hooks that are carried, in a line of Markdown.

    They are in every mode and host and for every Keras, as the tests show.
    """
    names = (f"`{row.name}`" for row in ROWS if row.refused is None)
    return f"These hooks of TensorFlow work: {', '.join(names)}."


def reasons() -> str:
    """Why hooks are refused, in Markdown, in the words of the errors."""
    from hookbridge.adapters.hooked_loop import refusals

    names: dict[str, list[str]] = {}
    for row in ROWS:
        for reason, way_out in dict.fromkeys(refusals.REFUSED_HOOKS.values()):
            if row.refused is not None and row.refused in reason:
                text = f"{reason}. Instead, {way_out}."
                names.setdefault(text, []).append(f"`{row.name}`")
    return "\n".join(f"- {', '.join(each)}: {text}" for text, each in names.items())

"""Hooks of code bases in a MonitoredTrainingSession and in `fit`: the same effect?

    hookbridge run --v2 tests/proof/guests.py NAME

Each hook trains the same model in both loops, with a CheckpointSaverHook behind it.
What is compared: the checkpoint's weights and step, the steps and tags of summaries,
what TensorFlow's logger says, and each file that the hook writes.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "adapters" / "helpers"))

import hook_loops

v1: Any = tf.compat.v1

Make = Callable[[Path], Any]
# Steps: hook_loops.STEPS, which is 12.
STOP = 4
# What TensorFlow's logger says of savers, sessions and old names.
OF_LOOPS = re.compile("heckpoint|init_op|^Graph was|^From ")


def live(make: Callable[[], Any]) -> Any:
    """A hook that takes tensors or makes variables in its constructor."""
    return hb.in_begin(make)


def tensor(name: str) -> Any:
    return v1.get_default_graph().get_tensor_by_name(name)


def weights() -> dict[str, Any]:
    """The classifier's variables by their names in WEIGHTS."""
    return {
        hook_loops.short(variable.op.name): variable
        for variable in v1.trainable_variables()
    }


class Prepare(v1.train.SessionRunHook):  # type: ignore[misc]
    """Calls a function in `begin`, and reads a variable that it returns at the end."""

    def __init__(self, prepare: Callable[[], Any], file: Path) -> None:
        self._prepare, self._file = prepare, file

    def begin(self) -> None:
        self._variable = self._prepare()

    def end(self, session: Any) -> None:
        self._file.write_text(repr(float(session.run(self._variable))))


def checkpoint(folder: Path) -> str:
    """What the same loop has saved before."""
    path: str = tf.train.latest_checkpoint(str(folder / "first"))
    return path


def plateau(folder: Path) -> str:
    """Summaries of a loss that does not fall."""
    with tf.Graph().as_default():
        writer = v1.summary.FileWriter(str(folder / "events"))
        for step in range(0, 40, 10):
            value = v1.Summary.Value(tag="loss", simple_value=1.0)
            writer.add_summary(v1.Summary(value=[value]), step)
        writer.close()
    return str(folder / "events")


def opennmt() -> dict[str, Make]:
    from opennmt.utils import hooks  # type: ignore[import-not-found]

    class Lines:
        """Prints predictions, as OpenNMT's models do."""

        def print_prediction(self, prediction: Any, stream: Any) -> None:
            print(np.round(prediction["hidden"], 3).tolist(), file=stream)

    def counters(folder: Path) -> Any:
        add = lambda: hooks.add_counter("words", tf.constant(8))  # noqa: E731
        hook = hooks.CountersHook(every_n_steps=STOP, output_dir=str(folder))
        return [Prepare(add, folder / "words"), hook]

    def initialized(folder: Path) -> Any:
        variable = []

        def prepare() -> Any:
            variable.append(v1.Variable(3.0, collections=[], name="inner"))
            return variable[-1]

        hook = live(lambda: hooks.VariablesInitializerHook(variable[-1:]))
        return [Prepare(prepare, folder / "inner"), hook]

    return {
        "LogParametersCountHook": lambda folder: hooks.LogParametersCountHook(),
        "CountersHook": counters,
        "LogWordsPerSecondHook": lambda folder: live(
            lambda: hooks.LogWordsPerSecondHook(
                {"source": tf.constant(8)}, every_n_steps=STOP, output_dir=str(folder)
            )
        ),
        "SaveEvaluationPredictionHook": lambda folder: live(
            lambda: hooks.SaveEvaluationPredictionHook(
                Lines(),
                str(folder / "said"),
                predictions={"hidden": tensor("hidden/Relu:0")},
            )
        ),
        "LoadWeightsFromCheckpointHook": lambda folder: (
            hooks.LoadWeightsFromCheckpointHook(checkpoint(folder))
        ),
        "VariablesInitializerHook": initialized,
    }


def tensor2tensor() -> dict[str, Make]:
    from tensor2tensor.models.research import glow_init_hook  # type: ignore[import-not-found]
    from tensor2tensor.utils import metrics_hook, restore_hook, update_ops_hook  # type: ignore[import-not-found]

    def counting(collection: str) -> Callable[[], Any]:
        def prepare() -> Any:
            count = v1.Variable(0.0, trainable=False, name="count")
            v1.add_to_collection(collection, count.assign_add(1.0, read_value=False))
            return count

        return prepare

    def at_plateau(folder: Path) -> Any:
        events, count = plateau(folder), counting("at_plateau")
        make = lambda: metrics_hook.PlateauOpHook(  # noqa: E731
            events,
            "loss",
            v1.get_collection("at_plateau")[0],
            num_plateau_steps=10,
            every_n_steps=STOP,
        )
        return [Prepare(count, folder / "count"), live(make)]

    return {
        "EarlyStoppingHook": lambda folder: metrics_hook.EarlyStoppingHook(
            plateau(folder), "loss", num_plateau_steps=10, every_n_steps=STOP
        ),
        "PlateauOpHook": at_plateau,
        "UpdateOpsHook": lambda folder: [
            Prepare(counting("update_ops"), folder / "count"),
            update_ops_hook.UpdateOpsHook(),
        ],
        "GlowInitHook": lambda folder: [
            Prepare(counting("glow_init_op"), folder / "count"),
            glow_init_hook.GlowInitHook(),
        ],
        "RestoreHook": lambda folder: restore_hook.RestoreHook(checkpoint(folder)),
    }


def easy_rec() -> dict[str, Make]:
    from easy_rec.python.compat import early_stopping  # type: ignore[import-not-found]
    from easy_rec.python.utils import estimator_utils as utils  # type: ignore[import-not-found]

    def numpy_checkpoint(folder: Path) -> Any:
        file = folder / "weights.npz"
        doubled: Any = {name: 2 * value for name, value in hook_loops.WEIGHTS.items()}
        np.savez(file, **doubled)
        return live(lambda: utils.NumpyCheckpointRestoreHook(str(file), weights()))

    def other_shape() -> Any:
        smaller = tf.fill([2, 2], 0.5)
        return utils.IncompatibleShapeRestoreHook({weights()["out/kernel"]: smaller})

    def online(folder: Path) -> Any:
        def make() -> Any:
            mean = tf.reduce_sum(weights()["out/bias"]) + 1.0
            return utils.OnlineEvaluationHook({"mean": (mean, mean)}, str(folder))

        return live(make)

    return {
        "ProgressHook": lambda folder: utils.ProgressHook(
            hook_loops.STEPS, str(folder / "progress"), True
        ),
        "CheckpointSaverHook": lambda folder: utils.CheckpointSaverHook(
            str(folder / "saved"), save_steps=STOP
        ),
        "NumpyCheckpointRestoreHook": numpy_checkpoint,
        "IncompatibleShapeRestoreHook": lambda folder: live(other_shape),
        "MultipleCheckpointsRestoreHook": lambda folder: (
            utils.MultipleCheckpointsRestoreHook(checkpoint(folder))
        ),
        "OnlineEvaluationHook": online,
        "DeadlineStopHook": lambda folder: live(
            lambda: early_stopping.DeadlineStopHook(1.0)
        ),
        "StopOnPredicateHook": lambda folder: [
            live(
                lambda: early_stopping._StopOnPredicateHook(
                    lambda: True, run_every_secs=None, run_every_steps=STOP
                )
            ),
            early_stopping._CheckForStoppingHook(),
        ],
    }


def monolith() -> dict[str, Make]:
    from monolith.native_training import (  # type: ignore[import-not-found]
        barrier_ops,
        basic_restore_hook,
        session_run_hooks,
        sync_hooks,
    )
    from monolith.native_training.hooks import session_hooks  # type: ignore[import-not-found]

    class Listener(basic_restore_hook.CheckpointRestorerListener):  # type: ignore[misc]
        """Writes what a session has before and after."""

        def __init__(self, file: Path) -> None:
            self._file = file

        def begin(self) -> None:
            self._step = v1.train.get_global_step()

        def after_restore(self, session: Any) -> None:
            self._file.write_text(str(int(session.run(self._step))))

    def chief() -> Any:
        helper = sync_hooks.SyncHelper(1, True, var_device="")
        return sync_hooks.ChiefSyncHook(helper)

    def current(folder: Path) -> Any:
        class Reads(v1.train.SessionRunHook):  # type: ignore[misc]
            def after_run(self, run_context: Any, run_values: Any) -> None:
                session = session_hooks.get_current_session()
                step = session.run(v1.train.get_global_step())
                with (folder / "steps").open("a") as file:
                    file.write(f"{step}\n")

        return [session_hooks.SetCurrentSessionHook(), Reads()]

    return {
        "BarrierHook": lambda folder: live(
            lambda: barrier_ops.BarrierHook(1, barrier_ops.BarrierOp(2))
        ),
        "CheckpointRestorerHook": lambda folder: (
            basic_restore_hook.CheckpointRestorerHook([Listener(folder / "step")])
        ),
        "ChiefSyncHook": lambda folder: live(chief),
        "WorkerSyncHook": lambda folder: live(
            lambda: sync_hooks.WorkerSyncHook(
                0, sync_hooks.SyncHelper(1, True, var_device="")
            )
        ),
        "SetCurrentSessionHook": current,
        "CustomGlobalStepWaiterHook": lambda folder: (
            session_run_hooks.CustomGlobalStepWaiterHook(0)
        ),
        "TideStoppingHook": lambda folder: session_run_hooks.TideStoppingHook(
            0, 0, 0, 0
        ),
    }


def _seconds(text: str) -> str:
    """A text without the numbers that depend on time and place."""
    text = re.sub(r"(/sec|VariableOp): [\d.e+]+", r"\1: _", text)
    return re.sub(r"/tmp/\S+", "PATH", text)


def _number(path: Path) -> tuple[int, str]:
    """The order of files whose names end in a step."""
    return len(path.name), str(path)


def effect(loop: Callable[[list[Any]], Any], make: Make) -> dict[str, Any]:
    """What a hook does in a loop."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        loop([v1.train.CheckpointSaverHook(str(folder / "first"), save_steps=1000)])
        made = make(folder)
        before = set(folder.rglob("*"))
        hooks = [*made] if isinstance(made, list) else [made]
        saver = v1.train.CheckpointSaverHook(str(folder / "last"), save_steps=1000)
        # A session at the end of its data makes a run that is no step.
        stop = v1.train.StopAtStepHook(num_steps=hook_loops.STEPS)
        with hook_loops.tf_log() as lines:
            loop([*hooks, saver, stop])
        last = tf.train.latest_checkpoint(str(folder / "last"))
        found: dict[str, Any] = {
            name: np.round(value, 4).tolist()
            for name, value in hook_loops.read_checkpoint(last).items()
        }
        found["scalars"] = [row[:2] for row in hook_loops.read_scalars(folder)]
        found["log"] = [_seconds(line) for line in lines if not OF_LOOPS.search(line)]
        for path in sorted(set(folder.rglob("*")) - before, key=_number):
            # A file has the step that a training run read before or after it raised
            # it, in no order: what counts is the text of all of them.
            name = re.sub(r"said\.\d+$", "said", str(path.relative_to(folder)))
            if path.is_file() and not re.match(r"last|.*tfevents|.*\.meta|.*pb", name):
                is_text = "model.ckpt" not in name
                text = _seconds(path.read_text()) if is_text else "written"
                found[name] = found.get(name, "") + text
    return found


def main(name: str) -> int:
    hooks_of = globals()[name]()
    different = 0
    # Code bases that switch eager execution off get the optimizers of graph mode.
    optimizers = tf.keras.optimizers
    if not tf.executing_eagerly():
        optimizers = optimizers.legacy

    def fit(hooks: list[Any]) -> None:
        tf.keras.backend.clear_session()
        model = hook_loops.keras_model(tf.keras, optimizer=optimizers.SGD)
        hook_loops.in_fit(tf.keras, hooks, model=model)

    for hook, make in hooks_of.items():
        native = effect(hook_loops.in_session, make)
        bridged = effect(fit, make)
        others = [
            f"{key}: {native.get(key)} in a session, {bridged.get(key)} in fit"
            for key in sorted(native.keys() | bridged.keys())
            if native.get(key) != bridged.get(key)
        ]
        different += bool(others)
        print(f"{hook}: {'; '.join(others) or 'the same'}", file=sys.stderr)
    return different


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

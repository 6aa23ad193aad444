"""What is refused before the first step, by name, with the way out."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hookbridge import errors
from hookbridge.adapters import guest_calls, guests, values
from hookbridge.adapters.learning_rate import LearningRate

if TYPE_CHECKING:
    from hookbridge.adapters.callback_group import CallbackGroup
    from hookbridge.adapters.validation_run import ValidationRun

_KERAS = ("keras", "tf_keras")
# Class name -> (reason, way out), for classes of Keras only.
_NEVER: dict[str, tuple[str, str]] = {
    "SwapEMAWeights": (
        "it swaps weights with the moving averages that a Keras 3 optimizer keeps, "
        "and a graph has no Keras 3 optimizer",
        "keep the averages with `tf.compat.v1.train.ExponentialMovingAverage` in the "
        "model_fn and restore them with its `variables_to_restore()`",
    ),
    "OrbaxCheckpoint": (
        "it saves the state tree of a Keras 3 model, and a graph holds none",
        "use `CheckpointSaverHook`, or `ModelCheckpoint(save_weights_only=True)`",
    ),
    "UpdateEmbeddingCallback": (
        "it rebuilds the train function of a Keras model while it runs, and the "
        "graph of a session is final",
        "train this model with `Model.fit`",
    ),
}
_RATE_SETTERS = ("LearningRateScheduler", "ReduceLROnPlateau")
# What stock callbacks add to `logs` themselves.
_ADDED_KEYS = ("lr", "learning_rate")


def _stock(callback: Any) -> str:
    """The name of the Keras callback class that a callback is or derives from."""
    for base in type(callback).__mro__:
        if base.__module__.partition(".")[0] in _KERAS and base.__name__ != "Callback":
            return base.__name__
    return ""


def _refuse(callback: Any, reason: str, way_out: str) -> errors.RefusedError:
    return errors.RefusedError(
        f"`{guests.name_of(callback)}` cannot run in a session loop: {reason}. "
        f"Instead, {way_out}."
    )


def check_guest(callback: Any, *, has_model: bool) -> None:
    """Refuses a callback that no session can host, before any graph exists.

    Args:
      callback: of any flavour.
      has_model: whether the graph has a Keras model.

    Raises:
      errors.RefusedError: for such a callback.
      errors.UnwritableError: it writes to where it cannot.
      errors.MissingExtraError: `TensorBoard` without the package `tensorboard`.
    """
    name = _stock(callback)
    if name in _NEVER:
        raise _refuse(callback, *_NEVER[name])
    if name == "TensorBoard" and importlib.util.find_spec("tensorboard") is None:
        raise errors.MissingExtraError(
            "`TensorBoard` writes with the package `tensorboard`, which is not "
            "installed (newer TensorFlow does not bring it). Run: pip install "
            "tensorboard."
        )
    if (
        name in ("ModelCheckpoint", "SidecarEvaluatorModelExport")
        and not has_model
        and not getattr(callback, "save_weights_only", False)
    ):
        raise _refuse(
            callback,
            "it saves the whole Keras model, and this graph has none "
            "(`model=` is not given)",
            "construct it with `save_weights_only=True`, or give the tf.keras or "
            "tf_keras model of the graph as `as_hooks(..., model=model)`",
        )
    if (
        name == "TensorBoard"
        and getattr(callback, "embeddings_metadata", None)
        and not has_model
    ):
        raise _refuse(
            callback,
            "`embeddings_metadata` belongs to Embedding layers, and this graph has "
            "no Keras model",
            "leave it out, or give `as_hooks(..., model=model)`",
        )
    for path, is_folder in _written_paths(callback, name):
        check_writable(callback, path, is_folder=is_folder)


def check_variables(callbacks: Sequence[Any], variables: Iterable[Any]) -> None:
    """Refuses callbacks on a graph whose variables `tf.distribute` mirrors.

    Args:
      callbacks: the guests.
      variables: the global step and the trained variables of the graph.

    Raises:
      errors.RefusedError: names the first callback.
    """
    import tensorflow as tf

    for variable in variables:
        if isinstance(variable, tf.distribute.DistributedValues):
            strategy = type(tf.distribute.get_strategy()).__name__
            raise _refuse(
                callbacks[0],
                f"`{strategy}` keeps a copy of each variable on every replica "
                f'("{variable.name}" is a {type(variable).__name__}), and '
                "`self.model` reads and sets one variable of the session for each "
                "weight",
                "replicate with `hb.replicate_model_fn(model_fn, devices)` and no "
                "`train_distribute`, or with `hb.loops.TowerLoop`: their replicas "
                "share the variables, and callbacks run there; hooks run under "
                "this strategy as they are",
            )


def _written_paths(callback: Any, name: str) -> list[tuple[str, bool]]:
    if name in ("ModelCheckpoint", "SidecarEvaluatorModelExport"):
        return [(str(callback.filepath), False)]
    if name == "TensorBoard":
        return [(str(callback.log_dir), True)]
    if name in ("BackupAndRestore", "BackupAndRestoreExperimental"):
        return [(str(callback.backup_dir), True)]
    if name == "CSVLogger":
        path = str(callback.filename)
        folder = os.path.dirname(path) or "."
        if "://" not in path and not os.path.isdir(folder):
            raise errors.UnwritableError(
                f"`CSVLogger` is to write `{path}`, but the directory `{folder}` "
                "does not exist and the callback does not make it. Make it first."
            )
        return [(path, False)]
    return []


def check_writable(callback: Any, path: str, *, is_folder: bool) -> None:
    """Refuses a path that cannot be written; leaves nothing behind.

    Raises:
      errors.UnwritableError: names the first directory that stands in the way.
    """
    if "://" in path:
        return
    folder = path if is_folder else os.path.dirname(path)
    folder = os.path.abspath(folder.split("{")[0] or ".")
    if (
        not is_folder
        and os.path.isdir(path)
        and guests.name_of(callback) == "CSVLogger"
    ):
        raise errors.UnwritableError(
            f"`CSVLogger` is to write the file `{path}`, which is a directory. Give "
            "the path of a file."
        )
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    try:
        # Asking for permission bits would not see a read-only file system.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as e:
        raise errors.UnwritableError(
            f"`{guests.name_of(callback)}` is to write `{path}`, but `{folder}` "
            f"cannot be written: {e.strerror or e}. Give a path in a directory that "
            "can be written, or change its permissions."
        ) from e


def needs_epochs_only(callback: Any) -> bool:
    """Whether a callback would be useless without epochs in any kind of session."""
    other = [
        f"on_{mode}_{part}"
        for mode in ("test", "predict")
        for part in ("begin", "batch_begin", "batch_end", "end")
    ]
    return guest_calls.needs_epochs(callback) and not any(
        guest_calls.overrides(callback, event) for event in other
    )


def epochs_undefined(callback: Any) -> errors.EpochsUndefinedError:
    """The error for a callback that needs epochs where there are none."""
    return errors.EpochsUndefinedError(
        f"`{guests.name_of(callback)}` acts by epoch, and a session loop has none of "
        "its own. Say how many training steps make one: "
        "`as_hooks(..., steps_per_epoch=<examples // batch size>)`."
    )


def monitored(callbacks: Iterable[Any]) -> list[str]:
    """The training metrics that callbacks monitor, without `val_*`."""
    names = [getattr(c, "monitor", None) for c in callbacks]
    return [n for n in names if isinstance(n, str) and not n.startswith("val_")]


def check_training(
    callback: Any,
    group: CallbackGroup,
    *,
    metrics: Sequence[str],
    validation: ValidationRun,
    rates: Sequence[LearningRate],
    not_cloned: str,
) -> None:
    """Refuses a callback that this training graph cannot host.

    Args:
      callback: the guest.
      group: what `as_hooks` was given.
      metrics: entries of `logs`.
      validation: what makes `val_*`.
      rates: the learning rates of the graph.
      not_cloned: why the graph's Keras model has no eager clone; empty if it has, or
        if there is no model.

    Raises:
      errors.EpochsUndefinedError: it needs epochs and there are none.
      errors.UnknownMetricError: it monitors what the loop does not produce.
      errors.RefusedError: it sets a learning rate that the graph does not have.
    """
    if group.steps_per_epoch is None and guest_calls.needs_epochs(callback):
        raise epochs_undefined(callback)
    _check_monitor(callback, group, metrics, validation)
    if (
        not_cloned
        and _stock(callback) in ("ModelCheckpoint", "SidecarEvaluatorModelExport")
        and not callback.save_weights_only
    ):
        raise _refuse(
            callback,
            "it saves the whole Keras model, and the model of this graph cannot be "
            f"cloned from its configuration ({not_cloned})",
            "give the model a `get_config()` from which `from_config` makes it anew, "
            "or construct the callback with `save_weights_only=True`",
        )
    if (
        _stock(callback) in _RATE_SETTERS
        and len(rates) == 1
        and rates[0].kind == "fed"
        and not rates[0].tensor.graph.is_feedable(rates[0].tensor)
    ):
        raise _refuse(
            callback,
            f'it sets the learning rate, and "{rates[0].tensor.name}" is a constant '
            "that TensorFlow has already folded into other ops",
            "build the optimizer with a variable or a "
            "`tf.compat.v1.placeholder_with_default`",
        )
    if _stock(callback) in _RATE_SETTERS and len(rates) != 1:
        found = ", ".join(f'"{r.tensor.name}"' for r in rates) or "none"
        raise _refuse(
            callback,
            "it sets the learning rate, and hookbridge cannot tell which tensor of "
            f"the graph that is (found: {found})",
            "name it: `as_hooks(..., learning_rate=<tensor, variable or name>)`",
        )


def _uses_monitor(callback: Any) -> str | None:
    monitor = getattr(callback, "monitor", None)
    name = _stock(callback)
    if not isinstance(monitor, str) or not name:
        return None
    if name == "ModelCheckpoint" and not callback.save_best_only:
        return None  # it has a default that is not looked at
    return monitor


def _check_monitor(
    callback: Any,
    group: CallbackGroup,
    metrics: Sequence[str],
    validation: ValidationRun,
) -> None:
    monitor = _uses_monitor(callback)
    if monitor is None or _may_be_added(callback, monitor, group):
        return
    known = list(metrics)
    if validation:
        names = validation.metric_names
        if names is None:
            if monitor.startswith("val_"):
                return  # the first validation tells
        else:
            known += [f"val_{n}" for n in names]
    if monitor not in known:
        raise unknown_metric(callback, monitor, known, bool(validation))


def _may_be_added(callback: Any, monitor: str, group: CallbackGroup) -> bool:
    """Whether a callback that comes earlier may put the key into `logs`."""
    if monitor in _ADDED_KEYS:
        return True
    for other in group.callbacks:
        if other is callback:
            return False
        stock = _stock(other) if type(other).__module__.split(".")[0] in _KERAS else ""
        if (not stock or stock == "LambdaCallback") and guest_calls.overrides(
            other, "on_epoch_end"
        ):
            return True
    return False


def unknown_metric(
    callback: Any, monitor: str, known: Sequence[str], validation: bool
) -> errors.UnknownMetricError:
    """The error for a monitor that does not exist; lists those that do."""
    near = values.nearest(monitor, known)
    way_out = (
        "Give `as_hooks(..., validation=...)`, which makes `val_*` logs"
        if monitor.startswith("val_") and not validation
        else f'Add it: `as_hooks(..., logs={{"{monitor.removeprefix("val_")}": '
        "<tensor or name>})`"
    )
    return errors.UnknownMetricError(
        f'`{guests.name_of(callback)}` monitors "{monitor}", which this loop does not '
        f"produce. It produces: {', '.join(known) or 'nothing'}"
        + (f' (nearest: "{near[0]}")' if near else "")
        + f". {way_out}, or monitor one of those."
    )


def check_val_monitors(group: CallbackGroup, metrics: Sequence[str]) -> None:
    """Refuses, after the first validation, a `val_*` monitor that it did not make.

    Raises:
      errors.UnknownMetricError: for such a callback.
    """
    known = [f"val_{m}" for m in metrics]
    for callback in group.callbacks:
        monitor = _uses_monitor(callback)
        if (
            monitor is not None
            and monitor.startswith("val_")
            and monitor not in known
            and not _may_be_added(callback, monitor, group)
        ):
            raise unknown_metric(callback, monitor, known, True)

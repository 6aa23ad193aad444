"""Whether the metrics that callbacks monitor exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from absl import logging

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.session_loop.config import SessionConfig
from hookbridge.lifecycle.overrides import overrides
from hookbridge.names import nearest

# Entries that stock callbacks add to `logs` themselves.
_ADDED_KEYS = ("lr", "learning_rate")
# This callback looks at the loss of each batch; it has no `monitor`.
_LOSS_ONLY = "TerminateOnNaN"


class Produced(NamedTuple):
    """The names of what a training loop puts into `logs`.

    Attributes:
      metrics: those of the training.
      validates: whether there is a validation.
      val_metrics: those of the validation, without `val_`; None if only the first
        validation shows them.
    """

    metrics: Sequence[str]
    validates: bool = False
    val_metrics: Sequence[str] | None = None


def monitored(callbacks: Iterable[Any]) -> list[str]:
    """The training metrics that callbacks monitor, without `val_*`."""
    names = [getattr(c, "monitor", None) for c in callbacks]
    return [n for n in names if isinstance(n, str) and not n.startswith("val_")]


def _uses_monitor(callback: Any) -> str | None:
    monitor = getattr(callback, "monitor", None)
    name = kinds.stock_name(callback)
    if name == _LOSS_ONLY:
        return "loss"
    if not isinstance(monitor, str) or not name:
        return None
    if name == "ModelCheckpoint" and not callback.save_best_only:
        return None  # Keras does not use its `monitor` then
    return monitor


def check_monitor(callback: Any, config: SessionConfig, produced: Produced) -> None:
    """Refuses a callback that monitors what the loop does not produce.

    Raises:
      errors.UnknownMetricError: for such a callback, unless `missing_metric="warn"`.
    """
    monitor = _uses_monitor(callback)
    if monitor is None or _may_be_added(callback, monitor, config):
        return
    known = list(produced.metrics)
    if produced.validates:
        if produced.val_metrics is not None:
            known += [f"val_{n}" for n in produced.val_metrics]
        elif monitor.startswith("val_"):
            return  # checked after the first validation
    if monitor not in known:
        _missing(config, unknown_metric(callback, monitor, known, produced.validates))


def _may_be_added(callback: Any, monitor: str, config: SessionConfig) -> bool:
    """Whether a callback that comes earlier may put the key into `logs`."""
    if monitor in _ADDED_KEYS:
        return True
    watches_batches = kinds.stock_name(callback) == _LOSS_ONLY
    event = "on_train_batch_end" if watches_batches else "on_epoch_end"
    for other in config.callbacks:
        if other is callback:
            return False
        stock = kinds.stock_name(other) if kinds.is_of_keras(type(other)) else ""
        if (not stock or stock == "LambdaCallback") and overrides(other, event):
            return True
    return False


def unknown_metric(
    callback: Any, monitor: str, known: Sequence[str], validation: bool
) -> errors.UnknownMetricError:
    """The error for a monitor that does not exist; lists those that do."""
    near = nearest(monitor, known)
    way_out = (
        "Give `as_hooks(..., validation=...)`, which makes `val_*` logs"
        if monitor.startswith("val_") and not validation
        else f'Add it: `as_hooks(..., logs={{"{monitor.removeprefix("val_")}": '
        "<tensor or name>})`"
    )
    if kinds.stock_name(callback) != _LOSS_ONLY:
        way_out += ", or monitor one of those"
    return errors.UnknownMetricError(
        f'`{kinds.name_of(callback)}` monitors "{monitor}", which this loop does not '
        f"produce. It produces: {', '.join(known) or 'nothing'}"
        + (f' (nearest: "{near[0]}")' if near else "")
        + f". {way_out}; or train on with a warning, as Keras does: "
        '`as_hooks(..., missing_metric="warn")`.',
        see="logs in a session",
    )


def _missing(config: SessionConfig, error: errors.UnknownMetricError) -> None:
    if config.missing_metric == "refuse":
        raise error
    logging.warning("hookbridge: %s", error)


def warn_without_loss(config: SessionConfig) -> None:
    """Warns that `logs` has no loss, unless the user named losses of other names."""
    if not any("loss" in key for key in config.logs):
        logging.warning(
            "hookbridge: the loss of this training graph was not found, so `logs` of "
            "its callbacks is without it (no EstimatorSpec is there, no scalar summary "
            '"loss", no tensor "loss:0", nothing in `tf.compat.v1.losses`). Name it: '
            '`as_hooks(..., logs={"loss": <tensor or name>})`.'
        )


def check_val_monitors(config: SessionConfig, metrics: Sequence[str]) -> None:
    """Refuses, after the first validation, a `val_*` monitor that it did not make.

    Raises:
      errors.UnknownMetricError: for such a callback, unless `missing_metric="warn"`.
    """
    known = [f"val_{m}" for m in metrics]
    for callback in config.callbacks:
        monitor = _uses_monitor(callback)
        if (
            monitor is not None
            and monitor.startswith("val_")
            and monitor not in known
            and not _may_be_added(callback, monitor, config)
        ):
            _missing(config, unknown_metric(callback, monitor, known, True))

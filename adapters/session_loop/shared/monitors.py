"""Whether the metrics that callbacks monitor exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from absl import logging

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.ground.arguments import shown
from hookbridge.ground.lifecycle.overrides import overrides
from hookbridge.ground.texts.nearest_names import alike

# Entries that stock callbacks add to `logs` themselves.
_ADDED_KEYS = ("lr", "learning_rate")


class Produced(NamedTuple):
    """The names of what a training loop puts into `logs`."""

    metrics: Sequence[str]  # those of the training
    validates: bool = False  # whether there is a validation
    # Without `val_`; None if only the first validation shows them.
    val_metrics: Sequence[str] | None = None


def monitored(callbacks: Iterable[Guest]) -> list[str]:
    """Return the training metrics that callbacks monitor, without `val_*`."""
    names = [getattr(c.item, "monitor", None) for c in callbacks]
    return [n for n in names if isinstance(n, str) and not n.startswith("val_")]


def check_monitor(guest: Guest, config: HookOptions, produced: Produced) -> None:
    """Refuse a callback that monitors what the loop does not produce."""
    monitor = guest.monitor
    if monitor is None or _may_be_added(guest, monitor, config):
        return
    names = list(produced.metrics)
    if produced.validates and monitor.startswith("val_") and not config.validates:
        _refuse(config, _never_validated(guest, monitor, config))
        return
    if produced.validates:
        if produced.val_metrics is not None:
            names += [f"val_{n}" for n in produced.val_metrics]
        elif monitor.startswith("val_"):
            return  # checked once a validation has run
    if monitor not in names:
        _refuse(config, unknown_metric(guest, monitor, names, produced.validates))


def _refuse(config: HookOptions, error: errors.UnknownMetricError) -> None:
    """Raise the error, or warn if the user has chosen that."""
    if config.missing_metric == "refuse":
        raise error
    logging.warning("hookbridge: %s", error)


def _never_validated(
    guest: Guest, monitor: str, config: HookOptions
) -> errors.UnknownMetricError:
    """Return the error for a monitor of a validation that no epoch ends with."""
    return errors.UnknownMetricError(
        f'`{guest.name}` monitors "{monitor}", and with '
        f"`validation_freq={shown(config.validation_freq)}` none of the "
        f"{config.epochs} epochs ends with the validation; expected at least one. "
        "Give another `validation_freq`, or train on with a warning, as Keras does: "
        '`as_hooks(..., missing_metric="warn")`.',
        see="logs in a session",
    )


def _may_be_added(guest: Guest, monitor: str, config: HookOptions) -> bool:
    """Return whether a callback that comes earlier may put the key into `logs`."""
    if monitor in _ADDED_KEYS:
        return True
    event = (
        "on_train_batch_end" if guest.keras_row.monitors == "loss" else "on_epoch_end"
    )
    earlier = config.callbacks[: config.callbacks.index(guest)]
    return any(
        overrides(callback.called, event)
        and (
            callback.keras_row.has_functions
            or not kinds.is_of_keras(type(callback.item))
        )
        for callback in earlier
    )


def unknown_metric(
    guest: Guest, monitor: str, names: Sequence[str], validation: bool
) -> errors.UnknownMetricError:
    """Return the error for a monitor that does not exist; lists those that do."""
    nearest = alike(monitor, names)
    bare = monitor.removeprefix("val_")
    if bare == monitor:
        way_out = f'Add it: `as_hooks(..., logs={{"{bare}": <tensor or name>}})`'
    elif validation:
        way_out = f'Return "{bare}" from `validation=`'
    else:
        way_out = "Give `as_hooks(..., validation=...)`, which makes `val_*` logs"
    if guest.keras_row.monitors != "loss":
        way_out += ", or monitor one of those"
    return errors.UnknownMetricError(
        f'`{guest.name}` monitors "{monitor}", which this loop does not '
        f"produce. It produces: {', '.join(names) or 'nothing'}"
        + (f' (nearest: "{nearest[0]}")' if nearest else "")
        + f". {way_out}; or train on with a warning, as Keras does: "
        '`as_hooks(..., missing_metric="warn")`.',
        see="logs in a session",
    )


class ValueCheck:
    """Tells once which metrics of a training had no value in its first epoch."""

    def __init__(self, config: HookOptions, metrics: Sequence[str]) -> None:
        self._config = config
        self._metrics = metrics
        self._start = 0  # the step at which the session began
        self._is_done = False

    def begin(self, step: int) -> None:
        """Note that a session begins at a step."""
        self._start = step

    def end_epoch(self, step: int, values: Mapping[str, object]) -> None:
        """Note that an epoch ends at a step, with the values of `logs`."""
        # A run between two steps is not missing after a single step.
        if self._is_done or step <= self._start + 1:
            return
        self._is_done = True
        missing = [key for key in self._metrics if key not in values]
        _say_missing(self._config, missing, list(values))


def _say_missing(
    config: HookOptions, missing: Sequence[str], present: Sequence[str]
) -> None:
    """Say which entries of `logs` had no value in the first epoch."""
    for key in missing:
        guests = [g for g in config.callbacks if g.monitor == key]
        text = f'`logs` has the entry "{key}"'
        if guests:
            text = f'`{guests[0].name}` monitors "{key}"'
        text += (
            ", and it had no value in the first epoch: no run of this session that "
            "moves the global step or updates variables took, or was fed, its data. "
            f"Values came for: {', '.join(present) or 'nothing'}. A train op that a "
            "hook runs through `run_context.session` does not count: run it in the "
            "loop, or fetch the entry in the loop together with the train op."
        )
        error = errors.UnknownMetricError(text, see="logs in a session")
        if guests:
            _refuse(config, error)
        else:
            logging.warning("hookbridge: %s", error)


def warn_without_loss(config: HookOptions) -> None:
    """Warn that `logs` has no loss, unless the user named losses of other names."""
    if not any("loss" in key for key in config.logs):
        logging.warning(
            "hookbridge: the loss of this training graph was not found, so the "
            "`logs` of its callbacks lack it (there is no EstimatorSpec, no scalar "
            'summary "loss", no tensor "loss:0", nothing in `tf.compat.v1.losses`). '
            'Name it: `as_hooks(..., logs={"loss": <tensor or name>})`.'
        )


def check_val_monitors(
    config: HookOptions, training: Sequence[str], metrics: Sequence[str]
) -> None:
    """Refuse a `val_*` monitor that a validation has not made."""
    produced = Produced(training, validates=True, val_metrics=metrics)
    for guest in val_monitors(config):
        check_monitor(guest, config, produced)


def val_monitors(config: HookOptions) -> list[Guest]:
    """Return the callbacks that monitor what a validation makes."""
    return [g for g in config.callbacks if (g.monitor or "").startswith("val_")]

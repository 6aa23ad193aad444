"""What callbacks get as `logs` in a training loop of the user's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.hooked_loop import epoch_means
from hookbridge.adapters.state.loop_state import Means
from hookbridge.ground.arguments import shown
from hookbridge.ground.running_mean import RunningMean
from hookbridge.ground.single_number import as_number

# How a step's logs are made: see `OwnLoop.step`.
Logs = Mapping[str, Any] | Sequence[str] | Callable[[Any], Mapping[str, Any]] | None


def check(logs: object) -> None:
    """Refuse what cannot describe logs."""
    is_names = isinstance(logs, (list, tuple)) and all(isinstance(n, str) for n in logs)
    if logs is None or callable(logs) or isinstance(logs, Mapping) or is_names:
        return
    raise errors.InvalidArgumentError(
        f"Received logs={shown(logs)}; expected the names of what the step returns, a "
        "mapping of names to metrics, or a function of what the step returns."
    )


def check_monitored(
    guests: Sequence[Guest], returned: object, logs: Logs, made: Mapping[str, Any]
) -> None:
    """Refuse a step without the number that a callback cannot work without.

    What `end_epoch` or an evaluation may still add is left to the end of the epoch.

    Args:
      guests: the guests of the loop.
      returned: what the first step has returned.
      logs: how logs are made of it.
      made: the logs that were made of it.
    """
    for guest in guests:
        name = guest.monitor if guest.kind == "callback" else None
        is_lost = name == "loss" and name not in made and logs is None
        if name is None or not (name in made or (is_lost and returned is not None)):
            continue
        value = made.get(name, returned)
        if as_number(value) is None or np.ndim(value):
            raise errors.InvalidArgumentError(
                f"`{guest.name}` monitors `{name}`, and the step returned "
                f"{shown(value)} for it; expected a number. Return the loss of the "
                "batch from the step, or say with `logs=` which part of what it "
                f"returns is `{name}`."
            )


class OwnEpochLogs:
    """The logs of one epoch, or of one evaluation.

    What a step returns is of the batch: the logs of its numbers are means over the
    epoch so far, each batch with the weight of its size, as in `fit`. What `logs` makes
    itself, of metrics or by a function, is taken as it is.
    """

    def __init__(self) -> None:
        self._metrics: dict[str, Any] = {}
        self._further: dict[str, Any] = {}  # of the epoch, in addition to its steps'
        self.begin()

    def begin(self) -> None:
        """Begin an epoch: means and metrics start over."""
        self._means: dict[str, RunningMean] = {}
        self._earlier = Means()  # what an earlier run had of this epoch
        self.last: dict[str, Any] = {}
        for metric in self._metrics.values():
            metric.reset_state()

    def add(self, logs: Mapping[str, Any]) -> None:
        """Add to the logs of the epoch, or of the next one if none is open."""
        self._further.update(logs)

    def of_ended_epoch(self) -> dict[str, Any]:
        """Return the logs of the epoch, which ends."""
        further, self._further = self._further, {}
        return {**self.last, **further}

    def note(self, logs: Logs) -> None:
        """Note the metrics that a step fills, before it does."""
        items = logs.items() if isinstance(logs, Mapping) else ()
        for name, item in items:
            if hasattr(item, "result") and hasattr(item, "reset_state"):
                self._metrics[name] = item

    def means(self) -> Means:
        """See `EpochMeans.means`."""
        sums, metrics = epoch_means.read_metrics(self._metrics)
        states = {name: mean.state() for name, mean in self._means.items()}
        return Means({**self._earlier.sums, **sums, **states}, metrics)

    def go_on(self, means: Means) -> Means:
        """See `EpochMeans.go_on`; means begin with the first value of their name."""
        self._earlier = epoch_means.write_metrics(self._metrics, means)
        return self._earlier

    def after(
        self, returned: object, logs: Logs, args: Sequence[Any]
    ) -> dict[str, Any]:
        """Return the logs after a step; its first array gives the size of the batch."""
        if callable(logs):
            self.last = _made(logs, returned)
        elif isinstance(logs, Mapping):
            self.last = {name: self._value(item) for name, item in logs.items()}
        else:
            size = _size(args)
            self.last = {
                name: self._mean(name).update(tf.cast(value, "float32"), size)
                if _is_scalar(value)
                else value
                for name, value in named(returned, logs).items()
            }
        return self.last

    def _value(self, item: object) -> Any:
        if hasattr(item, "result") and hasattr(item, "reset_state"):
            return item.result()
        return item() if callable(item) else item

    def _mean(self, name: str) -> RunningMean:
        if name not in self._means:
            self._means[name] = RunningMean(*self._earlier.sums.get(name, (0, 0)))
        return self._means[name]


def _made(logs: Callable[[Any], Any], returned: object) -> dict[str, Any]:
    """Return the logs that a user's function makes of what a step returned."""
    made = logs(returned)
    if not isinstance(made, Mapping):
        raise errors.InvalidArgumentError(
            f"The function given as `logs` returned {shown(made)}; expected a mapping "
            "of names to numbers."
        )
    return dict(made)


def named(returned: object, logs: Logs) -> dict[str, Any]:
    """Return what a step returned, by name: `loss` if it is a single number."""
    if isinstance(returned, Mapping):
        return _of_mapping(returned, logs)
    names = list(logs) if isinstance(logs, (list, tuple)) else ["loss"]
    values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if isinstance(logs, (list, tuple)) and len(names) != len(values):
        raise errors.InvalidArgumentError(
            f"logs names {len(names)} parts, {shown(logs)}, and the step returned "
            f"{len(values)}; expected a name for each part of a tuple."
        )
    return {
        name: _tensor(value)
        for name, value in zip(names, values, strict=False)
        if _is_scalar(value)
    }


def _of_mapping(returned: Mapping[Any, Any], logs: Logs) -> dict[str, Any]:
    """Return the entries of a mapping that a step returned: all, or those in `logs`."""
    wanted = list(logs) if isinstance(logs, (list, tuple)) else list(returned)
    missing = [name for name in wanted if name not in returned]
    if missing:
        raise errors.InvalidArgumentError(
            f"logs names {shown(missing)}, and the step returned "
            f"{shown(list(returned))}; expected names of what it returns."
        )
    return {str(name): _tensor(returned[name]) for name in wanted}


def numbers(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Return logs whose numbers are Python's own."""
    return {name: _number(value) for name, value in logs.items()}


def _is_scalar(value: Any) -> bool:
    """Return whether a value has a mean: a number, or a tensor of one."""
    if not tf.is_tensor(value):
        return _is_number(value)
    is_numeric = value.dtype.is_floating or value.dtype.is_integer
    return bool(value.shape.rank == 0 and is_numeric)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _tensor(value: object) -> Any:
    return tf.convert_to_tensor(value) if _is_number(value) else value


def _number(value: object) -> Any:
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    return array.item() if array.ndim == 0 and array.dtype != object else value


def _size(args: Sequence[Any]) -> int:
    """Return the number of examples in a batch, over all replicas; 1 if unknown."""
    for item in tf.nest.flatten(list(args)):
        parts = getattr(item, "values", None)
        parts = parts if isinstance(parts, tuple) else (item,)  # `PerReplica`
        with contextlib.suppress(AttributeError, IndexError, TypeError):
            return sum(int(part.shape[0]) for part in parts)
    return 1

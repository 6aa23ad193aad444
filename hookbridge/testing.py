"""Record what hooks and callbacks receive, and hold it to the documented mapping.

    log = EventLog()
    checkpoints = spy(tf.compat.v1.train.CheckpointSaverHook("run"), log, "saver")
    model.fit(x, y, epochs=2, callbacks=hb.as_callbacks(checkpoints))
    assert_conforms(log, "saver", guest="hook", host="fit", steps=20)

`RecordingHook` and `RecordingCallback` are guests that do nothing but record;
`spy` makes any guest record beside what it does.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge import errors, lifecycle
from hookbridge.adapters import guests
from hookbridge.lifecycle import Delivery

_SPY = "_hookbridge_spied"


class Record(NamedTuple):
    """One event that one guest received.

    Attributes:
      guest: name of the guest in this log.
      event: the method that was called.
      number: epoch or batch; None for events that have neither.
      secs: seconds since the log was made, on a monotonic clock.
      logs: the scalar entries of a callback's `logs` as Python numbers.
      results: what a `RecordingHook` fetched; None for everything else.
    """

    guest: str
    event: str
    number: int | None
    secs: float
    logs: Mapping[str, float]
    results: Any = None


class EventLog:
    """Every recorded event of any number of guests, in order of arrival.

    Guests of several threads may share one log.

    Args:
      clock: seconds as a float; injected by tests.
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self.records: list[Record] = []

    def add(
        self,
        guest: str,
        event: str,
        number: int | None = None,
        *,
        logs: Any = None,
        results: Any = None,
    ) -> None:
        """Appends one event; `logs` and `results` as in `Record`."""
        record = Record(
            guest, event, number, self._clock() - self._start, _scalars(logs), results
        )
        with self._lock:
            self.records.append(record)

    def guests(self) -> list[str]:
        """Names of all guests, in the order of their first event."""
        return list(dict.fromkeys(r.guest for r in self.records))

    def of(self, guest: str) -> list[Delivery]:
        """What `guest` received, comparable with `lifecycle.expected_events`."""
        return [Delivery(r.event, r.number) for r in self.records if r.guest == guest]

    def counts(self, guest: str) -> dict[str, int]:
        """How often `guest` received each event; events it never got are left out."""
        return dict(Counter(r.event for r in self.records if r.guest == guest))

    def logs(self, guest: str, event: str) -> list[Mapping[str, float]]:
        """The `logs` of each `event` of `guest`."""
        return [r.logs for r in self.records if (r.guest, r.event) == (guest, event)]

    def to_json(self) -> list[dict[str, Any]]:
        """The records as plain dicts without `results`, for `json.dump`."""
        return [
            {key: value for key, value in r._asdict().items() if key != "results"}
            for r in self.records
        ]

    def clear(self) -> None:
        """Forgets everything and starts the clock again."""
        with self._lock:
            self.records.clear()
            self._start = self._clock()

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(list(self.records))


def _scalars(logs: Any) -> dict[str, float]:
    """The numbers in `logs`; a tensor is not read, that would wait for its step."""
    if not isinstance(logs, Mapping):
        return {}
    return {
        str(key): value if isinstance(value, (bool, int, float)) else value.item()
        for key, value in logs.items()
        if isinstance(value, (bool, int, float, np.number))
        or (isinstance(value, np.ndarray) and value.size == 1)
    }


class RecordingHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook that records every event and may fetch, feed and ask to stop.

    Args:
      log: where events go.
      name: this hook's name in the log.
      fetches: what to fetch with each run; a structure of tensors or names, or a
        function without arguments that is called in `begin` (a graph is default
        there) and returns one. The values are in the `after_run` records.
      feed_dict: what to feed with each run, as `{tensor or name: value}` or a
        function called before each run.
      options: a `tf.compat.v1.RunOptions` for each run.
      stop_after_runs: asks to stop in the `after_run` of this run, counted from 1.
    """

    def __init__(
        self,
        log: EventLog,
        name: str = "RecordingHook",
        *,
        fetches: Any = None,
        feed_dict: Mapping[Any, Any] | Callable[[], Mapping[Any, Any]] | None = None,
        options: Any = None,
        stop_after_runs: int | None = None,
    ) -> None:
        super().__init__()
        self.log = log
        self.name = name
        self._wanted = fetches
        self._feed_dict = feed_dict
        self._options = options
        self._stop_after_runs = stop_after_runs
        self._runs = 0

    def begin(self) -> None:
        self.log.add(self.name, "begin")
        self._runs = 0
        self._fetches = self._wanted() if callable(self._wanted) else self._wanted

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.log.add(self.name, "after_create_session")

    def before_run(self, run_context: Any) -> Any:
        self.log.add(self.name, "before_run")
        feed = self._feed_dict() if callable(self._feed_dict) else self._feed_dict
        if self._fetches is None and feed is None and self._options is None:
            return None
        return tf.compat.v1.train.SessionRunArgs(
            self._fetches, feed_dict=feed, options=self._options
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.log.add(self.name, "after_run", results=run_values.results)
        self._runs += 1
        if self._runs == self._stop_after_runs:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self.log.add(self.name, "end")

    def results(self) -> list[Any]:
        """What each run fetched."""
        return [
            r.results
            for r in self.log
            if (r.guest, r.event) == (self.name, "after_run")
        ]


class RecordingCallback:
    """A callback that records every event; every Keras flavour takes it.

    It derives from no Keras class and has what each flavour's `CallbackList` calls,
    so one instance may serve Keras 2, Keras 3 and tf_keras.

    Args:
      log: where events go.
      name: this callback's name in the log.
      only: the events it overrides; None for all. The others bear Keras's mark for
        "not overridden".
      stop_in: `(event, n)`: sets `model.stop_training` in the n-th such event,
        counted from 1.
    """

    def __init__(
        self,
        log: EventLog,
        name: str = "RecordingCallback",
        *,
        only: Collection[str] | None = None,
        stop_in: tuple[str, int] | None = None,
    ) -> None:
        names = {e.name for e in lifecycle.CALLBACK_EVENTS}
        for event in [*(only or ()), *(stop_in or ())[:1]]:
            if event not in names:
                raise errors.InvalidArgumentError(
                    f"Received the event {event!r}; expected one of "
                    f"{', '.join(sorted(names))}."
                )
        self.log = log
        self.name = name
        self.model: Any = None
        self.params: Mapping[str, Any] | None = None
        self.validation_data: Any = None
        self._chief_worker_only: bool | None = None
        self._supports_tf_logs = False
        self._stop_in = stop_in
        self._seen: Counter[str] = Counter()
        self._recorded = frozenset(names if only is None else only)
        for event in names - {"set_model", "set_params"}:
            if event in lifecycle.ALIASES or event not in self._recorded:
                setattr(self, event, _not_overridden)
            else:
                setattr(self, event, functools.partial(self._receive, event))

    def set_model(self, model: Any) -> None:
        self.model = model
        self._receive("set_model")

    def set_params(self, params: Mapping[str, Any]) -> None:
        self.params = params
        self._receive("set_params")

    def _receive(self, event: str, *args: Any, **kwargs: Any) -> None:
        if event in self._recorded:
            number, logs = _number_and_logs(event, args, kwargs)
            self.log.add(self.name, event, number, logs=logs)
        self._seen[event] += 1
        if self._stop_in == (event, self._seen[event]):
            self.model.stop_training = True

    # Keras 2 asks these before it calls any batch method.
    def _implements_train_batch_hooks(self) -> bool:
        return self._implements("train")

    def _implements_test_batch_hooks(self) -> bool:
        return self._implements("test")

    def _implements_predict_batch_hooks(self) -> bool:
        return self._implements("predict")

    def _implements(self, scope: str) -> bool:
        return any(name.startswith(f"on_{scope}_batch") for name in self._recorded)


def _not_overridden(*args: Any, **kwargs: Any) -> None:
    """What an event does that the guest does not override."""


_not_overridden._is_default = True  # type: ignore[attr-defined]


def _number_and_logs(
    event: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[int | None, Any]:
    """The epoch or batch and the `logs` of a callback event's arguments."""
    if event in ("set_model", "set_params"):
        return None, None
    key = "epoch" if "epoch" in event else "batch" if "batch" in event else None
    rest = list(args)
    number = None
    if key is not None:
        number = int(kwargs[key] if key in kwargs else rest.pop(0))
    return number, kwargs.get("logs", rest[0] if rest else None)


def spy(guest: Any, log: EventLog, name: str | None = None) -> Any:
    """Makes a guest record what it receives, without changing what it does.

    The instance's methods are wrapped, not its class. Only events that the guest
    overrides are recorded (see `lifecycle.overridden`), so no host takes it for a
    guest with more batch methods than it has. Spying again moves the guest to the
    new log and name.

    Args:
      guest: a hook or a callback.
      log: where events go.
      name: the guest's name in the log; its class by default.

    Returns:
      `guest` itself.

    Raises:
      errors.NotAGuestError: `guest` is neither a hook nor a callback.
    """
    (guest,) = guests.flatten([guest])
    unspy(guest)
    kind: lifecycle.Guest = "hook" if guests.is_hook(guest) else "callback"
    name = name or guests.name_of(guest)
    own: dict[str, Any] = {}
    for event in lifecycle.overridden(guest, kind):
        own[event] = vars(guest).get(event)
        setattr(guest, event, _recording(getattr(guest, event), event, kind, log, name))
    vars(guest)[_SPY] = own
    return guest


def unspy(guest: Any) -> Any:
    """Undoes `spy`; a guest that is not spied on is left as it is."""
    for event, method in vars(guest).pop(_SPY, {}).items():
        if method is None:
            delattr(guest, event)
        else:
            setattr(guest, event, method)
    return guest


def _recording(
    method: Callable[..., Any],
    event: str,
    kind: lifecycle.Guest,
    log: EventLog,
    name: str,
) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        number, logs = (
            _number_and_logs(event, args, kwargs)
            if kind == "callback"
            else (None, None)
        )
        log.add(name, event, number, logs=logs)
        return method(*args, **kwargs)

    return wrapper


def differences(
    received: Collection[Delivery], expected: Collection[Delivery]
) -> list[str]:
    """Where a received event sequence leaves the expected one; empty if nowhere.

    Returns:
      One line for the first place that differs and one for each event that came
      too often or too rarely.
    """
    got, want = list(received), list(expected)
    if got == want:
        return []
    place = next(
        (
            i
            for i, pair in enumerate(zip(got, want, strict=False))
            if pair[0] != pair[1]
        ),
        min(len(got), len(want)),
    )
    lines = [
        f"event {place + 1}: received {_show(got, place)}, expected "
        f"{_show(want, place)}"
    ]
    have, need = Counter(d.event for d in got), Counter(d.event for d in want)
    lines += [
        f"{event}: received {have[event]} times, expected {need[event]}"
        for event in dict.fromkeys([*need, *have])
        if have[event] != need[event]
    ]
    return lines


def _show(events: list[Delivery], place: int) -> str:
    if place >= len(events):
        return "nothing more"
    event, number = events[place]
    return f"`{event}`" if number is None else f"`{event}({number})`"


def assert_conforms(
    log: EventLog,
    name: str,
    *,
    guest: lifecycle.Guest,
    host: lifecycle.Host,
    **facts: Any,
) -> None:
    """Holds what a guest received to the documented mapping.

    Args:
      log: the log the guest recorded in.
      name: the guest's name in the log.
      guest: `"hook"` or `"callback"`.
      host: `"session"` or `"fit"`.
      **facts: what the run did, as for `lifecycle.expected_events`. Pass
        `only=lifecycle.overridden(...)` for a guest that was spied on.

    Raises:
      AssertionError: the sequence differs; the message says where.
    """
    expected = lifecycle.expected_events(guest, host, **facts)
    found = differences(log.of(name), expected)
    if found:
        raise AssertionError(
            f"`{name}` ({guest} in {host}) did not see the documented events:\n  "
            + "\n  ".join(found)
        )

"""`hb.profile`: what each guest costs in each event, in either loop."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
import wrapt

from hookbridge.adapters.guests import kinds, watchers
from hookbridge.adapters.guests.guest_record import Guest, Wrapper, record_of
from hookbridge.ground import lifecycle
from hookbridge.ground.patching import Patches
from hookbridge.insight.timings import Timings, as_table

# The row of the bridge's own work for guests of the other loop.
BRIDGE = "hookbridge"
# The row of runs of a session that the bridge makes for guests, such as a validation.
WAITING = "TensorFlow"


def profile(guests: object) -> Profile:
    """Count the calls and the time of guests, from now on until `stop`.

        with hb.profile(guests) as profile:
            model.fit(x, y, callbacks=hb.as_callbacks(guests))
        print(profile)

    Each row is an event of a guest. The time of an event that runs inside another event
    (such as the events of a validation that a callback starts) counts only for the
    inner one. The bridge's own work for guests of the other loop is in the rows
    `hookbridge`. What it lets a session compute for them, such as a validation, is in
    `TensorFlow`.

    Args:
      guests: one hook or callback, or a list of them, as for `as_hooks` and
        `as_callbacks`; before or after they were converted.

    Returns:
      The profile. It prints as a table.

    Raises:
      errors.NotAGuestError: an item is neither a hook nor a callback.
    """
    return Profile(guests)


class Profile:
    """The calls and times of guests; see `profile`.

    The overridden methods of the guests are replaced on the objects themselves, so a
    loop makes the same calls as without the profile.

    Attributes:
      timings: the numbers.
    """

    def __init__(self, guests: object) -> None:
        self.timings: Timings = Timings()
        self._guests: list[Guest] = []
        self._covered: list[Patches] = []
        self._followed: list[Any] = []
        self._cover_runs()
        for item in kinds.flatten(guests):
            guest = record_of(item)
            if not any(guest.item is known.item for known in self._guests):
                self._add(guest)
            if isinstance(item, Wrapper):
                self.wrapped(item)

    def _add(self, guest: Guest) -> None:
        self._guests.append(guest)
        number = [known.name for known in self._guests].count(guest.name)
        row = guest.name if number == 1 else f"{guest.name} {number}"
        self._cover(guest.item, row, lifecycle.overridden(guest.item, guest.kind))
        watchers.watch(guest.item, self)

    def _cover(self, target: object, row: str, events: tuple[str, ...]) -> None:
        timed = {
            event: self._with_clock(getattr(target, event), row, event, id(target))
            for event in events
        }
        self._set(target, **timed)

    def _set(self, target: object, **methods: Callable[..., Any]) -> Patches:
        """Set methods until `stop`."""
        covered = Patches(target, methods)
        covered.install()
        self._covered.append(covered)
        return covered

    def _note_followed(self, other: object) -> bool:
        """Return whether an object is already followed; adds it if not."""
        is_followed = any(other is followed for followed in self._followed)
        if not is_followed:
            self._followed.append(other)
        return is_followed

    def _with_clock(
        self, method: Callable[..., Any], row: str, event: str, source: int = 0
    ) -> Callable[..., Any]:
        """Return the method with a clock around each call, for a row and an event."""
        enter, leave = self.timings.enter, self.timings.leave

        @functools.wraps(method)
        def timed(*args: Any, **kwargs: Any) -> Any:
            enter(row)
            try:
                return method(*args, **kwargs)
            finally:
                leave(row, event, source)

        return timed

    # --- the bridge ----------------------------------------------------------------

    def _cover_runs(self) -> None:
        """Take the runs that the bridge asks a session for out of its own work."""
        session = tf.compat.v1.Session
        run, waiting = session.run, self._with_clock(session.run, WAITING, "run")

        @functools.wraps(run)
        def timed(*args: Any, **kwargs: Any) -> Any:
            is_ours = self.timings.innermost == BRIDGE
            return (waiting if is_ours else run)(*args, **kwargs)

        self._set(session, run=timed)

    def wrapped(self, wrapper: Wrapper) -> None:
        """See `watchers.watch`."""
        if isinstance(wrapper, wrapt.ObjectProxy):
            return  # a proxy: calls reach the guest's methods, which it may replace
        if self._note_followed(wrapper):
            return
        self._cover(wrapper, BRIDGE, lifecycle.overridden(wrapper, wrapper.acts_as))

    def joined(self, run: Any) -> None:
        """See `watchers.watch`: the steps of `fit` go through the run."""
        call = run.call
        if self._note_followed(run):
            return
        timed = self._with_clock(call, BRIDGE, "step", id(run))

        @functools.wraps(call)
        def first(*args: Any) -> Any:
            methods.remove()
            step = run.host.step_maker.step_function
            if step is None:  # a run of a session, or a step of another process
                return call(*args)
            # Keras's own step is not the bridge's work.
            if not self._note_followed(step):
                self._set(step, run=self._with_clock(step.run, "", ""))
            self._set(run, call=timed)
            return timed(*args)

        methods = self._set(run, call=first)

    # --- use -----------------------------------------------------------------------

    def stop(self) -> None:
        """Remove the profile from the guests; its numbers stay."""
        while self._covered:
            self._covered.pop().remove()
        for guest in self._guests:
            watchers.unwatch(guest.item)
        self._followed.clear()

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __str__(self) -> str:
        return as_table(self.timings.as_dict())

    def to_json(self, path: object = None) -> str:
        """Return the table as JSON; written to a file too if `path` is given."""
        text = json.dumps(self.timings.as_dict(), indent=1)
        if path is not None:
            _write(path, text)
        return text

    def to_chrome_trace(self, path: object) -> None:
        """Write each call for `chrome://tracing` and Perfetto."""
        _write(path, json.dumps(self.timings.as_chrome_trace()))

    def save(self, log_dir: Any) -> None:
        """Write both files beside TensorBoard's logs."""
        self.to_json(Path(log_dir) / "guests.profile.json")
        self.to_chrome_trace(Path(log_dir) / "guests.trace.json")


def _write(path: Any, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text + "\n", encoding="utf-8")

"""The callbacks of one run that this process calls, and the events they get."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from hookbridge.adapters.guests import roles
from hookbridge.adapters.guests.keras_rows import HISTORY
from hookbridge.adapters.guests.keys_of_logs import add_keys
from hookbridge.adapters.guests.kinds import Flavour, keras_behind, keras_class_of
from hookbridge.adapters.live_model.link import Link
from hookbridge.adapters.live_model.model import LiveModel
from hookbridge.adapters.session_loop.shared import guest_errors
from hookbridge.adapters.session_loop.shared.batch_times import BatchTimes, are_measured
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.ground import compat
from hookbridge.ground.lifecycle import CALLBACK_EVENTS
from hookbridge.ground.lifecycle.overrides import called_for, method_for


class Audience:
    """Call callbacks under eager execution, in the order of their hooks.

    Args:
      session: returns the raw session, or None before there is one.
    """

    def __init__(self, session: Callable[[], Any]) -> None:
        self._session = session
        self.callbacks: list[Any] = []
        # The methods of each event, once all callbacks are known.
        self.calls: dict[str, list[Callable[..., Any]]] = {}
        # The events that have methods, or whose time is measured.
        self.heard: set[str] = set()
        self._members: list[Any] = []  # the hooks of these callbacks
        self._history: Any = None  # a `History` that is not in the list
        self._eager = compat.private("eager_mode")
        self._calling: Any = None  # the method that runs
        self._times: BatchTimes | None = None  # None if batches are not measured

    def add(self, member: Any, model: LiveModel) -> None:
        """Take the callback of a hook, and give it its model."""
        self._members.append(member)
        self.callbacks.append(member.called)
        with self._eager():
            self._call(member.called.set_model, model)

    def set_params(self, config: HookOptions) -> None:
        """Call `set_params` of all, after `set_model` of all, as in Keras."""
        with self._eager():
            for member in self._members:
                self._call(member.called.set_params, config.params_for(member.record))

    def add_history(self, model: LiveModel, config: HookOptions) -> None:
        """Give the model the `History` of the list, or one more, as Keras does."""
        listed = [c for c in self.callbacks if keras_class_of(c) == HISTORY]
        if self.callbacks and not listed:
            keras = keras_behind(self.callbacks[0]) or compat.keras_flavours()[0]
            self._history = keras.callbacks.History()
            self._history.set_model(model)
            self._history.set_params(config.params_for(self._members[0].record))
            self.empty_history()
        model.history = listed[-1] if listed else self._history

    def empty_history(self) -> None:
        """Begin the `History` that is not in the list anew, as after a restart."""
        if self._history is not None:
            self._history.history, self._history.epoch = {}, []

    def collect_calls(self, flavours: Collection[Flavour]) -> None:
        """Find the methods of each event; the roles of the callbacks are final.

        Args:
          flavours: the Keras versions that the callbacks were written for.
        """
        for event in (e.name for e in CALLBACK_EVENTS if e.name.startswith("on_")):
            callbacks = [
                m.called for m in self._members if roles.delivers(m.role, event)
            ]
            self.calls[event] = [
                method_for(c, event) for c in called_for(callbacks, event)
            ]
        if self._history is not None:
            self.calls["on_epoch_end"].append(self._history.on_epoch_end)
        if are_measured(self.callbacks, flavours):
            self._times = BatchTimes(self.calls)
        self._note_heard()

    def _note_heard(self) -> None:
        """Note which events have methods, or are measured."""
        times = self._times
        self.heard = {
            event
            for event, methods in self.calls.items()
            if methods or (times is not None and times.measures(event))
        }

    def deliver(self, link: Link, event: str, args: Sequence[Any]) -> None:
        """Deliver an event to all; what they change goes into the session."""
        times = self._times
        if times is not None and not times.measures(event):
            times = None
        if times is not None:
            times.before(event, args[0])
        methods = self.calls[event]
        if methods:
            # An exception ends the delivery at once, as in `Model.fit`.
            with link.event(), self._eager():
                for method in methods:
                    try:
                        self._call(method, *args)
                    except KeyError as e:
                        add_keys(e, event, args[-1])
                        raise
        if times is not None:
            times.after(event)
            if times.is_over:
                self._times = None
                self._note_heard()

    def _call(self, method: Callable[..., Any], *args: Any) -> None:
        """Call a method of a callback, whose error ends the run."""
        before, self._calling = self._calling, method
        try:
            method(*args)
        except guest_errors.MISTAKEN as e:
            if guest_errors.is_loss_of(self._session(), e):
                raise
            raise guest_errors.error_of_guest(
                self._name_of(method),
                e,
                "Catch it there, or ask for a clean stop with "
                "`self.model.stop_training = True`.",
            ) from e
        finally:
            self._calling = before

    def _name_of(self, method: Callable[..., Any]) -> str:
        """Return the name of a callback and its method."""
        for member in self._members:
            for event in (e.name for e in CALLBACK_EVENTS):
                if getattr(member.called, event, None) == method:
                    return f"{member.record.name}.{event}"
        return getattr(method, "__qualname__", repr(method))

    def who_is_called(self) -> str | None:
        """Return the name of the callback that is called now, or None."""
        owner = getattr(self._calling, "__self__", None)
        names = [m.record.name for m in self._members if m.called is owner]
        return names[-1] if names else None

    def has_role(self, *names: roles.Role) -> bool:
        """Return whether a callback has one of these roles."""
        return any(member.role in names for member in self._members)

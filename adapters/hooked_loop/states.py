"""The state of callbacks, saved beside the checkpoints that a hook writes in `fit`."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.live_session.variables import (
    as_int,
    components,
    learning_rate_variable,
)
from hookbridge.adapters.state.files import CallbackState, Part, Saved
from hookbridge.patching import assign

v1 = tf.compat.v1

# Model -> the checkpoint it was restored from, and its step.
_RESTORED: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()


def note_restored(model: Any, prefix: str) -> None:
    """Remembers the checkpoint of a model, for the callbacks of its next `fit`."""
    _RESTORED[model] = (prefix, _iterations(model))


def _iterations(model: Any) -> int:
    iterations = getattr(getattr(model, "optimizer", None), "iterations", None)
    return -1 if iterations is None else as_int(iterations)


class FitStates(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Saves and restores the state of the callbacks of one `as_callbacks` call.

    It is saved beside each checkpoint of a `CheckpointSaverHook`, and restored if the
    model was restored from that hook's directory, as in a session loop. It is written
    before its checkpoint, so that no checkpoint is without state if the process is
    killed. It is written again when the callbacks have had all events of the
    checkpoint's step: at the begin of the next epoch or step, or in `end`.
    """

    def __init__(self, hook: Any, before: Sequence[Any], after: Sequence[Any]) -> None:
        self._hook = hook
        self._listener = _Listener(self)
        self._state = CallbackState()
        self._before = self._state.add(before, self._loop)
        self._after = self._state.add(after)
        # The learning rate, and its value if no callback has set it.
        self._rate: Any = None
        self._rate_unset: float | None = None
        self._found: Saved | None = None
        self._waits = False
        self._saved: tuple[str, int] | None = None

    def on_train_begin(self, model: Any) -> None:
        """Called in the hook's place: the callbacks before it have begun."""
        self._saved, self._waits = None, True
        prefix = self._checkpoint(model)
        self._found = None if prefix is None else self._state.read(prefix, _rates_of)
        self._begin(self._before)
        self._begin_rate(model)
        self.leave()
        # A new list: the old one may be the user's, or shared with another hook.
        assign(self._hook, _listeners=[*self._hook._listeners, self._listener])

    def on_epoch_begin(self) -> None:
        """Called in the hook's place: the callbacks after it have begun too.

        Later, all callbacks have had the end of an epoch, maybe of a checkpoint's step.
        """
        if self._waits:
            self._waits = False
            self._begin(self._after)
        else:
            self.rewrite()

    def _begin(self, part: Part) -> None:
        part.begin()
        if self._found is not None:
            part.restore(self._found)

    def _begin_rate(self, model: Any) -> None:
        """Goes on with the rate that a callback set, in whichever loop."""
        rate = learning_rate_variable(getattr(model, "optimizer", None))
        self._rate = rate if tf.executing_eagerly() else None
        if self._rate is not None:
            loops = self._found.loops if self._found is not None else ()
            rates = {rate for each in loops for rate in each}
            self._rate_unset = None if rates else _value_of(self._rate)
            if len(rates) == 1:
                self._rate.assign(*rates)

    def _loop(self) -> Any:
        if self._rate is None:
            return None
        with compat.private("eager_mode")():  # a live graph may be the default one
            rate = _value_of(self._rate)
        if rate == self._rate_unset:
            return None
        return {"learning_rates": {"learning_rate": rate}}

    def _checkpoint(self, model: Any) -> str | None:
        """The checkpoint the model was restored from, if this hook wrote it."""
        prefix, step = _RESTORED.get(model, ("", -1))
        folder = getattr(self._hook, "_checkpoint_dir", None)
        if not prefix or folder is None or _iterations(model) != step:
            return None
        same = os.path.abspath(os.path.dirname(prefix)) == os.path.abspath(folder)
        return prefix if same else None

    def before_run(self, run_context: Any) -> None:
        """Writes again: the callbacks have had all events of the checkpoint's step."""
        self.rewrite()
        self._saved = None

    def end(self, session: Any) -> None:
        """Writes again: there is no further step."""
        self.rewrite()

    def saving(self, step: int) -> None:
        """Called before the hook writes a checkpoint."""
        self._saved = (f"{self._hook._save_path}-{step}", step)
        self.rewrite()

    def saved(self, step: int) -> None:
        """Called after the hook has written a checkpoint."""
        path = tf.train.latest_checkpoint(self._hook._checkpoint_dir)
        if path and self._saved != (path, step):
            self._saved = (path, step)
            self.rewrite()

    def rewrite(self) -> None:
        """Writes the present state beside the checkpoint of the last step, if any."""
        if self._saved is not None and not self._waits:
            self._state.save(*self._saved)

    def leave(self) -> None:
        """Takes the listener off the hook."""
        others = [each for each in self._hook._listeners if each is not self._listener]
        assign(self._hook, _listeners=others)


def _value_of(rate: Any) -> float:
    # A distributed variable would enter its strategy, under any graph.
    return float(components(rate)[0].numpy())


def _rates_of(loop: Any, step: int) -> list[float]:
    """The rates that callbacks had set; raises anything if they are damaged."""
    return [float(rate) for rate in (loop.get("learning_rates") or {}).values()]


class _Listener(tf.compat.v1.train.CheckpointSaverListener):  # type: ignore[misc]
    """Tells when the hook is about to save, and when it has saved."""

    def __init__(self, states: FitStates) -> None:
        self._states = states

    def before_save(self, session: Any, global_step_value: Any) -> None:
        self._states.saving(int(global_step_value))

    def after_save(self, session: Any, global_step_value: Any) -> None:
        self._states.saved(int(global_step_value))


def states_of(
    hook: Any, before: Sequence[Any], after: Sequence[Any]
) -> FitStates | None:
    """The keeper of the callbacks' state; None if the hook writes no checkpoints."""
    if not isinstance(hook, v1.train.CheckpointSaverHook) or not (before or after):
        return None
    return FitStates(hook, before, after)

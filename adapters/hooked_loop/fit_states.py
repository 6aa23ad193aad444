"""The state of callbacks, saved beside the checkpoints that a hook writes in `fit`."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.guest_record import unwrapped
from hookbridge.adapters.hooked_loop.fit_backups import FitBackups
from hookbridge.adapters.hooked_loop.fit_epoch import FitEpoch
from hookbridge.adapters.hooked_loop.fit_loop_state import (
    FitLoopState,
    FitRate,
    open_epoch,
    parse,
)
from hookbridge.adapters.hooked_loop.list_ends import watch, watch_begin
from hookbridge.adapters.hooked_loop.model_values import going_back
from hookbridge.adapters.live_session.global_step import iterations_of
from hookbridge.adapters.state import identity
from hookbridge.adapters.state.files import CallbackState
from hookbridge.adapters.state.moments import Checkpoint, Ending
from hookbridge.adapters.state.parts import Part
from hookbridge.ground.patching import assign
from hookbridge.ground.protocols import KerasModel, Session

# Model -> the checkpoint it was restored from, and its step.
_RESTORED: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
# The callbacks that `as_callbacks` was given.
_GUESTS: identity.OfObjects[bool] = identity.OfObjects()
# Directory -> what belongs to the last `fit` that began to save there.
_NEWEST: weakref.WeakValueDictionary[str, FitStates] = weakref.WeakValueDictionary()


def note_restored(model: KerasModel, prefix: str) -> None:
    """Remembers the checkpoint of a model, for the callbacks of its next `fit`."""
    _RESTORED[model] = (prefix, iterations_of(model))


def note_guests(callbacks: Sequence[Any]) -> None:
    """From now on these callbacks have a state, in each `fit` that saves it."""
    for callback in callbacks:
        identity.of(callback)  # before training changes any value
        _GUESTS.put(callback, True)


class FitStates(tf.compat.v1.train.CheckpointSaverListener):  # type: ignore[misc]
    """Saves and restores the state of all guests among the callbacks of a `fit`.

    It is saved beside each checkpoint of a `CheckpointSaverHook`, and restored if the
    model was restored from that hook's directory. It is written before its checkpoint,
    so that none is without state if the process is killed, and again when the callbacks
    have had all events of the step: at the end of an epoch or of `fit`, before the next
    step, or when an error has ended the loop. So is the checkpoint, if callbacks have
    set variables. If a run ends early, the hook saves before the end that is forced on
    callbacks, and both stay as they are then: see `state.moments`.
    """

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self._folder = ""
        self._run: Any = None  # the `HookedRun` of a run, from its begin on
        self._params: Mapping[str, Any] = {}
        self._model: Any = None
        self._guests: list[Any] = []
        self._backups = FitBackups()
        self._state = CallbackState()
        self._part: Part | None = None
        self._rate: FitRate | None = None  # None while no guest has a state
        self._saved: Checkpoint | None = None
        self._step = 0  # of that checkpoint
        self._epoch = FitEpoch()
        # The epoch that an earlier run has begun, until this one has begun it too.
        self._open_epoch: int | None = None
        self._go_back: list[Callable[[], None]] = []
        self._epochs_left = False
        self._is_early = False
        self._at_error: Any = None

    def on_set_model(self, model: KerasModel) -> None:
        """Called in the hook's place, before any callback has an event."""
        self._model = model
        watch_begin(self)

    def none_has_begun(self, callbacks: Sequence[Any]) -> None:
        """Before `on_train_begin` of all, in which callbacks may restore a backup."""
        self._backups = FitBackups(callbacks)
        self._folder = os.path.abspath(os.fspath(self._hook._checkpoint_dir))
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            step = self._state.step_of(checkpoint) or iterations_of(self._model)
            self._backups.choose(checkpoint, step, self._state)

    def on_train_begin(
        self, model: KerasModel, run: Any, params: Mapping[str, Any]
    ) -> None:
        """Called in the hook's place, from Keras's `CallbackList`."""
        everyone = watch(self)
        if everyone is None:
            return  # somebody calls the hook's callback alone
        self._saved, self._part, self._state = None, None, CallbackState()
        self._run, self._params, self._is_early = run, params, False
        self._epochs_left, self._open_epoch = False, None
        self._epoch = FitEpoch(params.get("steps"))
        self._folder = os.path.abspath(os.fspath(self._hook._checkpoint_dir))
        _NEWEST[self._folder] = self
        items = [unwrapped(each) for each in everyone.callbacks]
        self._model, self._guests = model, [i for i in items if _GUESTS.get(i)]
        # An error drops the list; nobody calls its members then.
        self._at_error = weakref.finalize(everyone, self._failed)
        self.leave()
        # A new list: the old one may be the user's, or shared with another hook.
        assign(self._hook, _listeners=[*self._hook._listeners, self])
        run.wait_for(self)

    def on_test_begin(self) -> None:
        """Called in the hook's place, in an evaluation."""
        watch(self)

    def all_have_begun(self) -> None:
        """Those callbacks with a state go on with it."""
        if self._guests:
            self._part = self._state.add(self._guests, self._loop_document)
            prefix = self._backups.restored(self._state) or self._checkpoint()
            saved = None if prefix is None else self._state.read(prefix, parse)
            self._part.begin()
            loops: Sequence[FitLoopState] = ()
            if saved is not None:
                self._part.restore(saved)
                loops = saved.loops
            self._rate = FitRate(self._model)
            self._rate.begin(loops)
            self._open_epoch = open_epoch(loops)

    def _loop_document(self) -> dict[str, Any]:
        """What the loop saves at the step of its last checkpoint."""
        rate = {} if self._rate is None else self._rate.document()
        return self._epoch.document(self._step) | rate

    def _checkpoint(self) -> str | None:
        """The checkpoint the model was restored from, if this hook wrote it."""
        prefix, step = _RESTORED.get(self._model, ("", -1))
        if not prefix or iterations_of(self._model) != step:
            return None
        same = os.path.abspath(os.path.dirname(prefix)) == self._folder
        return prefix if same else None

    def before_step(self) -> None:
        """The callbacks have had all events of the last step."""
        if self._is_over or self._run is None:
            return
        self.rewrite()
        self._saved = None
        self._save_backups(in_epoch=True)
        self._epoch.step_begins(self._run.host.graph.step_number)

    def before_save(self, session: Session, global_step_value: Any) -> None:
        step = int(global_step_value)
        self._keep(Checkpoint(f"{self._hook._save_path}-{step}"), step)

    def after_save(self, session: Session, global_step_value: Any) -> None:
        step = int(global_step_value)
        path = tf.train.latest_checkpoint(self._hook._checkpoint_dir)
        if path is None or self._run is None:
            return

        def write() -> None:
            saver = self._hook._get_saver()
            saver.save(session, self._hook._save_path, global_step=step)

        self.note_saved(session, step, path, write)

    def note_saved(
        self, session: Any, step: int, path: str, write: Callable[[], Any], **later: Any
    ) -> None:
        """The hook has saved this step; `write` saves the present values to the path.

        `later` is what a `Checkpoint` takes beside them.
        """
        if self._run is None:
            return

        def write_again() -> None:
            with self._run.host.graph.hooks_run():
                write()

        is_elsewhere = self._saved is None or self._saved.prefix != path
        values = self._run.host.graph.values
        saved = Checkpoint(path, session, values, write_again, **later)
        if is_elsewhere:
            self._keep(saved, step)
        self._saved = saved

    def _keep(self, saved: Checkpoint, step: int) -> None:
        """Writes the state beside a checkpoint, and will write it again."""
        self._saved, self._step = saved, step
        self._write_state()

    def _write_state(self) -> None:
        if self._saved is not None and self._part is not None:
            prefix = self._saved.prefix
            self._saved.in_order(self._state.prepared(prefix, self._step))

    def rewrite(self) -> None:
        """Writes checkpoint and state of the last step as they are now, if it saved."""
        if self._saved is not None and not self._is_early:
            self._saved.follow()
        self._write_state()

    def _save_backups(self, *, in_epoch: bool) -> None:
        new = self._backups.new(in_epoch=in_epoch)
        if new and self._part is not None:
            self._step = self._run.host.graph.step_number
            for backup in new:
                self._state.save(backup.prefix, self._step)

    def epoch_begins(self, epoch: int) -> None:
        self._epoch.begin(epoch)
        if epoch == self._open_epoch and self._part is not None:
            # An earlier run has had this event: what it sets is in what was restored.
            self._go_back = [self._part.going_back(), going_back(self._model)]
        self._open_epoch = None

    def epoch_has_begun(self) -> None:
        for go_back in self._go_back:
            go_back()
        self._go_back = []

    def epoch_ends(self) -> None:
        """Before any callback has the end of an epoch, or the validation before it."""
        if self._run is not None and self._run.is_stopped:
            self._run.host.step.flush()
            is_whole = self._epoch.is_whole(self._run.host.graph.step_number)
            self._end_early(in_epoch=not is_whole, epochs_left=False)

    def epoch_has_ended(self, epoch: int) -> None:
        last = self._params.get("epochs")
        self._epochs_left = last is not None and epoch + 1 < last
        self._epoch.end(epoch)
        self.rewrite()
        if self._run is not None and self._run.has_begun:
            self._run.host.step.flush()
            self._save_backups(in_epoch=False)

    def training_ends(self) -> None:
        """Before any callback has the end of the training."""
        self._end_early(in_epoch=False, epochs_left=self._epochs_left)

    def _end_early(self, *, in_epoch: bool, epochs_left: bool) -> None:
        """Settles state and checkpoint if what comes is none of a longer run."""
        run = self._run
        if self._is_early or run is None or not run.has_begun or run.is_over:
            return
        data_ended, by_callback = run.host.step.data_ended, not run.is_stopped
        ending = Ending(in_epoch, epochs_left, data_ended, by_callback)
        if not ending.is_early:
            return
        self.rewrite()
        self._save_now()
        if self._part is not None:
            self._part.freeze()
        self._is_early = True

    def _save_now(self) -> None:
        """Saves what the hook would save in its `end`."""
        hook, host = self._hook, self._run.host
        if not any(each is hook for each in self._run.hooks):
            return  # this process does not call it
        with host.graph.hooks_run():
            step = int(host.session.current.run(tf.compat.v1.train.get_global_step()))
            if step != hook._timer.last_triggered_step():
                hook._timer.update_last_triggered_step(step)
                hook._save(host.session.current, step)

    def _failed(self) -> None:
        is_newest = _NEWEST.get(self._folder) is self
        if is_newest and self._saved is not None and self._saved.is_current:
            self._write_state()

    def all_have_ended(self) -> None:
        self.rewrite()
        self._at_error.detach()
        if self._saved is not None:
            self._saved = Checkpoint(self._saved.prefix)
        run, self._run = self._run, None
        run.note_ended(self)

    def all_have_evaluated(self) -> None:
        """An `evaluate` after the `fit`: the checkpoint of its end gets the events."""
        is_newest = self._is_over and _NEWEST.get(self._folder) is self
        if is_newest and self._saved and iterations_of(self._model) == self._step:
            self._write_state()

    @property
    def has_saved(self) -> bool:
        """Whether the last step has a checkpoint."""
        return self._saved is not None

    @property
    def _is_over(self) -> bool:
        """Whether a `fit` has ended, and what runs is an evaluation after it."""
        return self._at_error is not None and not self._at_error.alive

    def leave(self) -> None:
        """Takes this listener off the hook."""
        others = [each for each in self._hook._listeners if each is not self]
        assign(self._hook, _listeners=others)

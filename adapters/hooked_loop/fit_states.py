"""When the state of callbacks is saved and restored in a `fit` with a saving hook."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests import keras_rows, kinds
from hookbridge.adapters.guests.any_flavour import Inserted
from hookbridge.adapters.guests.guest_record import unwrapped
from hookbridge.adapters.hooked_loop.epoch_means import EpochMeans
from hookbridge.adapters.hooked_loop.fit_epoch import FitEpoch, length_in
from hookbridge.adapters.hooked_loop.fit_rate import FitRate
from hookbridge.adapters.hooked_loop.fit_saves import FitSaves, restored_from
from hookbridge.adapters.hooked_loop.list_ends import (
    Calls,
    call_after_others,
    call_before_others,
    calling_list,
)
from hookbridge.adapters.hooked_loop.model_values import restorer_of_values
from hookbridge.adapters.keras_model.optimizers import steps_counted
from hookbridge.adapters.state import attributes, identity, storage
from hookbridge.adapters.state.backups import Backup, backups_of, newest
from hookbridge.adapters.state.files import StateFiles
from hookbridge.adapters.state.keeper import StateKeeper
from hookbridge.adapters.state.loop_state import (
    LoopState,
    Means,
    OpenEpoch,
    open_epoch,
)
from hookbridge.adapters.state.moments import is_early_end
from hookbridge.adapters.state.save_listeners import Save, SaveListener
from hookbridge.adapters.state.write_order import WriteOrder, wait_for_writes
from hookbridge.ground.memory import Fact
from hookbridge.ground.patching import assign
from hookbridge.ground.protocols import CallbackList, KerasModel, Logs, Session

_IS_GUEST = Fact[bool]("guest", "is given to as_callbacks")


def note_guests(callbacks: Sequence[Any]) -> None:
    """Make these callbacks ones whose state each `fit` saves from now on."""
    for callback in callbacks:
        identity.of(callback)  # before training changes any value
        _IS_GUEST.put(callback, True)


def _guests_among(callbacks: Sequence[Any]) -> list[Any]:
    """Return those of a list that have a state: all but what Keras and hookbridge add.

    A copy of a callback, and one that `as_callbacks` was not given, has one too.
    """
    return [
        item
        for item in map(unwrapped, callbacks)
        if _IS_GUEST.get(item)
        or not (
            isinstance(item, Inserted)
            or kinds.is_hook(item)
            or (
                attributes.is_stock(item)
                and keras_rows.row(type(item).__name__).is_of_each_list
            )
        )
    ]


class FitStates(
    tf.compat.v1.train.CheckpointSaverListener,  # type: ignore[misc]
    SaveListener,
):
    """Saves and restores the state of all guests among the callbacks of one `fit`.

    It is saved beside each checkpoint of a `CheckpointSaverHook`, and restored if the
    model was restored from that hook's directory. Callbacks have had all events of a
    step at the end of an epoch or of `fit`, before the next step, or when an error has
    ended the loop. If a run ends early, the hook saves before the end that is forced on
    callbacks, and both stay as they are then: see `state.moments`.

    Here is when this happens; `FitSaves` has what is written.

    Args:
      hook: the `CheckpointSaverHook`.
      model: the model that is trained, unless the loop is no `fit`.
      callback_list: the `CallbackList` of the loop, before any callback has an event.
    """

    def __init__(
        self, hook: Any, model: KerasModel, callback_list: CallbackList
    ) -> None:
        self._hook, self._model = hook, model
        # Where the hook writes its checkpoints.
        self._folder: str = os.path.abspath(str(hook._checkpoint_dir))
        self._backup: Backup | None = None  # what it goes on from, if it is a backup
        self._rate = FitRate(model)
        # What has the epoch that an earlier run has begun, until this one begins one.
        self._open_epoch: OpenEpoch | None = None
        self._earlier_means = Means()  # those from which the epoch still has to go on
        call_before_others(callback_list, {"on_train_begin": self._before_train_begin})
        note_guests(_guests_among(callback_list.callbacks))

    # -- called by the hook's callback, `hook_to_callback`, in its place of the list --

    def on_train_begin(self, run: Any, params: Mapping[str, Any]) -> None:
        """Note that some callbacks have had `on_train_begin`, and others have not.

        Args:
          run: the `HookedRun`.
          params: those that Keras gives callbacks.
        """
        callback_list = calling_list()
        self._run: Any = run  # None after the end
        call_after_others(callback_list, self._calls_after_others)
        self._num_epochs: int = params.get("epochs") or 0
        self._means: EpochMeans | None = run.means or (
            run.host.step_maker.means_of(self._model)
        )
        self._epoch = FitEpoch(length_in(params))
        self.saves: FitSaves = FitSaves(
            self._folder,
            run.number,
            run.host.graph_part,
            guests=_guests_among(callback_list.callbacks),
            loop=self._loop_state,
        )
        if self._calls_hook:
            StateFiles().remove_unfinished(self._folder)
        # What writes the state if Keras drops its list of callbacks: an error has ended
        # the `fit` then, and nobody calls its members. Not alive after the end.
        self._rescue: Any = weakref.finalize(callback_list, self.saves.rescue)
        # A new list: the old one may be the user's, or shared with another hook. A
        # `fit` that has made no step may have left its listener there.
        listeners = [
            item for item in self._hook._listeners if not isinstance(item, FitStates)
        ]
        assign(self._hook, _listeners=[*listeners, self])
        run.add_states(self)

    def on_test_begin(self) -> None:
        """Note that an evaluation begins."""
        callback_list = calling_list()
        if callback_list is not None:
            call_after_others(callback_list, self._calls_after_others)

    # -- called by the first and the last callback of the list, `list_ends`. "Before"
    # and "after" say whether the other callbacks have had the event ----------------

    @property
    def _calls_after_others(self) -> Calls:
        return {
            "on_train_begin": self._after_train_begin,
            "on_epoch_begin": self._after_epoch_begin,
            "on_epoch_end": self._after_epoch_end,
            "on_test_end": self._after_test_end,
            "on_train_end": self._after_train_end,
        }

    def _before_train_begin(self, logs: Logs = None) -> None:
        """Find the backup that a callback is about to restore, if it is the newest."""
        files, checkpoint = StateFiles(), restored_from(self._model, self._folder)
        step = (
            0
            if checkpoint is None
            else files.step_of(checkpoint) or steps_counted(self._model)
        )
        backups = backups_of(calling_list().callbacks)
        self._backup, _ = newest(checkpoint, step, backups, files)

    def _after_train_begin(self, logs: Logs = None) -> None:
        """Give callbacks their state back, and find the epoch that goes on."""
        calls = {
            "on_epoch_begin": self._before_epoch_begin,
            "on_test_begin": self._before_validation_or_epoch_end,
            "on_epoch_end": self._before_validation_or_epoch_end,
            "on_train_end": self._before_train_end,
        }
        call_before_others(calling_list(), calls)
        if not self.saves.part.callbacks:
            return
        of_checkpoint = restored_from(self._model, self._folder)
        prefix = of_checkpoint if self._backup is None else self._backup.prefix
        loops = self.saves.restore(prefix)
        self._rate.begin(loops)
        self._open_epoch = open_epoch(loops)

    def _before_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Begin an epoch, or go on with the one that an earlier run has begun."""
        earlier, self._open_epoch = self._open_epoch, None
        start, self._earlier_means = None, Means()
        self._undo_begin: list[Callable[[], None]] = []
        if earlier is not None and earlier.epoch.number == epoch:
            start, self._earlier_means = earlier.epoch.start, earlier.means
            # An earlier run has had this event: what it sets is in what was restored.
            restore_values = restorer_of_values(self._model)
            self._undo_begin = [self.saves.part.restorer(), restore_values]
        self._epoch.begin(epoch, start)

    def _after_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Undo what `on_epoch_begin` has set, where an earlier run has had it."""
        for undo in self._undo_begin:
            undo()
        self._go_on_with_means()

    def _go_on_with_means(self) -> None:
        """Go on with the means of the epoch that an earlier run had."""
        if self._means is not None and self._earlier_means != Means():
            self._earlier_means = self._means.go_on(self._earlier_means)

    def _before_validation_or_epoch_end(self, *_: Any) -> None:
        """Settle all before the end of an epoch that ends the run early."""
        self.saves.in_step = False
        if not self._is_over and self._run.is_stopped:
            self._run.host.step_maker.flush()
            is_whole = self._epoch.is_whole(self._run.host.graph_part.step_number)
            self._end_early(in_epoch=not is_whole, epochs_left=False)

    def _after_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Write checkpoint and state again, with what the end of an epoch has set."""
        self._epoch.end(epoch)
        self.keeper.settle()
        if self._run.has_begun:
            self._run.host.step_maker.flush()
            self.saves.save_backups(in_epoch=False)

    def _before_train_end(self, logs: Logs = None) -> None:
        """Settle all before the end of a training that has epochs left."""
        self.saves.in_step = False
        next_epoch = self._epoch.number or 0
        self._end_early(in_epoch=False, epochs_left=next_epoch < self._num_epochs)

    def _after_train_end(self, logs: Logs = None) -> None:
        """Write checkpoint and state for the last time, and leave hook and run."""
        self.saves.end()
        self._rescue.detach()
        self.stop_listening()
        run, self._run = self._run, None
        run.note_ended(self)

    def _after_test_end(self, logs: Logs = None) -> None:
        """Give the last checkpoint the events of an `evaluate` after the `fit`."""
        is_last = self._is_over and self.saves.is_newest
        if is_last and steps_counted(self._model) == self.saves.step:
            self.keeper.write_state(*self.keeper.checkpoints)

    # -- called by the run -----------------------------------------------------------

    def before_step(self) -> None:
        """Settle what the last step has saved, and note that the next one begins."""
        self.saves.begin_step()
        self._go_on_with_means()  # in metrics that Keras has made for the first step
        self._earlier_means = Means()
        self._epoch.step_begins(self._run.host.graph_part.step_number)

    def stop_listening(self) -> None:
        """Take this listener off the hook."""
        listeners = [item for item in self._hook._listeners if item is not self]
        assign(self._hook, _listeners=listeners)

    # -- called by the hook, as its listener -----------------------------------------

    def before_save(self, session: Session, global_step_value: Any) -> None:
        """Write the state beside a checkpoint that the hook is about to write."""
        prefix = self._prefix(global_step_value)
        wait_for_writes(prefix)
        self.saves.before_save(prefix, int(global_step_value), WriteOrder(prefix))

    def after_save(self, session: Session, global_step_value: Any) -> None:
        """Note a checkpoint that the hook has written."""
        step, prefix = int(global_step_value), self._prefix(global_step_value)
        saver, save_path = self._hook._get_saver(), self._hook._save_path
        write = functools.partial(saver.save, session, save_path, global_step=step)
        self.saves.note(Save(session, step, prefix, write, WriteOrder(prefix)))

    def _prefix(self, step: Any) -> str:
        """Return the path of the checkpoint that the hook writes at a step."""
        hook = self._hook
        return storage.prefix_of(hook._get_saver(), hook._save_path, int(step))

    def save_session(self, save: Save) -> None:
        """Save the model, and the state of callbacks beside it."""
        self.saves.before_save(save.prefix, int(save.step), save.order)
        save.write()
        self.saves.note(save)

    # --------------------------------------------------------------------------------

    @property
    def keeper(self) -> StateKeeper:
        """What writes the state of the callbacks."""
        return self.saves.keeper

    @property
    def _calls_hook(self) -> bool:
        """Return whether this process calls the hook, and so writes its checkpoints."""
        return any(hook is self._hook for hook in self._run.hooks)

    @property
    def _is_over(self) -> bool:
        """Return whether a `fit` has ended, and what runs is an evaluation after it."""
        return not self._rescue.alive

    def _loop_state(self, step: int) -> LoopState:
        """Return what the loop saves at a global step."""
        means = Means() if self._means is None else self._means.means()
        return self._epoch.state(step, self._rate.set_by_callbacks(), means)

    def _end_early(self, *, in_epoch: bool, epochs_left: bool) -> None:
        """Settle all if an uninterrupted run has none of the later events."""
        run = self._run
        if self.saves.is_frozen or not run.has_begun or run.is_over:
            return
        if is_early_end(
            in_epoch=in_epoch,
            epochs_left=epochs_left,
            is_of_data=run.host.step_maker.data_ended,
            by_callback=not run.is_stopped,
        ):
            self.keeper.settle()
            self._save_now()
            self.saves.freeze()

    def _save_now(self) -> None:
        """Save what the hook would save in its `end`."""
        hook, host = self._hook, self._run.host
        if not self._calls_hook:
            return
        session = host.session_part.current
        with host.graph_part.calling_hooks():
            step = int(session.run(tf.compat.v1.train.get_global_step()))
            if step != hook._timer.last_triggered_step():
                hook._timer.update_last_triggered_step(step)
                hook._save(session, step)

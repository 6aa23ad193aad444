"""The part of a graph's state that one training run uses."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from typing import Any

from hookbridge.adapters.session_state.keeper import Group, Kept, StateKeeper
from hookbridge.adapters.session_state.loop_state import LoopState, best_of, parse
from hookbridge.adapters.state.files import Part

# A keeper lives as long as a run or a saver holds it, and holds its callbacks.
_KEEPERS: weakref.WeakKeyDictionary[Any, weakref.ref[StateKeeper]] = (
    weakref.WeakKeyDictionary()
)
_KEEPERS_OF_CALLBACKS: weakref.WeakValueDictionary[int, StateKeeper] = (
    weakref.WeakValueDictionary()
)


class RunState(Group):
    """The state of the callbacks of one training run."""

    def __init__(
        self,
        graph: Any,
        checkpoint_dir: str | None,
        run: Kept,
        callbacks: Sequence[Any],
    ) -> None:
        super().__init__(run, Part(callbacks, lambda: run.loop_state().document()))
        self._keeper = _keeper_of(graph, checkpoint_dir)
        self._keeper.join(self)
        self.step_is_over = self._keeper.step_is_over

    def begin(self) -> None:
        """After `on_train_begin`."""
        self.part.begin()
        for callback in self.part.callbacks:
            _KEEPERS_OF_CALLBACKS[id(callback)] = self._keeper

    def restore(
        self, session: Any, keys: Collection[str], *, went_back: bool
    ) -> LoopState | None:
        """Gives callbacks the state of a new session; returns where the run was."""
        saved = self._keeper.restore(session, went_back=went_back)
        if saved is None:
            return None
        self.part.restore(saved)
        loops = saved.loops or [parse(None, saved.step)]
        return best_of(loops, self.run.loop_state().steps_per_epoch, keys)

    def ready(self) -> None:
        """The run goes on in the new session."""
        self._keeper.ready(self)

    def end(self, *, cut_short: bool) -> None:
        """After `on_train_end`, see `StateKeeper.end`."""
        self._keeper.end(self, cut_short=cut_short)


def _keeper_of(graph: Any, checkpoint_dir: str | None) -> StateKeeper:
    reference = _KEEPERS.get(graph)
    keeper = None if reference is None else reference()
    if keeper is None or keeper.is_closed:
        keeper = StateKeeper(graph, checkpoint_dir)
        _KEEPERS[graph] = weakref.ref(keeper)
    return keeper


def keeper_of(callback: Any) -> StateKeeper | None:
    """What keeps the state of a callback's last training, or None."""
    return _KEEPERS_OF_CALLBACKS.get(id(callback))

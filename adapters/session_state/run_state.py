"""The state of the callbacks of one training run, and who keeps it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from hookbridge.adapters.session_graph import session_variables
from hookbridge.adapters.session_state.graph_keeper import GraphKeeper, KeptRun
from hookbridge.adapters.state import save_keepers
from hookbridge.adapters.state.backups import backups_of
from hookbridge.adapters.state.loop_state import LoopState, most_alike, parse
from hookbridge.adapters.state.parts import Part
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Callback, Graph, Session

# A keeper lives as long as a run or a saver holds it.
_OF_GUEST = Fact[weakref.ref[GraphKeeper]]("guest", "keeper of its state")


class RunState(KeptRun):
    """The state of the callbacks of one training run, with who keeps it."""

    def __init__(
        self,
        graph: Graph,
        checkpoint_dir: str | None,
        training: Any,
        callbacks: Sequence[Any],
    ) -> None:
        super().__init__(training, Part(callbacks, training.loop_state))
        # The step that the run began at, before callbacks moved it.
        self.first_step: int | None = None
        keeper: GraphKeeper | None = save_keepers.keeper_of_graph(graph)
        if keeper is None or keeper.savers.is_closed:
            keeper = GraphKeeper(graph, checkpoint_dir)
            save_keepers.keeps_for(graph, keeper)
        self.keeper = keeper
        keeper.join(self)

    def find_restart_step(self, session: Session, step: int) -> int:
        """See `GraphKeeper`; all callbacks have joined the run by now."""
        self.first_step = step
        self.part.note_construction()
        self.backups = backups_of(self.part.callbacks)
        return self.keeper.find_restart_step(session, step, self.backups)

    def is_lost(self, session: Session, before: int, step: int) -> bool:
        """Return whether a new session has nothing of the run, not even a checkpoint.

        Its variables are then as they were when the run began.

        Args:
          session: the session that replaces another one.
          before: the step of that other one.
          step: the step of the new one.
        """
        return step == self.first_step and self.keeper.is_lost(
            session, went_back=step < before
        )

    @contextlib.contextmanager
    def ending(self, *, is_early: bool) -> Iterator[None]:
        """Around the last events of a run; see `moments`."""
        with contextlib.ExitStack() as stack:
            if is_early:
                self.part.freeze()
                stack.enter_context(session_variables.held_back(self.training.session))
            yield
        self.keeper.end(self)

    @contextlib.contextmanager
    def without_effect(self) -> Iterator[None]:
        """Around an event that an earlier run has delivered: it sets nothing."""
        go_back = self.part.snapshot()
        with session_variables.undone(self.training.session):
            yield
        go_back()

    def begin(self) -> None:
        """After `on_train_begin`."""
        self.part.begin()
        for callback in self.part.callbacks:
            _OF_GUEST.put(callback, weakref.ref(self.keeper))

    def restore(
        self, session: Session, keys: Collection[str], *, went_back: bool
    ) -> LoopState | None:
        """Give callbacks the state of a new session; return where the run was."""
        saved = self.keeper.restore(session, went_back=went_back)
        if saved is None:
            return None
        self.part.restore(saved)
        loops = saved.file.loops or [parse(None, saved.file.step)]
        loop = most_alike(loops, self.training.loop_state().steps_per_epoch, keys)
        return loop._replace(is_in_step=saved.file.is_in_step)


def keeper_of(callback: Callback) -> GraphKeeper | None:
    """Return what keeps the state of a callback's last training, or None."""
    reference = _OF_GUEST.get(callback)
    return None if reference is None else reference()

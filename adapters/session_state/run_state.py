"""The state of the callbacks of one training run of a session."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from hookbridge.adapters.session_graph import session_variables
from hookbridge.adapters.session_state.session_states import (
    KeptRun,
    SessionStates,
    StatefulTraining,
)
from hookbridge.adapters.state import save_listeners
from hookbridge.adapters.state.backups import backups_of
from hookbridge.adapters.state.loop_state import LoopState, most_alike, parse
from hookbridge.adapters.state.parts import Part
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Callback, Graph, Session

# They live as long as a run or a saver holds them.
_OF_GUEST = Fact[weakref.ref[SessionStates]]("guest", "states with its own")


class RunState(KeptRun):
    """The state of the callbacks of one training run, among those of its graph."""

    def __init__(
        self,
        graph: Graph,
        checkpoint_dir: str | None,
        training: StatefulTraining,
        callbacks: Sequence[Any],
    ) -> None:
        super().__init__(training, Part(callbacks, training.loop_state))
        # The step that the run began at, before callbacks moved it.
        self.first_step: int | None = None
        states: SessionStates | None = save_listeners.listener_of_graph(graph)
        if states is None or states.savers.is_closed:
            states = SessionStates(graph, checkpoint_dir)
            save_listeners.listen_to_saves(graph, states)
        self.states = states
        states.join(self)

    def find_restart_step(self, session: Session, step: int) -> int:
        """Return where training goes on; all callbacks have joined the run by now."""
        self.first_step = step
        self.part.note_construction()
        self.backups = backups_of(self.part.callbacks)
        return self.states.find_restart_step(session, step, self.backups)

    def is_lost(self, session: Session, before: int, step: int) -> bool:
        """Return whether a new session has nothing of the run, not even a checkpoint.

        Its variables are then as they were when the run began.

        Args:
          session: the session that replaces another one.
          before: the step of that other one.
          step: the step of the new one.
        """
        return step == self.first_step and self.states.is_lost(
            session, went_back=step < before
        )

    @contextlib.contextmanager
    def ending(self, *, is_early: bool) -> Iterator[None]:
        """Return a context for the last events of a run, which then saves.

        In one that ends early these events change nothing that is saved: see `moments`.
        """
        with contextlib.ExitStack() as stack:
            if is_early:
                self.part.freeze()
                stack.enter_context(session_variables.held_back(self.training.session))
            yield
        self.states.end(self)

    @contextlib.contextmanager
    def without_effect(self) -> Iterator[None]:
        """Undo what callbacks set in a context: an earlier run has had its event."""
        undo = self.part.restorer()
        with session_variables.undone(self.training.session):
            yield
        undo()

    def begin(self) -> None:
        """Begin to see what callbacks change, after their `on_train_begin`."""
        self.part.begin()
        for callback in self.part.callbacks:
            _OF_GUEST.put(callback, weakref.ref(self.states))

    def restore(
        self, session: Session, keys: Collection[str], *, went_back: bool
    ) -> LoopState | None:
        """Give callbacks the state of a new session; return where the run was."""
        restored = self.states.restore(session, went_back=went_back)
        if restored is None:
            return None
        self.part.restore(restored)
        document = restored.document
        loops = document.loops or [parse(None, document.step)]
        loop = most_alike(loops, self.training.loop_state().steps_per_epoch, keys)
        return loop._replace(is_in_step=document.is_in_step)


def states_of(callback: Callback) -> SessionStates | None:
    """Return the states that a callback's last training was among, or None."""
    reference = _OF_GUEST.get(callback)
    return None if reference is None else reference()

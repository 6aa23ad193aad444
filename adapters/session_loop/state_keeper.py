"""When the state of callbacks is saved and restored in a training run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from absl import logging

from hookbridge.adapters.session_graph import variables as session_variables
from hookbridge.adapters.session_loop import restores as restored_from
from hookbridge.adapters.session_loop.loop_state import LoopState
from hookbridge.adapters.state import files as callback_state


class Kept(Protocol):
    """What the keeper asks of its training run.

    Attributes:
      called: the callbacks that are called in this process.
    """

    graph: Any
    session: Any
    step: int
    called: list[Any]

    @property
    def in_step(self) -> bool:
        """Whether a training step is running whose events are not all delivered."""

    def loop_state(self) -> Any:
        """What belongs to a checkpoint beside the callbacks' own state."""

    def parse_loop_state(self, document: Any) -> LoopState:
        """Reads what `loop_state` returned; raises if it is damaged."""

    def go_on_from(self, state: LoopState | None) -> None:
        """Goes on where the session is, after a restart or a recovery."""


class StateKeeper:
    """Follows the saver of a session.

    It is the saver in the collection `SAVERS`, which the loop's checkpoint hook and
    the restoring of a session use.

    A checkpoint holds what the callbacks of its step did: where the saver's hook came
    before them and they set variables (`EarlyStopping` that restores the best
    weights, `ReduceLROnPlateau`), it is written once more.

    Args:
      run: the training run.
    """

    def __init__(self, run: Kept) -> None:
        self._run = run
        self._state: callback_state.CallbackState | None = None
        self._saver: Any = None
        self._stop: Callable[[], None] | None = None
        # Checkpoints whose state has to wait: for the events of their step, or for the
        # state that a new session goes on from.
        self._late: list[str] = []
        self._session: Any = None
        # Of the last checkpoint: how to write it again, its session, step and paths,
        # and how many times variables had been set until then.
        self._again: Callable[[], Any] | None = None
        self._of: Any = None
        self._at = -1
        self._last: list[str] = []
        self._writes = 0
        self._final: callback_state.Taken | None = None

    def begin(self) -> None:
        """After `on_train_begin`: restores what is there and follows the saver."""
        import tensorflow as tf

        restored_from.unwatch(self._run.graph)
        savers = self._run.graph.get_collection(tf.compat.v1.GraphKeys.SAVERS)
        if not savers:
            # A Scaffold makes a saver in the collection unless it is given one.
            logging.warning(
                "hookbridge: the saver of this session's Scaffold is not in the "
                "collection `tf.compat.v1.GraphKeys.SAVERS`, so the state of "
                "callbacks is not saved with its checkpoints. Add it: "
                "`tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.SAVERS, "
                "saver)`."
            )
            return
        run = self._run
        self._saver = savers[0]
        group, self._stop = callback_state.watch(self._saver, run.session, self._saved)
        self._state = callback_state.CallbackState(run.called, run.loop_state, group)
        self._restore()

    def session_is_new(self) -> None:
        """After a recovery: restores what belongs to the step it went back to."""
        if self._state is None:
            self._run.go_on_from(None)
            return
        late, self._late = self._late, []
        prefix = self._restore()
        # A saver's hook saves in a new session, before the callbacks know it.
        self._save([p for p in late if p == prefix or self._of is self._session])

    def _restore(self) -> str | None:
        """Restores the state that belongs to the checkpoint of the session."""
        run, found = self._run, None
        self._session = run.session
        prefix = restored_from.prefix_of(run.session)
        if prefix is None and self._saver.last_checkpoints:
            prefix = self._saver.last_checkpoints[-1]
        if self._state is not None and prefix is not None:
            found = self._state.restore(prefix, run.step, run.parse_loop_state)
        run.go_on_from(found)
        return prefix

    def _saved(self, prefix: str, again: Callable[[], Any], session: Any) -> None:
        self._again, self._of = again, session
        self._writes = session_variables.writes(session)
        if self._final is not None:
            if self._state is not None and session is self._session:
                self._state.write(prefix, self._final)
            return
        # The saver's hook may come before the callbacks of the same step; the state
        # that belongs to the step is the one after them.
        if self._run.in_step or session is not self._session:
            self._late.append(prefix)
        else:
            self._save([prefix])

    def _save(self, prefixes: list[str]) -> None:
        if self._state is not None and prefixes:
            self._at, self._last = self._run.step, prefixes
            for prefix in prefixes:
                self._state.save(prefix, self._run.step)

    def step_is_over(self) -> None:
        """All callbacks had their events of a step."""
        if self._late:
            self._save_late()

    def end(self, cut_short: bool, *, epoch_ended: bool) -> None:
        """After `on_train_end`: saves what had to wait.

        A saver's hook that comes after the callbacks saves in its own `end`; what it
        saves gets the state that the callbacks have now. The saver is let go as
        the session closes.

        Args:
          cut_short: another run goes on from the last checkpoint, and it has to be
            that of an uninterrupted one: it stays without what `on_train_end` set.
          epoch_ended: an epoch has ended with the data since the last step.
        """
        if epoch_ended and self._at == self._run.step:
            self._late = self._last + self._late
        if self._late:
            self._save_late()
        elif self._at == self._run.step and not cut_short:
            self._save_what_was_set()
        if self._state is not None and self._stop is not None:
            self._final = self._state.taken(self._run.step)
            restored_from.let_go(self._saver)
            _at_close(self._session, self._stop)

    def _save_late(self) -> None:
        late, self._late = self._late, []
        self._save_what_was_set()
        self._save(late)

    def _save_what_was_set(self) -> None:
        """Writes the last checkpoint again if variables were set since."""
        if self._of is not self._run.session:
            return  # it was lost and cannot be saved again
        count = session_variables.writes(self._of)
        if self._again is not None and count != self._writes:
            self._writes = count
            self._again()


def _at_close(session: Any, act: Callable[[], None]) -> None:
    """Calls `act` when a raw session is closed, before it is."""
    close = session.close

    def closes() -> None:
        session.close = close
        act()
        close()

    session.close = closes

"""What the tasks of the test clusters share: their guests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import tensorflow as tf
from job_notes import EVENTS, OPTIONS, note

import hookbridge as hb
from hookbridge.adapters.guests import roles

v1 = tf.compat.v1


def wait_for_peer() -> None:
    """Waits until another task has noted its session, or the event `peer_event`."""
    # A busy machine may start a task so late that the job is over. Such a task joins no
    # job, and ends by itself.
    peer = EVENTS.with_name(OPTIONS["with_peer"])
    noted = f'"event": "{OPTIONS.get("peer_event", "session")}"'
    while not (peer.exists() and noted in peer.read_text()):
        time.sleep(0.05)


def may_stop() -> bool:
    """Whether the test allows a stop: the file `stop_if` is there, if it is named."""
    return Path(OPTIONS.get("stop_if", __file__)).exists()


class Steps(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes steps; fails or stops where the options say so."""

    def begin(self) -> None:
        self.step = v1.train.get_global_step()
        self.runs = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        note("session", step=int(session.run(self.step)))

    def before_run(self, run_context: Any) -> Any:
        if self.runs == 0 and "with_peer" in OPTIONS:
            wait_for_peer()
        return v1.train.SessionRunArgs(self.step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1
        note("step", step=int(run_values.results), run=self.runs)
        time.sleep(float(OPTIONS.get("step_secs", "0.02")))
        if self.runs == int(OPTIONS.get("abort_at", "-1")):
            raise tf.errors.AbortedError(None, None, "the session is lost")
        if self.runs == int(OPTIONS.get("raise_at", "-1")):
            raise ValueError("the hook of this worker fails")
        stop_at = float(OPTIONS.get("request_stop_at", "inf"))
        if self.runs >= stop_at and may_stop():
            run_context.request_stop()

    def end(self, session: Any) -> None:
        weights = {v.op.name: v for v in v1.trainable_variables()}
        values = {name: value.tolist() for name, value in session.run(weights).items()}
        note("end", step=int(session.run(self.step)), values=values)


class Stopper(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Counts, so that it has a state; stops the training where the options say so."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0
        self.begins = 0

    def on_train_begin(self, logs: Any = None) -> None:
        note("train_begin", batches=self.batches)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.begins += 1
        if self.batches == 0:
            note("first_batch")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches += 1
        stop_at = float(OPTIONS.get("stop_training_at", "inf"))
        if self.batches >= stop_at and may_stop():
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        note("train_end", batches=self.batches, begins=self.begins)


class Role(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Notes each kind of event that its role gets in this process, once."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role = role
        self.seen: set[str] = set()

    def _note(self, event: str) -> None:
        if event not in self.seen:
            self.seen.add(event)
            note("role", role=self.role, told=event)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._note("train")

    def on_train_end(self, logs: Any = None) -> None:
        self._note("train_end")

    def on_test_end(self, logs: Any = None) -> None:
        self._note("test_end")


def one_of_each_role() -> list[Any]:
    """A callback for each role."""
    return [hb.set_role(Role(role), role) for role in roles.ROLES]

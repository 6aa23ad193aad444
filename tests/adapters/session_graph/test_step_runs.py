"""Which runs of a session are steps, and where the global step is counted."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, build, feeds, session_loop
from callback_recorder import callback_of, recorder, step_events
from hook_fetching import hook_of

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1


def raw_step(session: Any, net: Any) -> None:
    session.run_step_fn(
        lambda step_context: step_context.session.run(net.train_op, feeds(net, 0))
    )


def train_op() -> Any:
    loss = tf.square(v1.get_variable("w", initializer=1.0), name="loss")
    return v1.train.GradientDescentOptimizer(0.1).minimize(
        loss, v1.train.get_or_create_global_step()
    )


def test_raw_steps_count_for_epochs_without_events(keras: Any) -> None:
    """Raw steps have no events; events of a later step have that step's number."""
    log: list[str] = []
    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks(step_events(keras, log), steps_per_epoch=STEPS)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for kind in "RSSSRSSRRRS":  # a raw step, or a step of the loop
                if kind == "R":
                    raw_step(session, net)
                else:
                    session.run([net.train_op, net.loss], feeds(net, 0))
    assert log == [
        *("begin 1", "end 1 at 2", "begin 2", "end 2 at 3", "epoch end 0 at 3"),
        *("begin 0", "end 0 at 4", "begin 2", "end 2 at 6", "epoch end 1 at 6"),
        # Raw steps took the rest of the epoch: it ends when the next step begins.
        *("begin 0", "end 0 at 7", "epoch end 2 at 10"),
        *("begin 1", "end 1 at 11", "epoch end 3 at 11"),
    ]


def test_recovery_does_not_begin_the_training_again(keras: Any, tmp_path: Any) -> None:
    log: list[Any] = []
    runs = itertools.count(1)

    def abort(self: Any, context: Any) -> None:
        if next(runs) == 3:
            raise tf.errors.AbortedError(None, None, "lost a server")

    session_loop(
        [recorder(keras, log, "A")],
        validate=False,
        epochs=2,
        session_options={"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 1},
        wrap=lambda hooks: [*hooks, hook_of(before_run=abort)],
    )
    counts = Counter(e[0] for e in log)
    assert counts["on_train_begin"] == counts["on_train_end"] == 1
    # The epoch that was lost within its steps begins again, as after a restart.
    assert counts["on_epoch_begin"] == 3
    assert counts["on_epoch_end"] == 2
    assert counts["on_train_batch_begin"] == 2 * STEPS + 1
    assert counts["on_train_batch_end"] == 2 * STEPS


@pytest.mark.parametrize("made", ["after", "late", "before"])
def test_steps_taken_through_a_callable(keras: Any, made: str) -> None:
    """A callable made before the callbacks: its step shows at the end of the epoch."""
    log: list[str] = []

    def create(self: Any, session: Any, coord: Any) -> None:
        if made != "late":
            self.step = session.make_callable(train)

    def run(self: Any, context: Any, values: Any) -> None:
        self.runs = getattr(self, "runs", 0) + 1
        if self.runs == 2 and made == "late":
            self.step = context.session.make_callable(train)
        if self.runs == 3:
            self.step()

    with tf.Graph().as_default():
        train = train_op()
        hooks = hb.as_hooks(step_events(keras, log), steps_per_epoch=5)
        other = hook_of(after_create_session=create, after_run=run)
        hooks = [other, *hooks] if made == "before" else [*hooks, other]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(9):
                session.run(train)
            assert session.run(v1.train.get_global_step()) == 10
    epochs = [event for event in log if event.startswith("epoch")]
    # Made before, the loop's first five steps were six: the epoch ended a step late.
    first = 6 if made == "before" else 5
    assert epochs == [f"epoch end 0 at {first}", "epoch end 1 at 10"]


def test_other_sessions_on_a_server_move_the_step(keras: Any) -> None:
    """As other workers of a cluster do: each step must read the global step."""
    log: list[str] = []
    server = tf.distribute.Server.create_local_server()
    with tf.Graph().as_default():
        train = train_op()
        hooks = hb.as_hooks(step_events(keras, log), steps_per_epoch=3)
        with (
            v1.train.MonitoredTrainingSession(server.target, hooks=hooks) as session,
            v1.Session(server.target) as worker,
        ):
            for each in (session, worker, session, worker, session):
                each.run(train)
            assert worker.run(v1.train.get_global_step()) == 5
    assert [event for event in log if not event.startswith("begin")] == [
        *("end 0 at 1", "end 2 at 3", "epoch end 0 at 3"),
        *("end 1 at 5", "epoch end 1 at 5"),
    ]


def script(session: Any, net: Any) -> None:
    """Steps of several kinds, runs that are no steps, a failure, a step set back."""
    step = v1.train.get_global_step()
    lists = [net.train_op, net.loss]
    for n in range(4):
        session.run(lists, feeds(net, n))
        session.run(net.loss, feeds(net, n))  # no step
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(net.train_op)  # nothing is fed: as if the data had ended
    for n in range(7):
        session.run([net.train_op, net.loss] if n % 3 else net.train_op, feeds(net, n))
        session.run(step)
    raw_step(session, net)
    for n in range(3):
        session.run((net.train_op,), feeds(net, n))
    # As when a hook restores an earlier checkpoint into the session.
    session.run_step_fn(lambda step_context: step.load(3, step_context.session))
    for n in range(9):
        session.run(net.train_op, feeds(net, n))


def test_epochs_are_the_same_whether_anybody_wants_batches(keras: Any) -> None:
    def note(self: Any, epoch: int, logs: Any) -> None:
        step = int(self.model.optimizer.iterations.numpy())
        told[-1].append((other.runs, epoch, step, *logs.values()))

    def step_in_step(self: Any, context: Any, values: Any) -> None:
        self.runs += 1
        if self.runs == 3:  # before the callbacks handle that step
            context.session.run(net.train_op, feeds(net, 0))

    told: list[list[Any]] = []
    seen: list[str] = []
    for others in ([], [step_events(keras, seen)]):
        told.append([])
        epochs = callback_of(keras, on_epoch_begin=note, on_epoch_end=note)
        other = hook_of(after_run=step_in_step)
        other.runs = 0
        with tf.Graph().as_default():
            net = build()
            hooks = hb.as_hooks([other, epochs, *others], steps_per_epoch=3)
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                script(session, net)
    assert len(told[0]) >= 12 and seen
    for alone, beside in zip(*told, strict=True):
        assert alone[:3] == beside[:3]
        assert alone[3:] == pytest.approx(beside[3:], rel=1e-6)
    numbers = [event.split()[1] for event in seen if event.startswith("end")]
    begun = [event.split()[1] for event in seen if event.startswith("begin")]
    assert set(numbers) == {"0", "1", "2"} and len(begun) == len(numbers) + 1

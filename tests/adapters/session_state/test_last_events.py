"""The state beside a checkpoint has all events up to the end of its step."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import until_stop
from callback_recorder import noting
from hook_fetching import hook_of
from state_runs import document

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
STEPS = 4
EVENTS = ("on_train_batch_end", "on_epoch_end", "on_train_end", "on_test_batch_end")


def counting(keras: Any, key: str) -> Any:
    """Counts its events, and stops after two epochs."""

    def note(self: Any, name: str, *args: Any) -> None:
        self.events.append(name)
        if name == "on_epoch_end" and len(self.events) > STEPS * 2:
            self.model.stop_training = True

    guest = noting(keras, note, EVENTS)
    guest.events, guest.state_key = [], key
    return guest


def failing(method: str, at: int) -> Any:
    """Raises in one of its methods at a step."""
    runs = itertools.count(1)

    def fail(self: Any, *args: Any) -> None:
        if next(runs) == at:
            raise RuntimeError("a hook's own")

    events: dict[str, Any] = {method: fail}
    return hook_of(**events)


def train(folder: Path, guests: list[Any], *more: Any, **options: Any) -> None:
    """Saves at each second step; a guest "saver" is the hook that does so.

    `more` are hooks behind those of the guests.
    """
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        train_op = v1.assign_add(step, 1)
        saver = v1.train.CheckpointSaverHook(str(folder), save_steps=2)
        listed = [saver if each == "saver" else each for each in guests]
        hooks = hb.as_hooks(listed, steps_per_epoch=STEPS, **options) + list(more)
        until_stop(
            hooks,
            train_op,
            checkpoint_dir=str(folder),
            save_checkpoint_steps=None,
            save_checkpoint_secs=None,
            save_summaries_steps=0,
            log_step_count_steps=None,
        )


def check_newest(folder: Path, step: int, *guests: Any) -> None:
    """Checks the newest checkpoint: its state has all events of the guests."""
    prefix = tf.train.latest_checkpoint(str(folder))
    entries = document(Path(f"{prefix}.hookbridge.json"))["callbacks"]
    found = {each["key"]: each["state"]["events"] for each in entries}
    assert prefix.endswith(f"-{step}")
    assert found == {guest.state_key: guest.events for guest in guests}


def counts(guest: Any) -> list[int]:
    return [guest.events.count(name) for name in EVENTS]


@pytest.mark.parametrize("ending", ["epochs", "stop"])
def test_a_clean_end(keras: Any, tmp_path: Path, ending: str) -> None:
    one, two = counting(keras, "one"), counting(keras, "two")
    train(tmp_path, [one, "saver", two], epochs=2 if ending == "epochs" else 9)
    check_newest(tmp_path, 2 * STEPS, one, two)
    assert counts(one) == counts(two) == [2 * STEPS, 2, 1, 0]


@pytest.mark.parametrize("method", ["after_run", "before_run"])
def test_an_error_of_another_guest(keras: Any, tmp_path: Path, method: str) -> None:
    one, two = counting(keras, "one"), counting(keras, "two")
    fails = failing(method, STEPS + (method == "before_run"))
    with pytest.raises(RuntimeError, match="a hook's own"):
        train(tmp_path, [one, "saver", two, fails])
    check_newest(tmp_path, STEPS, one, two)
    assert counts(one) == counts(two) == [STEPS, 1, 0, 0]


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_error_between_two_groups(keras: Any, tmp_path: Path, place: str) -> None:
    one, two = counting(keras, "one"), counting(keras, "two")
    guests = ["saver", one] if place == "before" else [one, "saver"]
    behind = hb.as_hooks([two], steps_per_epoch=STEPS)
    with pytest.raises(RuntimeError, match="a hook's own"):
        train(tmp_path, guests, failing("after_run", STEPS), *behind)
    check_newest(tmp_path, STEPS, one, two)
    assert [counts(each)[0] for each in (one, two)] == [STEPS, STEPS - 1]


def test_an_epoch_of_which_a_process_made_the_last_step_alone(
    keras: Any, tmp_path: Path
) -> None:
    """Others have made the rest. The job ends in that step, after its save."""

    def run(*between: Any) -> Any:
        one = counting(keras, "one")
        with tf.Graph().as_default():
            step, loss = v1.train.get_or_create_global_step(), tf.constant(1.0)
            train_op, by_others = v1.assign_add(step, 1), v1.assign(step, 2 * STEPS - 1)
            saver = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=2)
            own = hb.as_hooks([one], steps_per_epoch=STEPS, logs={"loss": loss})
            creator = v1.train.ChiefSessionCreator(checkpoint_dir=str(tmp_path))

            def move(step_context: Any) -> None:
                step_context.session.run(by_others)

            with v1.train.MonitoredSession(creator, [saver, *between, *own]) as session:
                while not session.should_stop():
                    if session.run(train_op) == STEPS:
                        session.run_step_fn(move)
        return one

    with pytest.raises(RuntimeError, match="a hook's own"):
        run(failing("after_run", STEPS + 1))
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith(f"-{2 * STEPS}")
    assert run().events.count("on_epoch_end") == 3


def test_a_job_that_ended_within_a_step_tells_what_is_lost(
    keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    """The saver comes first, and the job ends before the callbacks have the step."""

    def run(*between: Any) -> Any:
        one = counting(keras, "one")
        train(tmp_path, ["saver"], *between, *hb.as_hooks([one], steps_per_epoch=STEPS))
        return one

    with pytest.raises(RuntimeError, match="a hook's own"):
        run(failing("after_run", STEPS - 2))
    one = run()
    assert counts(one)[0] == 2 * STEPS - 1
    assert len(absl_records("before its callbacks had all events of that step")) == 1
    check_newest(tmp_path, 2 * STEPS, one)
    run()
    assert len(absl_records("before its callbacks had all events of that step")) == 1


def test_an_interrupted_epoch_ends_without_any_logs(keras: Any, tmp_path: Path) -> None:
    """The job ends in an epoch's last step, and no loss tells that it had steps."""

    def run(*between: Any) -> list[tuple[str, int]]:
        events: list[tuple[str, int]] = []

        def note(self: Any, name: str, epoch: int, logs: Any = None) -> None:
            events.append((name, epoch))

        guest = noting(keras, note, ("on_epoch_begin", "on_epoch_end"))
        hooks = hb.as_hooks([guest], steps_per_epoch=STEPS, epochs=2)
        train(tmp_path, ["saver"], *between, *hooks)
        return events

    with pytest.raises(RuntimeError, match="a hook's own"):
        run(failing("after_run", STEPS))
    both = ["on_epoch_begin", "on_epoch_end"]
    assert run() == [(name, epoch) for epoch in (0, 1) for name in both]


def test_what_a_restart_delivers_is_in_the_checkpoint(
    keras: Any, tmp_path: Path
) -> None:
    """The job ends in the validation after which `EarlyStopping` stops it."""

    def weight_after(folder: str, *, ends_in: int) -> float:
        validations = itertools.count()

        def validation(session: Any) -> dict[str, float]:
            if next(validations) == ends_in:
                raise KeyboardInterrupt
            return {"loss": float(session.run(weight))}

        with tf.Graph().as_default():
            weight = v1.get_variable("weight", initializer=0.0)
            step = v1.train.get_or_create_global_step()
            # The weight is the number of steps, and the best one that of epoch 0.
            train_op = v1.train.GradientDescentOptimizer(1.0).minimize(-weight, step)
            stop = keras.callbacks.EarlyStopping(
                "val_loss", patience=1, restore_best_weights=True
            )
            hooks = hb.as_hooks(
                [stop],
                steps_per_epoch=STEPS,
                logs={"loss": -weight},
                validation=validation,
            )
            until_stop(
                hooks,
                train_op,
                checkpoint_dir=str(tmp_path / folder),
                save_checkpoint_steps=STEPS,
            )
        assert stop.stopped_epoch == 1
        newest = tf.train.latest_checkpoint(str(tmp_path / folder))
        return float(tf.train.load_variable(newest, "weight"))

    assert weight_after("whole", ends_in=-1) == STEPS
    with pytest.raises(KeyboardInterrupt):
        weight_after("parts", ends_in=2)  # one validation comes before the first step
    assert weight_after("parts", ends_in=-1) == STEPS


def evaluate(guest: Any) -> None:
    with tf.Graph().as_default() as graph:
        v1.train.get_or_create_global_step()
        runs = v1.get_variable("runs", initializer=0, trainable=False)
        graph.add_to_collection(v1.GraphKeys.EVAL_STEP, runs)
        eval_op = v1.assign_add(runs, 1)
        creator = v1.train.ChiefSessionCreator()
        with v1.train.MonitoredSession(creator, hb.as_hooks([guest])) as session:
            session.run(eval_op)


def test_evaluations_beside_a_training(keras: Any, tmp_path: Path) -> None:
    guest = counting(keras, "one")

    class Evaluates(v1.train.CheckpointSaverListener):  # type: ignore[misc]
        def end(self, session: Any, global_step_value: int) -> None:
            evaluate(guest)

    saver = v1.train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, listeners=[Evaluates()]
    )
    train(tmp_path, [saver, guest], epochs=2)
    evaluate(guest)
    check_newest(tmp_path, 2 * STEPS, guest)
    assert counts(guest) == [2 * STEPS, 2, 1, 2]


def test_an_evaluation_after_a_run_that_was_cut_short(
    keras: Any, tmp_path: Path
) -> None:
    """The end of the cut epoch is none of an uninterrupted job; the evaluation is."""
    guest = counting(keras, "one")
    last = STEPS + 2
    stop = v1.train.StopAtStepHook(last_step=last)
    train(tmp_path, ["saver", guest, stop], epochs=3)
    kept = guest.events[: last + 1]
    for _ in range(2):
        evaluate(guest)
        gc.collect()
    guest.events = [*kept, *["on_test_batch_end"] * 2]
    check_newest(tmp_path, last, guest)

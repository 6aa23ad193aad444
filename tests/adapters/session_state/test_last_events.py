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

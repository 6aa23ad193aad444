"""The state beside a checkpoint has all events up to the end of its step."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from state_runs import document

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
STEPS = 4
EVENTS = ("on_train_batch_end", "on_epoch_end", "on_train_end", "on_test_batch_end")


def counting(keras: Any) -> Any:
    class Counts(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.events: list[str] = []

    def noted(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> None:
            self.events.append(name)
            if name == "on_epoch_end" and len(self.events) > STEPS * 2:
                self.model.stop_training = True

        return method

    for name in EVENTS:
        setattr(Counts, name, noted(name))
    return Counts()


class Fails(v1.train.SessionRunHook):  # type: ignore[misc]
    """Raises in one of its methods at a step."""

    def __init__(self, method: str, at: int) -> None:
        self._at, self._runs = at, 0
        setattr(self, method, self._fail)

    def _fail(self, *args: Any) -> None:
        self._runs += 1
        if self._runs == self._at:
            raise RuntimeError("a hook's own")


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
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=str(folder),
            save_checkpoint_steps=None,
            save_checkpoint_secs=None,
            save_summaries_steps=0,
            log_step_count_steps=None,
            hooks=hooks,
        ) as session:
            while not session.should_stop():
                session.run(train_op)


def newest(folder: Path) -> tuple[int, list[str]]:
    """The step of the newest checkpoint, and the events in its state."""
    prefix = tf.train.latest_checkpoint(str(folder))
    (entry,) = document(Path(f"{prefix}.hookbridge.json"))["callbacks"]
    return int(prefix.rpartition("-")[2]), entry["state"]["events"]


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("ending", ["epochs", "stop"])
def test_a_clean_end(keras: Any, tmp_path: Path, place: str, ending: str) -> None:
    counts = counting(keras)
    guests = ["saver", counts] if place == "before" else [counts, "saver"]
    train(tmp_path, guests, epochs=2 if ending == "epochs" else 9)
    step, events = newest(tmp_path)
    assert step == 2 * STEPS and events == counts.events
    assert [events.count(name) for name in EVENTS] == [2 * STEPS, 2, 1, 0]


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("method", ["after_run", "before_run"])
def test_an_error_of_another_guest(
    keras: Any, tmp_path: Path, place: str, method: str
) -> None:
    counts = counting(keras)
    guests = ["saver", counts] if place == "before" else [counts, "saver"]
    fails = Fails(method, STEPS + (method == "before_run"))
    with pytest.raises(RuntimeError, match="a hook's own"):
        train(tmp_path, [*guests, fails])
    step, events = newest(tmp_path)
    assert step == STEPS and events == counts.events
    assert [events.count(name) for name in EVENTS] == [STEPS, 1, 0, 0]


def evaluate(counts: Any) -> None:
    with tf.Graph().as_default() as graph:
        v1.train.get_or_create_global_step()
        runs = v1.get_variable("runs", initializer=0, trainable=False)
        graph.add_to_collection(v1.GraphKeys.EVAL_STEP, runs)
        eval_op = v1.assign_add(runs, 1)
        creator = v1.train.ChiefSessionCreator()
        with v1.train.MonitoredSession(creator, hb.as_hooks([counts])) as session:
            session.run(eval_op)


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_error_between_two_groups(keras: Any, tmp_path: Path, place: str) -> None:
    first, second = counting(keras), counting(keras)
    first.state_key, second.state_key = "first", "second"
    guests = ["saver", first] if place == "before" else [first, "saver"]
    behind = hb.as_hooks([second], steps_per_epoch=STEPS)
    with pytest.raises(RuntimeError, match="a hook's own"):
        train(tmp_path, guests, Fails("after_run", STEPS), *behind)
    prefix = tf.train.latest_checkpoint(str(tmp_path))
    entries = document(Path(f"{prefix}.hookbridge.json"))["callbacks"]
    found = {each["key"]: each["state"]["events"] for each in entries}
    assert found == {"first": first.events, "second": second.events}
    counts = [each.events.count("on_train_batch_end") for each in (first, second)]
    assert counts == [STEPS, STEPS - 1]


@pytest.mark.parametrize("place", ["before", "after"])
def test_evaluations_beside_a_training(keras: Any, tmp_path: Path, place: str) -> None:
    counts = counting(keras)

    class Evaluates(v1.train.CheckpointSaverListener):  # type: ignore[misc]
        def end(self, session: Any, global_step_value: int) -> None:
            evaluate(counts)

    saver = v1.train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, listeners=[Evaluates()]
    )
    guests = [saver, counts] if place == "before" else [counts, saver]
    train(tmp_path, guests, epochs=2)
    evaluate(counts)
    step, events = newest(tmp_path)
    assert step == 2 * STEPS and events == counts.events
    assert [events.count(name) for name in EVENTS] == [2 * STEPS, 2, 1, 2]


def test_an_evaluation_after_a_run_that_was_cut_short(
    keras: Any, tmp_path: Path
) -> None:
    """The end of the cut epoch is none of an uninterrupted job; the evaluation is."""
    counts = counting(keras)
    last = STEPS + 2
    stop = v1.train.StopAtStepHook(last_step=last)
    train(tmp_path, ["saver", counts, stop], epochs=3)
    assert newest(tmp_path)[1] == counts.events[: last + 1]
    for _ in range(2):
        evaluate(counts)
        gc.collect()
    step, events = newest(tmp_path)
    assert step == last
    assert events == [*counts.events[: last + 1], *["on_test_batch_end"] * 2]

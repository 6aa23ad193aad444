"""Epochs, means and state at the end of the data, after a restart, after a recovery."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import until_stop
from callback_recorder import callback_of, counting, noting
from hook_fetching import hook_of
from state_runs import document, patient

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
RATES: dict[str, Callable[[], Any]] = {
    "fed": lambda: 0.1,
    "variable": lambda: v1.get_variable("rate", initializer=0.1, trainable=False),
}


class Net:
    """A graph: the loss of a step is the global step before it."""

    def __init__(self, data: int | None, rate: Callable[[], Any]) -> None:
        step = v1.train.get_or_create_global_step()
        batches = tf.data.Dataset.range(1)
        iterator = v1.data.make_initializable_iterator(batches.repeat(data or 10**6))
        self.begin_data = iterator.initializer
        # A session that replaces a lost one initializes its data too.
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, self.begin_data)
        batch = tf.cast(iterator.get_next(), tf.float32)
        weight = v1.get_variable("weight", initializer=0.0)
        with tf.control_dependencies([batch]):
            at = tf.cast(step.read_value(), tf.float32)
        self.loss = tf.identity(at + 0.0 * weight, name="loss")
        self.mean = v1.metrics.mean(self.loss, name="mean")
        with tf.control_dependencies([self.loss, self.mean[1]]):
            optimizer = v1.train.GradientDescentOptimizer(rate())
            self.train_op = optimizer.minimize(self.loss + 0.0 * batch, step)


def run(
    callbacks: Sequence[Any],
    folder: Path,
    *,
    per_epoch: int,
    data: int | None = None,
    passes: int = 1,
    steps: int = 10**6,
    save_every: int = 10**6,
    hooks: Sequence[Any] = (),
    rate: Callable[[], Any] = lambda: 0.1,
    **options: Any,
) -> None:
    """Trains as a new process would; ends after `steps` as if killed."""
    with tf.Graph().as_default():
        net = Net(data, rate)
        bridged = hb.as_hooks(
            callbacks, steps_per_epoch=per_epoch, logs={"mean": net.mean}, **options
        )
        try:
            with v1.train.MonitoredTrainingSession(
                hooks=[*bridged, *hooks],
                checkpoint_dir=str(folder),
                save_checkpoint_steps=save_every,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
            ) as session:
                for number in range(passes):
                    if number:
                        session.run(net.begin_data)
                    try:
                        while not session.should_stop():
                            if steps == 0:
                                raise KeyboardInterrupt
                            session.run(net.train_op)
                            steps -= 1
                    except tf.errors.OutOfRangeError:
                        continue
        except KeyboardInterrupt:
            pass


def abort(at: int) -> Any:
    """Loses the session in one run of the train op."""
    runs = itertools.count(1)

    def before_run(self: Any, context: Any) -> None:
        if next(runs) == at:
            raise tf.errors.AbortedError(None, None, "lost a server")

    return hook_of(before_run=before_run)


def numbers(keras: Any, seen: list[Any]) -> Any:
    return callback_of(
        keras,
        on_epoch_begin=lambda _, epoch, logs: seen.append(("epoch", epoch)),
        on_train_batch_end=lambda _, batch, logs: seen.append(batch),
    )


# --- the end of the data -----------------------------------------------------------


@pytest.mark.parametrize("per_epoch", [3, 5])
def test_state_is_saved_where_the_data_ends(
    keras: Any, per_epoch: int, tmp_path: Path
) -> None:
    """One run for each pass over the data, as `Estimator.train` is often called."""
    counted = []
    for _ in range(3):
        stopping, history = patient(keras), keras.callbacks.History()
        run([stopping, history], tmp_path, per_epoch=per_epoch, data=3)
        counted.append(stopping.wait)
    first = counted[0]  # Keras 3 counts the first epoch too
    assert counted == [first, first + 1, first + 2]
    assert history.history["loss"] == [1.0, 4.0, 7.0]
    assert (tmp_path / "model.ckpt-9.hookbridge.json").exists()


def test_checkpoint_of_a_hook_after_the_callbacks(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    """The hook writes its last checkpoint in `end`, after the callbacks' `end`."""
    counted = []
    for last_step in (3, 6):
        with subtests.test(str(last_step)):
            with tf.Graph().as_default():
                net, stopping = Net(None, lambda: 0.1), patient(keras)
                guests = [
                    stopping,
                    v1.train.StopAtStepHook(last_step=last_step),
                    v1.train.CheckpointSaverHook(str(tmp_path), save_steps=10**6),
                ]
                until_stop(
                    hb.as_hooks(guests, steps_per_epoch=1),
                    net.train_op,
                    checkpoint_dir=str(tmp_path),
                    save_checkpoint_steps=None,
                    save_checkpoint_secs=None,
                )
            saved = document(tmp_path / f"model.ckpt-{last_step}.hookbridge.json")
            (saved,) = saved["callbacks"]
            assert saved["state"]["wait"] == stopping.wait
            counted.append(stopping.wait)
    assert counted[1] == counted[0] + 3


@pytest.mark.parametrize("kind", ["fed", "variable"])
def test_an_epoch_without_data_sets_the_learning_rate_once(
    keras: Any, kind: str, tmp_path: Path
) -> None:
    """The data is as long as an epoch: its end is met when the next epoch has begun.

    The next run delivers that begin once more, and the rate stays.
    """
    seen: list[float] = []

    def read(self: Any, *_: Any) -> None:
        seen.append(float(np.asarray(self.model.optimizer.learning_rate)))

    for _ in range(3):
        schedule = keras.callbacks.LearningRateScheduler(
            lambda epoch, now: now * 0.5 if epoch else now
        )
        reads = noting(keras, read, ("on_train_batch_end", "on_train_end"))
        run([schedule, reads], tmp_path, per_epoch=2, data=2, rate=RATES[kind])
    # Two steps in each run, and its end, at which the next epoch has begun.
    runs = [[0.1, 0.1, 0.05], [0.05, 0.05, 0.025], [0.025, 0.025, 0.0125]]
    assert seen == pytest.approx(np.concatenate(runs).tolist())


def test_a_rate_that_was_set_does_not_replace_a_schedule(
    keras: Any, tmp_path: Path
) -> None:
    """The program was changed in between; both tensors have one name."""
    used: list[float] = []

    def fetch(self: Any, context: Any) -> Any:
        return v1.train.SessionRunArgs("rate:0")

    def note(self: Any, context: Any, values: Any) -> None:
        used.append(float(values.results))

    def schedule() -> Any:
        step = tf.cast(v1.train.get_global_step().read_value(), tf.float32)
        return tf.multiply(0.1, step, name="rate")

    setter = keras.callbacks.LearningRateScheduler(lambda epoch: 0.5)
    hooks = [hook_of(before_run=fetch, after_run=note)]
    saved: dict[str, Any] = {"per_epoch": 2, "save_every": 1}
    constant = functools.partial(tf.constant, 0.3, name="rate")
    run([setter], tmp_path, steps=2, rate=constant, **saved)
    plain = keras.callbacks.Callback()
    run([plain], tmp_path, steps=2, rate=schedule, hooks=hooks, **saved)
    assert used == pytest.approx([0.2, 0.3])


def test_epochs_that_the_data_ended_count_after_a_restart(
    keras: Any, tmp_path: Path
) -> None:
    whole: list[Any] = []
    run([numbers(keras, whole)], tmp_path / "whole", per_epoch=5, data=3, passes=4)
    parts: list[Any] = []
    for _ in range(2):
        callbacks = [numbers(keras, parts)]
        folder = tmp_path / "parts"
        run(callbacks, folder, per_epoch=5, data=3, passes=2, save_every=1)
    assert [e for e in parts if e != ("epoch", 4)] == [
        e for e in whole if e != ("epoch", 4)
    ]
    assert [e[1] for e in parts if isinstance(e, tuple)][:4] == [0, 1, 2, 3]


def test_no_epoch_is_left_after_a_restart(keras: Any, tmp_path: Path) -> None:
    """Both epochs are over, though with fewer steps than two full epochs have."""
    options: dict[str, Any] = {"per_epoch": 5, "data": 3, "passes": 2, "epochs": 2}
    run([patient(keras)], tmp_path, **options)
    seen: list[Any] = []
    run([numbers(keras, seen)], tmp_path, **options)
    assert seen == []


@pytest.mark.parametrize("place", ["before", "behind"])
def test_two_restarts_within_an_epoch_keep_its_mean(
    keras: Any, tmp_path: Path, place: str
) -> None:
    """A saver behind the callbacks saves once more before their first step."""
    for name, parts in (("whole", [99]), ("parts", [10, 1, 99])):
        for steps in parts:
            history = keras.callbacks.History()
            saver = v1.train.CheckpointSaverHook(str(tmp_path / name), save_steps=3)
            guests = [saver, history] if place == "before" else [history, saver]
            run(guests, tmp_path / name, per_epoch=6, epochs=2, steps=steps)
        assert history.history["loss"][-1] == history.history["mean"][-1] == 8.5


# --- a session that was lost -------------------------------------------------------


def test_recovery_in_mid_epoch_takes_back_the_means(keras: Any, tmp_path: Path) -> None:
    histories = []
    for hooks in ([], [abort(6)]):
        history = keras.callbacks.History()
        folder = tmp_path / str(len(hooks))
        run([history], folder, per_epoch=6, epochs=2, save_every=3, hooks=hooks)
        histories.append(history.history)
    assert histories[0]["loss"] == histories[1]["loss"] == [2.5, 8.5]
    assert histories[0]["mean"] == histories[1]["mean"] == [2.5, 8.5]


@pytest.mark.parametrize("kind", ["fed", "variable"])
@pytest.mark.parametrize(("per_epoch", "save_every", "lost_at"), [(2, 2, 3), (4, 3, 6)])
def test_a_recovery_takes_back_the_rate_of_steps_that_come_again(
    keras: Any, per_epoch: int, save_every: int, lost_at: int, kind: str, tmp_path: Path
) -> None:
    """The session is lost after an epoch has begun, and the checkpoint is older."""

    def rates(folder: Path, *hooks: Any) -> dict[int, float]:
        """The learning rate of each step, as its last run had it."""
        seen: dict[int, float] = {}

        def halve(self: Any, epoch: int, logs: Any) -> None:
            if epoch:
                optimizer = self.model.optimizer
                optimizer.learning_rate = optimizer.learning_rate * 0.5

        def note(self: Any, batch: int, logs: Any) -> None:
            optimizer = self.model.optimizer
            seen[int(optimizer.iterations)] = float(optimizer.learning_rate)

        guest = callback_of(keras, on_epoch_begin=halve, on_train_batch_end=note)
        run(
            [guest],
            folder,
            per_epoch=per_epoch,
            epochs=3,
            save_every=save_every,
            rate=RATES[kind],
            hooks=hooks,
        )
        return seen

    undisturbed = rates(tmp_path / "undisturbed")
    of_epochs = np.repeat([0.1, 0.05, 0.025], per_epoch)
    assert [*undisturbed.values()] == pytest.approx(of_epochs.tolist())
    assert rates(tmp_path / "recovered", abort(lost_at)) == undisturbed


def test_recovery_leaves_the_state_of_the_checkpoint(
    keras: Any, tmp_path: Path
) -> None:
    """The saver's hook saves once more before the callbacks know the new session."""
    run(
        [counting(keras)],
        tmp_path,
        per_epoch=9,
        steps=5,
        save_every=3,
        hooks=[abort(5)],
    )
    saved = document(tmp_path / "model.ckpt-3.hookbridge.json")
    assert saved["step"] == saved["callbacks"][0]["state"]["batches"] == 3


def test_session_that_is_restored_from_a_file(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    """Its saver lists no checkpoints; the path given to the saver tells which it is."""
    run([patient(keras)], tmp_path, per_epoch=2, steps=6, save_every=1)
    waited = []
    for number in (4, 5):
        with subtests.test(str(number)):
            stopping = patient(keras)
            with tf.Graph().as_default() as graph:
                net = Net(None, lambda: 0.1)
                creator = v1.train.ChiefSessionCreator(
                    checkpoint_filename_with_path=str(tmp_path / f"model.ckpt-{number}")
                )
                hooks = hb.as_hooks(stopping, steps_per_epoch=2, epochs=4)
                with v1.train.MonitoredSession(creator, hooks) as session:
                    while not session.should_stop():
                        session.run(net.train_op)
                waited.append(stopping.wait)
                (saver,) = graph.get_collection(v1.GraphKeys.SAVERS)
                assert not {"save", "restore"} & vars(saver).keys()
                assert graph.add_to_collection.__self__ is graph
    whole = patient(keras)
    run([whole], tmp_path / "whole", per_epoch=2, epochs=4)
    assert waited == [whole.wait, whole.wait]


def test_streaming_metric_goes_on_in_mid_epoch(keras: Any, tmp_path: Path) -> None:
    run([keras.callbacks.History()], tmp_path, per_epoch=4, steps=6, save_every=1)
    history = keras.callbacks.History()
    run([history], tmp_path, per_epoch=4, epochs=2)
    assert history.history["loss"] == history.history["mean"] == [1.5, 5.5]

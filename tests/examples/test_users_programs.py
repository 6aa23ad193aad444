"""What three kinds of users do first, as whole programs.

A session with seven callbacks that is killed and restarted, a `fit` with eight hooks in
five hosts, and an old Estimator program that runs unedited.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from fork_server import ForkServer

import hookbridge as hb
from hookbridge.cli import main

v1: Any = tf.compat.v1

SESSION = '''
import json, os, signal, sys
import tensorflow as tf
import hookbridge as hb

v1, keras = tf.compat.v1, tf.keras.callbacks
folder, killed_at = sys.argv[1], int(sys.argv[2])


class Counter(keras.Callback):
    """A callback of the user's own: what it counts is its state."""

    def __init__(self):
        super().__init__()
        self.batches = 0

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1


class Killed(v1.train.SessionRunHook):
    def before_run(self, run_context):
        return v1.train.SessionRunArgs(v1.train.get_global_step())

    def after_run(self, run_context, run_values):
        if 0 < killed_at <= run_values.results:
            os.kill(os.getpid(), signal.SIGKILL)


os.makedirs(folder, exist_ok=True)
stopping = keras.EarlyStopping("loss", patience=99)
counter, history = Counter(), keras.History()
guests = [
    stopping,
    keras.ReduceLROnPlateau("loss", factor=0.5, patience=2, min_delta=9.0),
    keras.CSVLogger(f"{folder}/log.csv", append=True),
    keras.ModelCheckpoint(f"{folder}/best.weights.h5", save_weights_only=True),
    keras.TerminateOnNaN(),
    history,
    counter,
    v1.train.StopAtStepHook(last_step=100),
    Killed(),
]
with tf.Graph().as_default():
    w = v1.get_variable("w", initializer=3.0)
    rate = v1.get_variable("learning_rate", initializer=0.1, trainable=False)
    loss = (w - 1.0) ** 2
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(rate).minimize(loss, step)
    hooks = hb.as_hooks(
        guests, steps_per_epoch=10, logs={"loss": loss}, learning_rate=rate
    )
    with v1.train.MonitoredTrainingSession(
        checkpoint_dir=folder,
        save_checkpoint_steps=10,
        save_checkpoint_secs=None,
        hooks=hooks,
    ) as session:
        while not session.should_stop():
            values = session.run([train_op, w, rate])[1:]
rows = [line.split(",")[0] for line in open(f"{folder}/log.csv")][1:]
result = [*map(float, values), stopping.wait, counter.batches]
print(json.dumps([*result, len(history.history["loss"]), rows]))
'''


@pytest.mark.slow
def test_a_session_with_seven_callbacks_is_killed_and_restarted(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    program = tmp_path / "train.py"
    program.write_text(SESSION)
    whole = fork_server.run(str(program), str(tmp_path / "whole"), "-1")
    assert whole.returncode == 0, whole.stderr
    killed = fork_server.run(str(program), str(tmp_path / "killed"), "57")
    assert killed.returncode == -9
    again = fork_server.run(str(program), str(tmp_path / "killed"), "-1")
    assert again.returncode == 0, again.stderr
    expected, got = (json.loads(d.stdout.splitlines()[-1]) for d in (whole, again))
    assert got[:-1] == pytest.approx(expected[:-1])
    assert got[-1] == expected[-1] == [str(epoch) for epoch in range(10)]
    assert got[3] == 100  # each batch was counted once


class Counted(v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes the loss of each step."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.ended = 0

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs("loss:0")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))

    def end(self, session: Any) -> None:
        self.ended += 1


class FeedsRate(v1.train.SessionRunHook):  # type: ignore[misc]
    """Feeds the learning rate of each step."""

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(None, {"learning_rate:0": 0.05})


X = np.random.RandomState(0).rand(80, 3).astype("float32")
Y = X @ np.array([[1.0], [2.0], [-1.0]], "float32")
HOSTS = ("arrays", "dataset", "run_eagerly", "strategy", "own loop")


def train(host: str, guests: list[Any]) -> None:
    """At most 40 steps of 8 examples in one of `HOSTS`."""
    strategy = tf.distribute.get_strategy()
    if host == "strategy":
        strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential([layers.Dense(1, use_bias=False)])
        model.build([None, 3])
        model.compile(
            tf.keras.optimizers.SGD(0.5), "mse", run_eagerly=host == "run_eagerly"
        )
    model.set_weights([np.zeros([3, 1], "float32")])
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    if host == "own loop":

        @tf.function  # type: ignore[untyped-decorator]
        def step(batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            pairs = zip(gradients, model.trainable_variables, strict=True)
            model.optimizer.apply_gradients(pairs)
            return loss

        with hb.loops.OwnLoop(guests, model=model, steps_per_epoch=10) as loop:
            for batch in data.repeat(4):
                loop.step(step, batch)
        return
    callbacks = hb.as_callbacks(guests)
    options: dict[str, Any] = {"epochs": 4, "verbose": 0, "callbacks": callbacks}
    if host == "dataset":
        model.fit(data, **options)
    else:
        model.fit(X, Y, batch_size=8, shuffle=False, **options)


@pytest.mark.slow
def test_eight_hooks_do_the_same_in_five_hosts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen = {}
    tf.get_logger().addHandler(caplog.handler)
    level = tf.get_logger().level
    tf.get_logger().setLevel("INFO")
    try:
        for host in HOSTS:
            folder, counted = str(tmp_path / host), Counted()
            guests = [
                v1.train.StopAtStepHook(num_steps=25),
                v1.train.LoggingTensorHook(["loss:0"], every_n_iter=10),
                v1.train.CheckpointSaverHook(folder, save_steps=10),
                v1.train.NanTensorHook("loss:0"),
                v1.train.StepCounterHook(5, output_dir=folder),
                v1.train.FinalOpsHook("global_step:0"),
                FeedsRate(),
                counted,
            ]
            caplog.clear()
            train(host, guests)
            lines = {id(r) for r in caplog.records if "loss:0 = " in r.getMessage()}
            newest = tf.train.latest_checkpoint(folder)
            step = int(tf.train.load_variable(newest, "global_step"))
            final = int(guests[5].final_ops_values)
            events = len(list(Path(folder).glob("events.*")))
            seen[host] = (len(lines), step, final, events, counted.ended)
            losses = counted.losses
            assert len(losses) == 25 and losses[-1] < losses[0]
            if host == HOSTS[0]:
                first = losses
            np.testing.assert_allclose(losses, first, rtol=1e-4, err_msg=host)
    finally:
        tf.get_logger().setLevel(level)
        tf.get_logger().removeHandler(caplog.handler)
    assert set(seen.values()) == {seen[HOSTS[0]]}, seen
    assert seen[HOSTS[0]][:3] == (3, 25, 25)


OLD = """
import tensorflow as tf


def input_fn():
    x = tf.constant([[1.0], [2.0], [3.0], [4.0]])
    return tf.data.Dataset.from_tensors((x, 2.0 * x)).repeat()


def model_fn(features, labels, mode):
    y = tf.layers.dense(features, 1, use_bias=False)
    loss = tf.losses.mean_squared_error(labels, y)
    train_op = tf.train.GradientDescentOptimizer(0.02).minimize(
        loss, tf.train.get_or_create_global_step()
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    estimator = tf.estimator.Estimator(model_fn, "model")
    logging = tf.train.LoggingTensorHook(["global_step:0"], every_n_iter=20)
    estimator.train(input_fn, hooks=[logging], steps=60)
    print("loss %.4f" % estimator.evaluate(input_fn, steps=1)["loss"])


if __name__ == "__main__":
    tf.app.run()
"""


@pytest.mark.slow
def test_an_old_estimator_program_runs_unedited(
    tmp_path: Path, launcher: ForkServer, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "old.py"
    program.write_text(OLD)
    assert main(["doctor", str(program)]) == 0
    verdict = "Nothing needs manual work: `hookbridge run` runs it as it is"
    assert capsys.readouterr().out.startswith(verdict)
    words = ["-m", "hookbridge", "run", str(program)]
    done = launcher.run(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "loss 0.0000" in done.stdout
    assert program.read_text() == OLD

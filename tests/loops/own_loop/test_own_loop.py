"""Guests in a training loop of the user's own: the same as in `fit`, and its ends."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import hook_loops
import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from fork_server import ForkServer
from hook_fetching import Fetch
from own_training import batches, in_fit, in_own_loop, loss_of, train_step_of

import hookbridge as hb
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.testing import EventLog, RecordingCallback, RecordingHook

ONE_KERAS = True

v1: Any = tf.compat.v1
train: Any = v1.train


class Fetching(Fetch):
    """Fetches what a step has, and notes it."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names, "loss:0", "hidden/Relu:0")


class Ending(train.SessionRunHook):  # type: ignore[misc]
    """Ends the loop in its third step, in one of the ways that a hook has."""

    def __init__(self, way: str) -> None:
        self._way, self.runs, self.ended = way, 0, False

    def before_run(self, run_context: Any) -> None:
        if self._way == "before" and self.runs == 2:
            raise StopIteration
        self.runs += 1

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self.runs == 3 and self._way == "after":
            raise tf.errors.OutOfRangeError(None, None, "enough")
        if self.runs == 3 and self._way == "request":
            run_context.request_stop()
        if self.runs == 3 and self._way == "error":
            raise ValueError("mine")

    def end(self, session: Any) -> None:
        self.ended = True


def test_the_events_are_those_of_fit(keras: Any) -> None:
    stories = []
    for run in (in_fit, in_own_loop):
        log = EventLog()
        guests = [
            RecordingHook(log),
            keras.callbacks.EarlyStopping("loss", patience=0, min_delta=1e9),
            RecordingCallback(log),
        ]
        run(keras, guests, epochs=4)
        stories.append([(e.guest, e.event) for e in log])
    assert stories[0] == stories[1]
    assert ("RecordingCallback", "on_epoch_end") in stories[0]


@pytest.mark.parametrize("kind", ["tf.function", "plain function", "strategy"])
def test_fetched_values_are_those_of_fit(keras: Any, kind: str) -> None:
    strategy = hook_loops.mirrored() if kind == "strategy" else None
    # As in a `fit` that runs eagerly, nothing has the gradients of a plain function.
    more = () if kind == "plain function" else ("gradients/hidden/bias:0",)
    ours, theirs = Fetching(*more), Fetching(*more)
    model = hook_loops.keras_model(keras, strategy)
    step = train_step_of(keras, model, strategy)
    if kind == "plain function":
        step = step.python_function
    in_own_loop(keras, ours, model=model, step=step, strategy=strategy)
    in_fit(keras, theirs, strategy=strategy)
    assert len(ours.seen) == len(theirs.seen) == hook_loops.BATCHES
    assert ours.steps == theirs.steps
    for own, native in zip(ours.seen, theirs.seen, strict=True):
        for name, mine, expected in zip(ours.names, own, native, strict=True):
            np.testing.assert_allclose(mine, expected, 1e-4, 1e-6, err_msg=name)


def test_a_hook_or_an_error_ends_the_loop(keras2: Any) -> None:
    model = hook_loops.keras_model(keras2)
    for way, steps, asks in (
        ("before", 2, True),
        ("after", 3, False),
        ("request", 3, True),
        ("error", 3, True),
        ("body", 2, True),
    ):
        model.optimizer.iterations.assign(0)
        hook, log = Ending(way), EventLog()
        guests = [hook, RecordingCallback(log)]
        fails = way in ("error", "body")
        with (
            pytest.raises(ValueError, match="mine") if fails else nullcontext(),
            hb.loops.OwnLoop(guests, model=model, steps_per_epoch=100) as loop,
        ):
            step = train_step_of(keras2, model)
            for number, batch in enumerate(batches().repeat()):
                if asks and loop.should_stop():
                    break
                if way == "body" and number == 2:
                    raise ValueError("mine")
                loop.step(step, batch)
        # As in `fit`: nobody is told of the end after an error.
        assert hook.ended is not fails
        assert int(np.asarray(model.optimizer.iterations)) == steps
        events = [e.event for e in log]
        assert events.count("on_train_batch_end") == steps - (way == "error")
        last = ["on_epoch_end", "on_train_end"]
        assert (events[-2:] == last) is not fails
    # The model can be trained in `fit` again.
    again = Ending("request")
    in_fit(keras2, again, model=model)
    assert again.ended


@pytest.mark.parametrize("event", ["on_epoch_end", "on_train_end"])
def test_an_error_at_the_end_gives_the_model_back(keras2: Any, event: str) -> None:
    def fail(self: Any, *args: Any) -> None:
        raise ValueError("mine")

    model, hook = hook_loops.keras_model(keras2), Ending("")
    methods: dict[str, Any] = {event: fail}
    guests = [hook, callback_of(keras2, **methods)]
    with (
        pytest.raises(ValueError, match="mine"),
        hb.loops.OwnLoop(guests, model=model) as loop,
    ):
        loop.step(train_step_of(keras2, model), next(iter(batches())))
    # As in `fit`: what comes before the error has its end.
    assert hook.ended is (event == "on_train_end")
    assert not {"fit", "evaluate", "predict"} & set(vars(model))
    again = Ending("request")
    in_fit(keras2, again, model=model)
    assert again.ended


def test_state_goes_on_after_a_restart(keras2: Any, tmp_path: Path) -> None:
    def run(epochs: int) -> Any:
        model = hook_loops.keras_model(keras2)
        if tf.train.latest_checkpoint(str(tmp_path)):
            hb.checkpoints.restore(model, str(tmp_path))
        stopping = keras2.callbacks.EarlyStopping("loss", patience=99, min_delta=1e9)
        saver = train.CheckpointSaverHook(str(tmp_path), save_steps=10**6)
        in_own_loop(keras2, [saver, stopping], model=model, epochs=epochs)
        return model, stopping

    run(2)
    model, stopping = run(3)
    assert stopping.wait == 4  # the first epoch is the best
    assert int(np.asarray(model.optimizer.iterations)) == 5 * hook_loops.BATCHES
    path = tf.train.latest_checkpoint(str(tmp_path))
    assert path.endswith(f"-{5 * hook_loops.BATCHES}")


def test_the_optimizer_of_the_loop_is_the_one_guests_see(keras2: Any) -> None:
    made = hook_loops.keras_model(keras2)
    model = keras2.Sequential(made.layers, name="classifier")  # never compiled
    optimizer = keras2.optimizers.SGD(hook_loops.RATE)
    rate = keras2.callbacks.LearningRateScheduler(lambda epoch: 0.5 / (epoch + 1))

    @tf.function  # type: ignore[untyped-decorator]
    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(keras2, model, batch)
        weights = model.trainable_variables
        optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights, strict=True)
        )
        return loss

    fetching, options = Fetching(), {"model": model, "optimizer": optimizer}
    in_own_loop(keras2, [rate, fetching], step=step, epochs=2, **options)
    assert len(fetching.seen) == 8
    assert float(np.asarray(optimizer.learning_rate)) == pytest.approx(0.25)
    assert getattr(model, "optimizer", None) is not optimizer


def test_a_callback_s_own_loops_are_aside(keras2: Any) -> None:
    model, hook = hook_loops.keras_model(keras2), Fetching()

    def evaluate(epoch: int, logs: Any) -> None:
        model.evaluate(hook_loops.X, hook_loops.Y, verbose=0)
        model.fit(hook_loops.X, hook_loops.Y, batch_size=hook_loops.BATCH, verbose=0)

    inner = keras2.callbacks.LambdaCallback(on_epoch_end=evaluate)
    in_own_loop(keras2, [hook, inner], model=model, epochs=2)
    assert hook.steps == [0, 1, 2, 3, 8, 9, 10, 11]


def test_what_the_loop_cannot_carry_is_refused(keras2: Any) -> None:
    model = hook_loops.keras_model(keras2)
    first, second = train_step_of(keras2, model), train_step_of(keras2, model)
    batch = next(iter(batches()))
    no_model: Any = object()
    with (
        pytest.raises(hb.errors.RefusedError, match="A loop has one step for"),
        hb.loops.OwnLoop(Fetching(), model=model) as loop,
    ):
        loop.step(first, batch)
        loop.step(second, batch)
    with pytest.raises(hb.errors.InvalidArgumentError, match="expected a Keras model"):
        hb.loops.OwnLoop([], model=no_model)
    for method in ("step", "evaluate"):
        call = getattr(hb.loops.OwnLoop([], model=model), method)
        text = f"`{method}` was called outside the block"
        with pytest.raises(hb.errors.InvalidArgumentError, match=text):
            call(first, batch)


def test_a_step_of_keras_itself(keras: Any) -> None:
    model, hook = hook_loops.keras_model(keras), Fetch("loss:0")
    stop = train.StopAtStepHook(num_steps=5)
    with hb.loops.OwnLoop([hook, stop], model=model) as loop:
        for x, y in batches().repeat():
            loop.step(model.train_on_batch, x, y)
    assert hook.steps == [0, 1, 2, 3, 4]
    assert int(np.asarray(model.optimizer.iterations)) == 5
    hook = Fetching()
    with (
        pytest.raises(hb.errors.LiveSessionError, match="cannot be read from outside"),
        hb.loops.OwnLoop(hook, model=model) as loop,
    ):
        loop.step(model.train_on_batch, *next(iter(batches())))


def test_guests_go_by_the_roles_they_were_given(
    keras2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ClusterConfig({"chief": ("a:1",), "worker": ("b:1",)}, "worker", 0)
    monkeypatch.setenv("TF_CONFIG", cluster.to_json())
    log = EventLog()
    guests = [
        hb.set_role(kind(log, f"{kind.__name__} of the {role}"), role)
        for kind in (RecordingHook, RecordingCallback)
        for role in ("chief", "worker")
    ]
    with hb.profile(guests) as profile:
        in_own_loop(keras2, guests)
    assert {name.split()[-1] for name in log.guests()} == {"worker"}
    counts = [log.counts(name) for name in log.guests()]
    assert [c.get("after_run", c.get("on_train_batch_end")) for c in counts] == [
        hook_loops.BATCHES
    ] * 2
    explained = hb.explain(guests, host="fit").guests
    assert [g.role for g in explained] == ["chief", "worker"] * 2
    assert "RecordingHook" in str(profile) and "hookbridge" in str(profile)


def test_an_orbit_controller_trains_with_guests(keras2: Any, tmp_path: Path) -> None:
    reason = "`pip install tf-models-official` brings orbit"
    orbit = pytest.importorskip("orbit", reason=reason, exc_type=ImportError)
    model, hook = hook_loops.keras_model(keras2), Fetching()
    step, data = train_step_of(keras2, model), iter(batches().repeat())
    stop = train.StopAtStepHook(num_steps=10)
    counted = tf.Variable(0, dtype=tf.int64)

    class Trainer(orbit.AbstractTrainer):  # type: ignore[misc, name-defined]
        def train(self, num_steps: Any) -> Any:
            for _ in range(int(num_steps)):
                loss = loop.step(step, next(data))
                counted.assign_add(1)
            return {"loss": loss}

    options = {"model": model, "steps_per_epoch": 4}
    with hb.loops.OwnLoop([hook, stop], **options) as loop:
        controller = orbit.Controller(
            trainer=Trainer(), global_step=counted, steps_per_loop=4
        )
        controller.train(steps=40)
    assert len(hook.seen) == int(counted) == 10
    assert len(loop.history["loss"]) == 3


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_example_runs(
    repo_root: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    program = str(repo_root / "examples" / "own_loop.py")
    done = fork_server.run(program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    epochs, best = done.stdout.split()[0], float(done.stdout.split()[-1])
    assert 3 <= int(epochs) <= 20 and best < 1
    assert tf.train.latest_checkpoint(str(tmp_path / "runs" / "own_loop"))

"""What hooks fetch as their loop does, and what they fetch in `end`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_loops
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, hook_of, run_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

train: Any = tf.compat.v1.train
DATA = (hook_loops.X, hook_loops.Y)


def refetching() -> Any:
    """Fetches what its loop fetches, as hooks that time or log predictions do."""
    hook = hook_of(
        before_run=lambda self, c: train.SessionRunArgs(c.original_args.fetches),
        after_run=lambda self, c, values: self.seen.append(values.results),
    )
    hook.seen = []
    return hook


def test_predict_gives_the_outputs(subtests: pytest.Subtests, keras: Any) -> None:
    models = [
        hook_loops.keras_model(keras, each) for each in (None, hook_loops.mirrored())
    ]
    for model in (*models, hook_loops.keras_model(keras, run_eagerly=True)):
        with subtests.test(str(model)):
            hook = refetching()
            expected = run_loop(model, hook, loop="predict", data=DATA)
            assert len(hook.seen) == hook_loops.BATCHES
            seen = np.concatenate([next(iter(each.values())) for each in hook.seen])
            np.testing.assert_allclose(seen, expected, rtol=1e-6)
    # Several outputs go by their names.
    inputs = keras.layers.Input((4,))
    heads = [keras.layers.Dense(n, name=f"head{n}")(inputs) for n in (1, 2)]
    hook = refetching()
    run_loop(keras.Model(inputs, heads), hook, loop="predict", data=DATA)
    shapes = {key: value.shape for key, value in hook.seen[0].items()}
    assert shapes == {"head1": (8, 1), "head2": (8, 2)}


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_fit_and_evaluate_give_loss_and_metrics(keras: Any, run_eagerly: bool) -> None:
    model = hook_loops.keras_model(keras, metrics=["accuracy"], run_eagerly=run_eagerly)
    seen_logs: list[dict[str, Any]] = []
    noting = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen_logs.append(dict(logs))
    )
    # The names of metrics stay free for hooks.
    names: list[str] = []
    naming = hook_of(
        begin=lambda self: names.append(tf.constant(1, name="accuracy").name)
    )
    hook = refetching()
    run_loop(model, hook, naming, noting, data=DATA)
    assert names == ["accuracy:0"]
    assert set(hook.seen[0]) == {"loss", "accuracy"}
    for seen, told in zip(hook.seen, seen_logs, strict=True):
        assert seen["accuracy"] == pytest.approx(told["accuracy"])
    # The loss of the batch, as a session loop fetches it; the logs have a mean.
    losses = [seen["loss"] for seen in hook.seen]
    assert np.mean(losses) == pytest.approx(seen_logs[-1]["loss"], rel=1e-4)
    hook = refetching()
    result = run_loop(model, hook, loop="evaluate", data=DATA, return_dict=True)
    assert hook.seen[-1]["accuracy"] == pytest.approx(result["accuracy"])


def fetching_in_end(kind: str, name: str) -> Any:
    """Fetches a tensor in each step and, with an own call, in `end`."""

    def begin(self: Any) -> None:
        self.tensor = tf.compat.v1.get_default_graph().get_tensor_by_name(name)

    return hook_of(
        kind,
        begin=begin,
        before_run=lambda self, context: train.SessionRunArgs(self.tensor),
        after_run=lambda self, c, values: setattr(self, "last", values.results),
        end=lambda self, session: setattr(self, "at_end", session.run(self.tensor)),
    )


def test_in_end_a_tensor_of_the_step_is_that_of_the_last_step(
    subtests: pytest.Subtests, keras2: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so, for each such hook."""
    loss = fetching_in_end("OfLoss", "loss:0")
    hidden = fetching_in_end("OfLayer", "hidden/Relu:0")
    step = fetching_in_end("OfStep", "global_step:0")
    logging = train.LoggingTensorHook(["loss:0"], at_end=True)
    run_loop(hook_loops.keras_model(keras2), loss, hidden, step, logging, data=DATA)
    assert loss.at_end == loss.last
    assert step.at_end == step.last + 1  # no tensor of the step: fetched anew
    said = "\n".join(m for m in caplog.messages if "`end` of" in m)
    for kind in ("OfLoss", "OfLayer", "LoggingTensorHook"):
        with subtests.test(str(kind)):
            assert f"`end` of {kind}" in said
    assert "OfStep" not in said and "'loss'" in said and "last step" in said
    (report,) = hb.explain(loss, host="fit").guests
    (end,) = [e for e in report.events if e.event == "end"]
    assert "last step" in end.when


@pytest.mark.parametrize("loop", ["fit", "evaluate", "predict"])
def test_final_ops_go_by_names_that_nobody_else_fetches(keras: Any, loop: str) -> None:
    names = {"layer": "hidden/Relu:0", "step": b"global_step:0"}
    final = train.FinalOpsHook(names)
    in_begin = hb.in_begin(lambda: train.FinalOpsHook("hidden/Relu:0"))
    unknown = train.FinalOpsHook("nosuch:0")
    last = Fetch("hidden/Relu:0")
    model = hook_loops.keras_model(keras)
    run_loop(model, final, in_begin, loop=loop, data=DATA)
    values = final.final_ops_values
    assert values["layer"].shape == (hook_loops.BATCH, 8)
    assert values["step"] == (hook_loops.BATCHES if loop == "fit" else 0)
    np.testing.assert_array_equal(in_begin.final_ops_values, values["layer"])
    with pytest.raises(errors.UnknownTensorError, match="nosuch"):
        run_loop(model, last, unknown, loop=loop, data=DATA)
    assert len(last.seen) == hook_loops.BATCHES  # in `end`, as in a session


def test_what_no_step_has_returned_is_refused_with_the_way_out(keras: Any) -> None:
    name = "hidden/Relu:0"
    late = hook_of(end=lambda self, session: session.run(name))
    with pytest.raises(errors.LiveSessionError, match=r"in `begin`, `.*hidden/Relu:0"):
        run_loop(hook_loops.keras_model(keras), late, data=DATA)


def test_a_stop_before_the_first_step(tmp_path: Path, keras: Any) -> None:
    """As in a session: no step, and the checkpoint of step 0 alone."""
    found = []
    for loop in ("session", "fit"):
        steps: list[int] = []
        done = hook_of(
            after_create_session=lambda self, session, coord: coord.request_stop(),
            after_run=lambda self, context, values, steps=steps: steps.append(1),
        )
        saver = train.CheckpointSaverHook(str(tmp_path / loop), save_steps=100)
        if loop == "session":
            hook_loops.in_session([done, saver])
        else:
            model, _ = hook_loops.in_fit(keras, [done, saver])
            np.testing.assert_array_equal(
                model.get_weights()[0], hook_loops.WEIGHTS["hidden/kernel"]
            )
        saved = tf.train.latest_checkpoint(tmp_path / loop)
        found.append((steps, tf.train.load_variable(saved, "global_step")))
    assert found == [([], 0), ([], 0)]


def rates_read() -> Any:
    """Reads the rate in its steps, between them and at both ends."""

    def read(self: Any, session: Any, *_: Any) -> None:
        self.seen.append(float(session.run("learning_rate:0")))

    def after_run(self: Any, context: Any, values: Any) -> None:
        self.seen.append(float(values.results))
        read(self, context.session)

    hook = hook_of(
        after_create_session=read,
        before_run=lambda self, c: train.SessionRunArgs("learning_rate:0"),
        after_run=after_run,
        end=read,
    )
    hook.seen = []
    return hook


def test_a_scheduled_rate_outside_a_step_is_that_of_the_next_step(
    keras: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a session, where the global step has moved."""
    steps, batch = 4, 8
    x = np.ones((steps * batch, 4), "float32")
    of_fit, of_session = rates_read(), rates_read()
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model.compile(keras.optimizers.SGD(rate), "mse")
    logged = train.LoggingTensorHook(["learning_rate:0"], at_end=True)
    with caplog.at_level("INFO"):
        model.fit(
            x, x[:, :1], batch, callbacks=hb.as_callbacks([of_fit, logged]), verbose=0
        )
    assert "learning_rate:0 = 0.00625" in caplog.messages
    assert "values of the last step" not in caplog.text
    with tf.Graph().as_default():
        step = train.get_or_create_global_step()
        decay = train.exponential_decay(0.1, step, 1, 0.5)
        tf.identity(decay, name="learning_rate")
        move = tf.compat.v1.assign_add(step, 1)
        with train.MonitoredSession(hooks=[of_session]) as session:
            for _ in range(steps):
                session.run(move)
    # A session may read the rate of its own step after the step has moved.
    assert of_fit.seen[::2] == pytest.approx(of_session.seen[::2])
    assert of_fit.seen == pytest.approx(
        [0.1, 0.1, 0.05, 0.05, 0.025, 0.025, 0.0125, 0.0125, 0.00625, 0.00625]
    )


@pytest.mark.parametrize("eagerly", [False, True])
def test_the_batch_has_the_same_names_in_each_loop(keras: Any, eagerly: bool) -> None:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=eagerly)
    x = np.arange(32, dtype="float32").reshape(8, 4)
    y, weights = x[:, :1], x[:, 1]
    for loop, data, names in (
        ("fit", (x, y, weights), ("x", "y", "sample_weight")),
        ("evaluate", (x, y), ("x", "y")),
        ("predict", (x,), ("x",)),
    ):
        hook = Fetch(*(f"batch/{name}:0" for name in names))
        options: Any = {"sample_weight": weights} if loop == "fit" else {}
        run_loop(model, hook, loop=loop, data=data[:2], **options)
        for value, expected in zip(hook.seen[0], data, strict=True):
            np.testing.assert_array_equal(value, expected)


def test_the_inputs_of_a_batch_have_names(keras: Any) -> None:
    first, second = (keras.layers.Input((2,), name=name) for name in "ab")
    output = keras.layers.Dense(1)(keras.layers.concatenate([first, second]))
    model = keras.Model([first, second], output)
    model.compile("sgd", "mse")
    x, y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")
    for data, names in (([x, 2 * x], "01"), ({"a": x, "b": 2 * x}, "ab")):
        hook = Fetch(*(f"batch/x/{name}:0" for name in names))
        run_loop(model, hook, data=(data, y))
        np.testing.assert_array_equal(hook.seen[0], [x, 2 * x])

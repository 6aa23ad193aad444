"""Stock hooks and users' hooks: the session loop and `fit` show the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_hosts as hosts
import numpy as np
import pytest
import tensorflow as tf

from hookbridge import errors

v1: Any = tf.compat.v1
train: Any = v1.train
NAMES = ("loss:0", "hidden/Relu:0", "learning_rate:0")


class Watcher(train.SessionRunHook):  # type: ignore[misc]
    """Looks tensors up by name in `begin` and fetches them in each step."""

    def __init__(self, *names: str) -> None:
        self.names = names or NAMES

    def begin(self) -> None:
        self.events = ["begin"]
        self.seen: list[dict[str, Any]] = []
        graph = v1.get_default_graph()
        self.tensors = {name: graph.get_tensor_by_name(name) for name in self.names}

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.events.append("after_create_session")

    def before_run(self, run_context: Any) -> Any:
        self.events.append("before_run")
        return train.SessionRunArgs(self.tensors)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.events.append("after_run")
        self.seen.append(run_values.results)

    def end(self, session: Any) -> None:
        self.events.append("end")


def test_fetched_values_and_events_are_those_of_the_session_loop(keras: Any) -> None:
    native, bridged = Watcher(), Watcher()
    stop = [train.StopAtStepHook(last_step=hosts.STEPS) for _ in range(2)]
    hosts.in_session([native, stop[0]])
    hosts.in_fit(keras, [bridged, stop[1]])
    assert bridged.events == native.events
    assert len(bridged.seen) == hosts.STEPS
    for ours, theirs in zip(bridged.seen, native.seen, strict=True):
        assert list(ours) == list(theirs)
        for name in NAMES:
            assert type(ours[name]) is type(theirs[name])
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["steps", "secs", "end_only"])
def test_logging_tensor_hook_logs_the_same_lines(keras: Any, kind: str) -> None:
    def hook() -> Any:
        names = {"loss": "loss:0", "rate": "learning_rate:0"}
        if kind == "steps":
            return train.LoggingTensorHook(names, every_n_iter=5)
        if kind == "secs":
            return train.LoggingTensorHook(["loss:0"], every_n_secs=1000)
        return train.LoggingTensorHook(names, at_end=True)

    logs = []
    for host in (lambda h: hosts.in_session(h), lambda h: hosts.in_fit(keras, h)):
        stop = train.StopAtStepHook(last_step=hosts.STEPS - 1)
        with hosts.tf_log() as lines:
            host([hook(), stop])
        logs.append([rounded(line) for line in lines if "loss" in line])
    assert logs[1]
    if kind == "end_only":
        # At the end a session computes `loss` of the next batch, `fit` of the last one.
        logs = [[line.partition("loss")[0] for line in part] for part in logs]
    assert logs[1] == logs[0]


def rounded(line: str) -> str:
    import re

    return re.sub(r"\d+\.\d+", lambda m: f"{float(m[0]):.3f}", line)


def test_logging_tensor_hook_with_a_formatter(keras: Any) -> None:
    found: list[dict[str, Any]] = []

    def formatter(values: dict[str, Any]) -> str:
        found.append(values)
        return f"formatted {sorted(values)}"

    hook = train.LoggingTensorHook(["loss:0"], every_n_iter=4, formatter=formatter)
    with hosts.tf_log() as lines:
        hosts.in_fit(keras, [hook])
    assert lines.count("formatted ['loss:0']") == 3 == len(found)


@pytest.mark.parametrize("stop", [{"num_steps": 5}, {"last_step": 7}])
def test_stop_at_step_stops_at_the_same_step(keras: Any, stop: dict[str, int]) -> None:
    native, bridged = Watcher("loss:0"), Watcher("loss:0")
    runs = hosts.in_session([native, train.StopAtStepHook(**stop)])
    _, history = hosts.in_fit(keras, [bridged, train.StopAtStepHook(**stop)])
    assert bridged.events == native.events
    assert len(bridged.seen) == runs == next(iter(stop.values()))
    assert len(history.history["loss"]) == 2  # the epoch it stopped in still ends


def test_nan_tensor_hook_raises_or_stops(keras: Any) -> None:
    def diverging() -> Any:
        model = hosts.keras_model(keras)
        model.optimizer.learning_rate.assign(1e30)
        return model

    stopped = Watcher("loss:0")
    hosts.in_fit(
        keras,
        [stopped, train.NanTensorHook("loss:0", fail_on_nan_loss=False)],
        model=diverging(),
    )
    assert np.isnan(stopped.seen[-1]["loss:0"])
    assert len(stopped.seen) < hosts.STEPS
    assert stopped.events[-1] == "end"
    failed = Watcher("loss:0")
    with pytest.raises(train.NanLossDuringTrainingError):
        hosts.in_fit(keras, [failed, train.NanTensorHook("loss:0")], model=diverging())
    assert "end" not in failed.events
    assert len(failed.seen) == len(stopped.seen)


def test_final_ops_hook(keras: Any) -> None:
    class Maker(train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            final.ops = train.get_global_step() * 2

    class Final(train.SessionRunHook):  # type: ignore[misc]
        ops: Any

        def begin(self) -> None:
            self.hook = train.FinalOpsHook(self.ops)

        def end(self, session: Any) -> None:
            self.hook.end(session)

    final = Final()
    hosts.in_fit(keras, [Maker(), final])
    assert final.hook.final_ops_values == 2 * hosts.STEPS


def test_feed_fn_hook(keras: Any) -> None:
    class Fed(train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.value = v1.placeholder(tf.float32, [2], name="mine")
            self.sum = tf.reduce_sum(self.value)
            self.seen: list[float] = []

        def before_run(self, run_context: Any) -> Any:
            return train.SessionRunArgs(self.sum)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.seen.append(float(run_values.results))

    fed = Fed()
    feeder = train.FeedFnHook(lambda: {"mine:0": [len(fed.seen), 1]})
    hosts.in_fit(keras, [fed, feeder])
    assert fed.seen == [i + 1 for i in range(hosts.STEPS)]


def test_global_step_waiter_passes_and_is_refused_where_it_would_hang(
    keras: Any,
) -> None:
    hosts.in_fit(keras, [train.GlobalStepWaiterHook(wait_until_step=0)])
    watcher = Watcher("loss:0")
    with pytest.raises(errors.RefusedError, match=r"GlobalStepWaiterHook.*for ever"):
        hosts.in_fit(keras, [watcher, train.GlobalStepWaiterHook(wait_until_step=5)])


def test_variables_of_a_hook_live_through_the_run(keras: Any) -> None:
    class Counter(train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.count = v1.get_variable("count", [], initializer=v1.ones_initializer())
            self.more = self.count.assign_add(2.0)

        def before_run(self, run_context: Any) -> Any:
            return train.SessionRunArgs(self.more)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            assert run_context.session.run(self.count) == run_values.results

        def end(self, session: Any) -> None:
            self.final = float(session.run(self.count))

    counter = Counter()
    for _ in range(2):  # a second fit starts from the initializer again
        hosts.in_fit(keras, [counter])
        assert counter.final == 1 + 2 * hosts.STEPS


def test_the_same_hook_object_in_a_second_fit_goes_on(keras: Any) -> None:
    hook, model = Watcher("loss:0"), hosts.keras_model(keras)
    first: list[float] = []
    for _ in range(2):
        hosts.in_fit(keras, [hook], model=model, epochs=1)
        first += [s["loss:0"] for s in hook.seen]
    whole = Watcher("loss:0")
    hosts.in_fit(keras, [whole], epochs=2)
    np.testing.assert_allclose(first, [s["loss:0"] for s in whole.seen], rtol=1e-5)


def test_an_early_stopping_hook_of_an_estimator_stops_fit(
    keras: Any, tmp_path: Path
) -> None:
    import hookbridge as hb

    estimator = hb.estimator.Estimator(lambda features, mode: None, str(tmp_path))
    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        return len(asked) == 2

    hook = hb.estimator.experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=3
    )
    watcher = Watcher("loss:0")
    hosts.in_fit(keras, [watcher, hook])
    assert len(asked) == 2
    assert len(watcher.seen) < hosts.STEPS
    assert watcher.events[-1] == "end"

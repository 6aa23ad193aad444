"""Checkpoints, summaries and timelines: what hooks write in `fit` is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_hosts as hosts
import numpy as np
import pytest
import tensorflow as tf

from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
train: Any = v1.train


class RateFeeder(train.SessionRunHook):  # type: ignore[misc]
    """A common hook: finds `learning_rate:0` and feeds it in each step."""

    def begin(self) -> None:
        self.rate = v1.get_default_graph().get_tensor_by_name("learning_rate:0")
        self.steps = 0

    def before_run(self, run_context: Any) -> Any:
        self.steps += 1
        rate = 0.3 / self.steps
        return train.SessionRunArgs(self.rate, feed_dict={self.rate: rate})


def test_the_fed_learning_rate_is_the_one_the_step_uses(
    keras: Any, tmp_path: Path
) -> None:
    native, bridged = str(tmp_path / "native"), str(tmp_path / "bridged")
    hosts.in_session([RateFeeder(), train.CheckpointSaverHook(native, save_steps=1)])
    model, _ = hosts.in_fit(
        keras, [RateFeeder(), train.CheckpointSaverHook(bridged, save_steps=1)]
    )
    assert_same_checkpoints(native, bridged)
    rate = float(np.asarray(model.optimizer.learning_rate))
    assert rate == pytest.approx(hosts.RATE)  # fed for a step, not set


def assert_same_checkpoints(native: str, bridged: str) -> None:
    paths = tf.train.get_checkpoint_state(native).all_model_checkpoint_paths
    ours = tf.train.get_checkpoint_state(bridged).all_model_checkpoint_paths
    assert [Path(p).name for p in ours] == [Path(p).name for p in paths]
    for path, our in zip(paths, ours, strict=True):
        expected, found = hosts.read_checkpoint(path), hosts.read_checkpoint(our)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)


class Listener(train.CheckpointSaverListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.calls: list[tuple[str, int | None]] = []

    def begin(self) -> None:
        self.calls.append(("begin", None))

    def before_save(self, session: Any, global_step_value: Any) -> None:
        self.calls.append(("before_save", int(global_step_value)))

    def after_save(self, session: Any, global_step_value: Any) -> None:
        self.calls.append(("after_save", int(global_step_value)))

    def end(self, session: Any, global_step_value: Any) -> None:
        self.calls.append(("end", int(global_step_value)))


def test_checkpoint_saver_writes_the_same_checkpoints(
    keras: Any, tmp_path: Path
) -> None:
    native, bridged = str(tmp_path / "native"), str(tmp_path / "bridged")
    listeners = [Listener(), Listener()]
    hosts.in_session(
        [train.CheckpointSaverHook(native, save_steps=5, listeners=listeners[:1])]
    )
    hosts.in_fit(
        keras,
        [train.CheckpointSaverHook(bridged, save_steps=5, listeners=listeners[1:])],
    )
    assert_same_checkpoints(native, bridged)
    assert listeners[1].calls == listeners[0].calls
    assert (tmp_path / "bridged" / "graph.pbtxt").exists()


def test_a_checkpoint_of_fit_restores_in_a_v1_graph(keras: Any, tmp_path: Path) -> None:
    model, _ = hosts.in_fit(
        keras, [train.CheckpointSaverHook(str(tmp_path), save_steps=100)]
    )
    path = tf.train.latest_checkpoint(str(tmp_path))
    stored = {hosts.short(n): n for n, _ in tf.train.list_variables(path)}
    with tf.Graph().as_default(), v1.Session() as session:
        hosts.build_graph()
        variables = {
            stored[v.op.name]: v for v in v1.global_variables() if v.op.name in stored
        }
        v1.train.Saver(variables).restore(session, path)
        restored = {n: session.run(v) for n, v in variables.items()}
    weights = dict(zip(hosts.WEIGHTS, model.get_weights(), strict=True))
    for name, value in weights.items():
        np.testing.assert_array_equal(restored[stored[name]], value)
    assert restored["global_step"] == hosts.STEPS


@pytest.mark.parametrize("save_secs", [0.0001])
def test_checkpoint_saver_by_seconds(
    keras: Any, tmp_path: Path, save_secs: float
) -> None:
    hosts.in_fit(keras, [train.CheckpointSaverHook(str(tmp_path), save_secs=save_secs)])
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path.endswith(f"-{hosts.STEPS}")
    assert len(state.all_model_checkpoint_paths) == 5  # the Saver keeps five


def test_a_users_saver_and_scaffold(keras: Any, tmp_path: Path) -> None:
    class OwnSaver(train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.saver = train.Saver(v1.trainable_variables(), max_to_keep=2)

        def end(self, session: Any) -> None:
            self.path = self.saver.save(session, str(tmp_path / "own"))

    own = OwnSaver()
    scaffold = train.Scaffold()
    _, _ = hosts.in_fit(
        keras,
        [
            own,
            train.CheckpointSaverHook(
                str(tmp_path / "scaffold"), save_steps=6, scaffold=scaffold
            ),
        ],
    )
    names = {hosts.short(name) for name, _ in tf.train.list_variables(own.path)}
    assert names == set(hosts.WEIGHTS)
    assert hosts.read_checkpoint(tf.train.latest_checkpoint(str(tmp_path / "scaffold")))
    assert scaffold.saver is not None


def test_step_counter_writes_the_same_tags_and_steps(
    keras: Any, tmp_path: Path
) -> None:
    for name in ("native", "bridged"):
        (tmp_path / name).mkdir()

    def hook(name: str) -> Any:
        return train.StepCounterHook(every_n_steps=5, output_dir=str(tmp_path / name))

    hosts.in_session([hook("native")])
    hosts.in_fit(keras, [hook("bridged")])
    native = hosts.read_scalars(tmp_path / "native")
    bridged = hosts.read_scalars(tmp_path / "bridged")
    assert [(s, t) for s, t, _ in bridged] == [(s, t) for s, t, _ in native]
    assert bridged and all(t == "global_step/sec" for _, t, _ in bridged)


class Summaries(train.SessionRunHook):  # type: ignore[misc]
    """Makes a summary of a step tensor in `begin`."""

    def begin(self) -> None:
        loss = v1.get_default_graph().get_tensor_by_name("loss:0")
        v1.summary.scalar("twice_the_loss", loss * 2)


def test_summary_saver_writes_the_same_summaries(keras: Any, tmp_path: Path) -> None:
    def hooks(name: str) -> list[Any]:
        scaffold = train.Scaffold()
        saver = train.SummarySaverHook(
            save_steps=4, output_dir=str(tmp_path / name), scaffold=scaffold
        )
        return [Summaries(), saver]

    with tf.Graph().as_default():
        train_op = hosts.build_graph()
        native = hooks("native")
        with train.MonitoredTrainingSession(
            hooks=native, scaffold=native[1]._scaffold, log_step_count_steps=0
        ) as session:
            while not session.should_stop():
                session.run(train_op)
    hosts.in_fit(keras, hooks("bridged"))
    native_values = hosts.read_scalars(tmp_path / "native")
    bridged_values = hosts.read_scalars(tmp_path / "bridged")
    assert [v[:2] for v in bridged_values] == [v[:2] for v in native_values]
    np.testing.assert_allclose(
        [v[2] for v in bridged_values], [v[2] for v in native_values], rtol=1e-4
    )


def test_profiler_hook_writes_timelines_that_open(keras: Any, tmp_path: Path) -> None:
    import json

    # TensorFlow cannot make its writer while eager execution is on.
    with tf.Graph().as_default():
        hook = train.ProfilerHook(save_steps=4, output_dir=str(tmp_path))
    hosts.in_fit(keras, [hook])
    timelines = sorted(tmp_path.glob("timeline-*.json"))
    assert len(timelines) == 3
    for path in timelines:
        events = json.loads(path.read_text())["traceEvents"]
        assert any("MatMul" in str(event) for event in events)


@pytest.mark.parametrize("kind", ["checkpoints", "summaries"])
def test_a_directory_that_cannot_be_written_is_refused_before_the_first_step(
    keras: Any, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    directory = str(tmp_path / "file" / "run")
    hook = (
        train.CheckpointSaverHook(directory, save_steps=1)
        if kind == "checkpoints"
        else train.StepCounterHook(output_dir=directory)
    )
    model = hosts.keras_model(keras)
    before = model.get_weights()
    with pytest.raises(errors.UnwritableError, match=type(hook).__name__):
        hosts.in_fit(keras, [hook], model=model)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])

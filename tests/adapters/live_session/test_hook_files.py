"""Checkpoints of `fit`: its savers and scaffolds are those of a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hook_loops
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import X, Y, hook_of, sequential

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
train: Any = v1.train


def test_the_files_of_savers(keras: Any, tmp_path: Path) -> None:
    by_steps, by_seconds = tmp_path / "steps", tmp_path / "seconds"
    savers = [
        train.CheckpointSaverHook(str(by_steps), save_steps=100),
        train.CheckpointSaverHook(str(by_seconds), save_secs=0.0001),
    ]
    model, _ = hook_loops.in_fit(keras, savers)
    state = tf.train.get_checkpoint_state(str(by_seconds))
    assert state.model_checkpoint_path.endswith(f"-{hook_loops.STEPS}")
    assert len(state.all_model_checkpoint_paths) == 5  # the Saver keeps five
    assert (by_steps / "graph.pbtxt").exists()
    found = hook_loops.read_checkpoint(tf.train.latest_checkpoint(str(by_steps)))
    assert found.pop("global_step") == hook_loops.STEPS
    for name, weight in zip(hook_loops.WEIGHTS, model.get_weights(), strict=True):
        np.testing.assert_array_equal(found[name], weight)


def test_a_directory_that_cannot_be_written_is_refused_before_the_first_step(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    directory = str(tmp_path / "file" / "run")
    model = hook_loops.keras_model(keras)
    before = model.get_weights()
    for hook in (
        train.CheckpointSaverHook(directory, save_steps=1),
        train.StepCounterHook(output_dir=directory),
    ):
        with subtests.test(str(hook)):
            with pytest.raises(errors.UnwritableError, match=type(hook).__name__):
                hook_loops.in_fit(keras, [hook], model=model)
            np.testing.assert_array_equal(model.get_weights()[0], before[0])


def fit(model: Any, *hooks: Any) -> None:
    callbacks = hb.as_callbacks([*hooks])
    model.fit(X, Y, batch_size=16, shuffle=False, verbose=0, callbacks=callbacks)


def test_it_is_used_by_hand_as_that_of_a_scaffold(keras: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "by-hand")

    def save(self: Any, session: Any, coord: Any) -> None:
        (self.saver,) = v1.get_collection(v1.GraphKeys.SAVERS)
        self.saver.save(session, path)

    model = sequential(keras)
    hook = hook_of(
        after_create_session=save,
        end=lambda self, session: self.saver.restore(session, path),
    )
    weights = model.get_weights()
    fit(model, hook)
    for one, other in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    with tf.Graph().as_default():
        v1.get_variable("x", [], use_resource=True)
        native = train.Scaffold().finalize().saver
    assert hook.saver.saver_def == native.saver_def
    assert hook.saver.as_saver_def() == native.as_saver_def()


def own_variable(self: Any) -> None:
    v1.get_variable("own", initializer=3.0, use_resource=True)


def test_checkpoints_are_those_of_the_ops(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    """If a hook looks at variables, or makes one, the saver is an ordinary one."""
    found = []
    weights = sequential(keras).get_weights()
    for i, others in enumerate(([], [own_variable], [lambda _: v1.global_variables()])):
        with subtests.test(str(i)):
            keras.backend.clear_session()  # layers have the same names each time
            model = sequential(keras)
            model.set_weights(weights)
            saver = train.CheckpointSaverHook(str(tmp_path / str(i)), save_steps=2)
            fit(model, saver, *(hook_of(begin=begin) for begin in others))
            assert sorted(p.name for p in (tmp_path / str(i)).glob("model.ckpt*")) == [
                f"model.ckpt-{step}.{end}"
                for step in (0, 2)
                for end in ("data-00000-of-00001", "index", "meta")
            ]
            reader = tf.train.load_checkpoint(str(tmp_path / str(i) / "model.ckpt-2"))
            names = reader.get_variable_to_shape_map()
            found.append({name: reader.get_tensor(name) for name in names})
    assert found[1].pop("own") == 3.0
    for other in found[1:]:
        assert other.keys() == found[0].keys() >= {"global_step"}
        for name, value in found[0].items():
            np.testing.assert_allclose(other[name], value, rtol=1e-5, err_msg=name)


def test_a_saver_of_a_hook_comes_first(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    """The hook makes it in `begin`, in the collection of savers or in a scaffold."""

    class Own(train.CheckpointSaverHook):  # type: ignore[misc]
        def begin(self) -> None:
            saver = v1.train.Saver(max_to_keep=1)
            if step == 4:
                self._scaffold = train.Scaffold(saver=saver)
            else:
                v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
            super().begin()

    model = sequential(keras)
    for step in (2, 4):
        with subtests.test(str(step)):
            fit(model, Own(str(tmp_path / str(step)), save_steps=1))
            files = [p.stem for p in tmp_path.glob(f"{step}/*.index")]
            assert files == [f"model.ckpt-{step}"]


def test_a_hook_goes_on_saving_in_its_next_fit(keras: Any, tmp_path: Path) -> None:
    """It keeps the saver of its first fit."""
    model = sequential(keras)
    hook = train.CheckpointSaverHook(str(tmp_path), save_steps=2)
    for _ in range(2):
        fit(model, hook)
    path = train.latest_checkpoint(str(tmp_path))
    reader = tf.train.load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    saved = [reader.get_tensor(name) for name in shapes if name.endswith("kernel")]
    kernel = np.asarray(model.trainable_weights[0])
    assert any(np.array_equal(kernel, other) for other in saved)
    assert path.endswith("-4")


class Filling(train.CheckpointSaverHook):  # type: ignore[misc]
    """The stock hook; fills its scaffold with ops in `begin`, and may fail once."""

    def __init__(
        self,
        directory: Path,
        fill: Callable[[Filling], dict[str, Any]],
        error: Exception | None = None,
    ) -> None:
        self.called: list[str] = []
        self.fill, self.error = fill, error
        super().__init__(str(directory), save_steps=4, scaffold=train.Scaffold())

    def begin(self) -> None:
        initial = self.placeholder = v1.placeholder(tf.float32, [], name="initial")
        self.variable = v1.get_variable("mine", initializer=initial)
        self._scaffold.__init__(**self.fill(self))
        super().begin()

    def init_fn(self, scaffold: Any, session: Any) -> None:
        assert scaffold is self._scaffold
        self.called.append(f"init_fn {session.run(self.variable)}")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.called.append(f"session {session.run(self.variable)}")
        super().after_create_session(session, coord)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        super().after_run(run_context, run_values)
        if self.error is not None:
            error, self.error = self.error, None
            raise error


def feed(hook: Filling) -> dict[Any, float]:
    return {hook.placeholder: 2.0}


def filled(hook: Filling) -> dict[str, Any]:
    return {
        "init_feed_dict": feed(hook),
        "init_fn": hook.init_fn,
        "local_init_op": v1.assign_add(hook.variable, 1.0).op,
        "ready_op": v1.report_uninitialized_variables([hook.variable]),
    }


def in_session(hook: Filling) -> None:
    with tf.Graph().as_default():
        move = v1.assign_add(train.get_or_create_global_step(), 1)
        creator = train.ChiefSessionCreator(hook._scaffold)
        with train.MonitoredSession(creator, hooks=[hook]) as session:
            session.run(move)


def test_a_scaffold_prepares_the_session(keras: Any, tmp_path: Path) -> None:
    native = Filling(tmp_path / "native", filled)
    in_session(native)
    assert native.called == ["init_fn 2.0", "session 3.0"]
    hook = Filling(tmp_path, filled, tf.errors.AbortedError(None, None, "lost"))
    fit(sequential(keras), hook)
    # `init_fn` is not for the recovered session: it may load weights, but by then the
    # model has better ones.
    assert hook.called == [*native.called, "session 3.0"]


def test_a_model_that_is_not_ready_is_an_error(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    def never(hook: Filling) -> dict[str, Any]:
        return {"init_feed_dict": feed(hook), "ready_op": tf.constant([b"mine"])}

    for run in (in_session, lambda hook: fit(sequential(keras), hook)):
        with subtests.test(str(run)):
            with pytest.raises(RuntimeError, match=r"(?s)not make model ready.*mine"):
                run(Filling(tmp_path, never))

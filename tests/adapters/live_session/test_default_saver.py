"""The saver of a fit equals the one that a `Scaffold` makes, but has no ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import X, Y, sequential

import hookbridge as hb

ONE_KERAS = True


v1: Any = tf.compat.v1
train: Any = v1.train


class Saving(train.SessionRunHook):  # type: ignore[misc]
    """Uses the saver of the run by hand."""

    def __init__(self, path: str, is_before: bool = True) -> None:
        self.path, self.is_before = path, is_before

    def after_create_session(self, session: Any, coord: Any) -> None:
        (self.saver,) = v1.get_collection(v1.GraphKeys.SAVERS)
        self.graph = session.graph
        if self.is_before:
            self.saver.save(session, self.path)

    def end(self, session: Any) -> None:
        self.names = {op.name for op in self.graph.get_operations()}
        self.saver.restore(session, self.path)
        self.after = {op.name for op in self.graph.get_operations()}


def fit(model: Any, *hooks: Any) -> None:
    callbacks = hb.as_callbacks([*hooks])
    model.fit(X, Y, batch_size=16, shuffle=False, verbose=0, callbacks=callbacks)


def native_saver() -> Any:
    """What a `Scaffold` makes."""
    with tf.Graph().as_default() as graph:
        v1.get_variable("x", [], use_resource=True)
        scaffold = train.Scaffold().finalize()
        names = {op.name for op in graph.get_operations()}
    return scaffold.saver, names


def test_it_names_its_ops_as_the_scaffold_does(keras: Any, tmp_path: Path) -> None:
    hook = Saving(str(tmp_path / "by-hand"))
    fit(sequential(keras), hook)
    native, names = native_saver()
    assert hook.saver.saver_def == native.saver_def
    assert hook.saver.as_saver_def() == native.as_saver_def()
    assert not any(name.startswith("save/") for name in hook.names)
    of_saver = {name for name in names if name.startswith("save/")}
    assert of_saver <= hook.after


def test_restore_brings_back_what_was_saved(keras: Any, tmp_path: Path) -> None:
    model = sequential(keras)
    before = model.get_weights()
    fit(model, Saving(str(tmp_path / "by-hand")))
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_checkpoints_are_those_of_the_ops(keras: Any, tmp_path: Path) -> None:
    """If a hook looks at variables, or makes one, the saver is an ordinary one."""

    class Own(train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            v1.get_variable("own", initializer=3.0, use_resource=True)

    class Listing(train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.all = v1.global_variables()

    found = []
    weights = sequential(keras).get_weights()
    for i, others in enumerate(([], [Own()], [Listing()])):
        keras.backend.clear_session()  # layers have the same names each time
        model = sequential(keras)
        model.set_weights(weights)
        saver = train.CheckpointSaverHook(str(tmp_path / str(i)), save_steps=2)
        fit(model, saver, *others)
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


@pytest.mark.parametrize("scaffold", [False, True])
def test_a_saver_of_a_hook_comes_first(
    keras: Any, tmp_path: Path, scaffold: bool
) -> None:
    """The hook makes it in `begin`, in the collection of savers or in a scaffold."""

    class Two(train.CheckpointSaverHook):  # type: ignore[misc]
        def begin(self) -> None:
            saver = v1.train.Saver(max_to_keep=1)
            if scaffold:
                self._scaffold = train.Scaffold(saver=saver)
            else:
                v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
            super().begin()

    fit(sequential(keras), Two(str(tmp_path), save_steps=1))
    assert [p.stem for p in tmp_path.glob("*.index")] == ["model.ckpt-2"]


def test_a_hook_goes_on_saving_in_its_next_fit(keras: Any, tmp_path: Path) -> None:
    """It keeps the saver of its first fit."""

    class Naming(train.SessionRunHook):  # type: ignore[misc]
        def end(self, session: Any) -> None:
            self.nodes = [node.name for node in session.graph.as_graph_def().node]

    model, naming = sequential(keras), Naming()
    hook = train.CheckpointSaverHook(str(tmp_path), save_steps=2)
    for _ in range(2):
        fit(model, hook, naming)
    path = train.latest_checkpoint(str(tmp_path))
    kernel = np.asarray(model.trainable_weights[0])
    reader = tf.train.load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    saved = [reader.get_tensor(name) for name in shapes if name.endswith("kernel")]
    assert any(np.array_equal(kernel, other) for other in saved)
    assert path.endswith("-4") and not any("kernel" in n for n in naming.nodes)

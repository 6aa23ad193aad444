"""The restored package: what it sees, what it leaves unchanged, what it needs."""

from __future__ import annotations

import builtins
import functools
import importlib.metadata
import importlib.util
import sys
import types
from typing import Any

import estimator_package_scan
import pytest
from fork_server import ForkServer
from restored_estimator import only_restored, run_forked

import hookbridge as hb
from hookbridge import errors
from hookbridge.estimator import needs, restored_package, stand_ins, view
from hookbridge.estimator.facade import Facade
from hookbridge.ground import compat


@pytest.mark.slow
@only_restored
def test_tensorflow_and_keras_3_are_left_as_they_were(fork_server: ForkServer) -> None:
    changed = run_forked(
        fork_server,
        """
        import sys
        import tensorflow as tf
        # Its `import tensorflow.compat.v2 as tf` replaces attributes such as
        # `tf.compat` in TensorFlow, as every such statement does.
        import tf_keras
        from tensorflow.python.util import deprecation, tf_export

        train = tf.compat.v1.train
        plain = [tf_export, deprecation, train.SessionRunHook, train.LoggingTensorHook]
        public = [tf, tf.compat.v1, tf.compat.v2]

        def value(owner, name):
            try:
                return id(getattr(owner, name))
            except Exception as e:  # compat.v1 has names that Keras 3 lacks
                return type(e).__name__

        def state():
            found = {(i, key): id(value) for i, owner in enumerate(plain)
                     for key, value in vars(owner).items()}
            return found | {(owner.__name__, key): value(owner, key)
                            for owner in public for key in dir(owner)
                            if key[0] != "_"}

        state()  # loads what TensorFlow loads on first use
        before = state()
        import hookbridge as hb
        assert hb.estimator.Estimator and hb.estimator.v1.Estimator
        after = state()
        modules = {name for name in sys.modules if name.startswith("tensorflow.")}
        gone = {"tensorflow.python.distribute.estimator_training",
                "tensorflow.python.tpu.tpu_embedding"}
        print(len(before) > 1000, before == after, modules & gone,
              hasattr(tf, "estimator"), tf.keras.__version__[0])
        """,
    )
    assert changed == "True True set() False 3"


@only_restored
def test_without_the_extra_the_error_says_what_to_install(
    subtests: pytest.Subtests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = importlib.util.find_spec
    installs = {
        "tensorflow_estimator": r'pip install "tf-hookbridge\[estimator\]"',
        "tf_keras": r'pip install --no-deps "tf_keras==\d+\.\d+\.\*"',
    }
    for missing, install in installs.items():
        with subtests.test(str(missing)):
            restored_package.namespaces.cache_clear()
            with monkeypatch.context() as patch:
                patch.setattr(
                    importlib.util,
                    "find_spec",
                    lambda name, *rest, out=missing: (
                        None if name == out else real(name, *rest)
                    ),
                )
                with pytest.raises(errors.MissingExtraError, match=install):
                    hb.estimator.Estimator  # noqa: B018
    with monkeypatch.context() as patch:  # another release
        patch.setattr(importlib.metadata, "version", lambda name: "2.14.0")
        with pytest.raises(
            errors.MissingExtraError, match=r"2\.14\.0; expected 2\.15\.0"
        ):
            hb.estimator.RunConfig  # noqa: B018
    assert hb.estimator.Estimator


@pytest.mark.slow
@only_restored
def test_package_imported_too_early_by_a_shim_says_so(fork_server: ForkServer) -> None:
    message = run_forked(
        fork_server,
        """
        import sys, types
        sys.modules["tensorflow_estimator"] = types.ModuleType("tensorflow_estimator")
        import hookbridge as hb
        try:
            hb.estimator.Estimator
        except hb.errors.ImportOrderError as e:
            print(e)
        """,
    )
    assert "before `hookbridge.estimator`" in message
    assert "hb.estimator.install()" in message


@only_restored
def test_moved_names_are_all_named_in_one_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(needs.NEEDS, "tensorflow.python.nowhere", "this")
    monkeypatch.setitem(needs.NEEDS, "tensorflow.python.framework.ops", "Graph gone")
    with pytest.raises(
        compat.PrivateNameMovedError,
        match=r"`tensorflow\.python\.framework\.ops\.gone`, "
        r"`tensorflow\.python\.nowhere\.this`, which TensorFlow",
    ):
        needs.check()


@pytest.mark.parametrize(
    "statement",
    [
        "from tensorflow.python.nowhere import this",
        "from tensorflow.python.framework import nowhere",
        "from tensorflow.python.framework.ops import nowhere",
    ],
)
def test_import_of_a_moved_name_names_it(statement: str) -> None:
    with pytest.raises(
        compat.PrivateNameMovedError, match=r"needs `tensorflow\.python\..*nowhere"
    ):
        exec(statement, {"__builtins__": view.view_builtins()})


def test_table_of_needed_names_is_the_package_s() -> None:
    found = estimator_package_scan.needs()
    assert {module: " ".join(names) for module, names in found.items()} == needs.NEEDS
    needs.check()


def in_view(name: str) -> Any:
    return functools.reduce(getattr, name.split("."), view.tensorflow_view())


@only_restored
def test_every_public_name_the_package_reads_is_in_its_view() -> None:
    tpu_only = {
        f"compat.v1.tpu.experimental.{name}Parameters"
        for name in ("Adagrad", "Adam", "Ftrl", "StochasticGradientDescent")
    }
    public = estimator_package_scan.scan()[1]
    assert len(public) > 200
    missing = set()
    for name in public:
        try:
            in_view(name)
        except AttributeError:
            missing.add(name)
    assert missing == tpu_only
    for name in view.KERAS_NAMES:
        assert in_view(name).__name__.startswith("tf_keras."), name


def test_facade_passes_changes_on_to_the_real_module() -> None:
    real: Any = types.ModuleType("real")
    real.relu, real.tanh = 1, 2
    facade = Facade(real, {"relu": lambda: "replaced"})
    assert (facade.relu, facade.tanh) == ("replaced", 2)
    facade.made_up, real.tanh = 1, "patched"
    assert real.made_up == 1 and facade.tanh == "patched"
    assert {"relu", "tanh", "made_up"} <= set(dir(facade))
    del facade.made_up
    assert not hasattr(real, "made_up") and not hasattr(facade, "made_up")


@only_restored
def test_stand_ins_are_still_needed() -> None:
    for name, row in stand_ins.STAND_INS.items():
        if row.is_removed:
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(name)
        else:
            real = importlib.import_module(name)
            assert not any(hasattr(real, missing) for missing in row.missing), name


@only_restored
def test_tpu_parts_that_are_gone_refuse_by_name() -> None:
    import tensorflow as tf

    with pytest.raises(errors.RefusedError, match=r"tpu_embedding\.AdagradParameters"):
        stand_ins.load("tensorflow.python.tpu.tpu_embedding").AdagradParameters(0.1)
    # Without a TPU the TPUEstimator works.
    tpu = hb.estimator.tpu
    assert tpu.TPUEstimator(
        lambda features, labels, mode, params: tf.no_op(),
        config=tpu.RunConfig(),
        use_tpu=False,
        train_batch_size=8,
    )


def test_everyone_else_imports_as_before() -> None:
    assert builtins.__import__ is not view.view_import
    assert importlib.util.find_spec("json") is not None
    assert restored_package.PackageFinder.find_spec("tensorflow") is None
    assert (
        restored_package.PackageFinder.find_spec("tensorflow_estimator_of_mine") is None
    )
    # Restoring twice changes nothing.
    first = restored_package.namespaces()
    before = dict(sys.modules), list(sys.meta_path)
    assert restored_package.namespaces() is first
    assert (dict(sys.modules), list(sys.meta_path)) == before
    assert sys.meta_path.count(restored_package.PackageFinder) <= 1


TRAIN_BOTH = """
    try:  # an import that fails does no harm
        import tensorflow_estimator
    except (ImportError, AttributeError):
        failed = True
    import numpy as np
    import tensorflow as tf
    import hookbridge as hb
    hb.estimator.install()
    import tensorflow_estimator
    assert failed
    assert tensorflow_estimator.estimator.Estimator is hb.estimator.v1.Estimator

    def fit():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        history = model.fit(np.ones([8, 2]), np.ones([8, 1]), verbose=0)
        return np.isfinite(history.history["loss"][0])

    def train():
        estimator = hb.estimator.DNNRegressor(
            [3], [tf.feature_column.numeric_column("x")]
        )
        data = lambda: tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [[2.0]])).repeat()
        estimator.train(data, steps=2)
        return estimator.evaluate(data, steps=1)["global_step"] == 2

    print(fit() and train() and fit() and train(), tf.keras.__name__.split(".")[0])
"""


@pytest.mark.slow
@only_restored
@pytest.mark.parametrize(("legacy", "name"), [("0", "keras"), ("1", "tf_keras")])
def test_estimators_and_models_of_tf_keras_take_turns_in_one_process(
    fork_server: ForkServer, legacy: str, name: str
) -> None:
    printed = run_forked(fork_server, TRAIN_BOTH, TF_USE_LEGACY_KERAS=legacy)
    assert printed == f"True {name}"

"""The names of `hb.estimator` and `install()`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import pytest
from fork_server import ForkServer
from restored_estimator import RESTORED, run_forked

import hookbridge as hb
from hookbridge.estimator import places

# Names that TF1 and TF2 code reads from `tf.estimator` on TensorFlow 2.15.
V2 = """
    BaselineClassifier BaselineEstimator BaselineRegressor BestExporter
    BinaryClassHead CheckpointSaverHook CheckpointSaverListener DNNClassifier
    DNNEstimator DNNLinearCombinedClassifier DNNLinearCombinedEstimator
    DNNLinearCombinedRegressor DNNRegressor Estimator EstimatorSpec EvalSpec Exporter
    FeedFnHook FinalExporter FinalOpsHook GlobalStepWaiterHook Head LatestExporter
    LinearClassifier LinearEstimator LinearRegressor LoggingTensorHook
    LogisticRegressionHead ModeKeys MultiClassHead MultiHead MultiLabelHead
    NanLossDuringTrainingError NanTensorHook PoissonRegressionHead ProfilerHook
    RegressionHead RunConfig SecondOrStepTimer SessionRunArgs SessionRunContext
    SessionRunHook SessionRunValues StepCounterHook StopAtStepHook SummarySaverHook
    TrainSpec VocabInfo WarmStartSettings add_metrics classifier_parse_example_spec
    experimental export regressor_parse_example_spec train_and_evaluate
    """.split()  # noqa: SIM905
EXPERIMENTAL = """
    InMemoryEvaluatorHook LinearSDCA RNNClassifier RNNEstimator
    build_raw_supervised_input_receiver_fn call_logit_fn
    make_early_stopping_hook make_stop_at_checkpoint_step_hook
    stop_if_higher_hook stop_if_lower_hook stop_if_no_decrease_hook
    stop_if_no_increase_hook
    """.split()  # noqa: SIM905


def test_all_names_of_tf_estimator_are_there() -> None:
    assert [name for name in V2 if not hasattr(hb.estimator, name)] == []
    found = hb.estimator.experimental
    assert [name for name in EXPERIMENTAL if not hasattr(found, name)] == []
    assert {*V2, "install", "model_to_estimator", "v1", "inputs"} <= set(
        dir(hb.estimator)
    )


def test_a_misspelled_name_is_answered_with_the_nearest_one() -> None:
    words = "`Estimatr`; .*; the nearest: `Estimator`"
    with pytest.raises(AttributeError, match=words):
        hb.estimator.Estimatr  # noqa: B018


def test_v2_wins_and_v1_fills_in_and_hooks_are_tensorflow_s_own(
    subtests: pytest.Subtests,
) -> None:
    import tensorflow as tf

    assert hb.estimator.Estimator is not hb.estimator.v1.Estimator
    assert hb.estimator.inputs is hb.estimator.v1.inputs
    assert hb.estimator.tpu.TPUEstimator is hb.estimator.v1.tpu.TPUEstimator
    for name in V2:
        with subtests.test(str(name)):
            if name.endswith("Hook"):
                assert getattr(hb.estimator, name) is getattr(tf.compat.v1.train, name)


@pytest.mark.parametrize("name", ["NoSuchThing", "__wrapped__", "__path_hooks__"])
def test_unknown_names_are_attribute_errors(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(hb.estimator, name)


def test_submodules_do_not_hide_public_names() -> None:
    import hookbridge.estimator

    files = {module.name for module in pkgutil.iter_modules(hb.estimator.__path__)}
    assert not files & {*V2, "inputs", "tpu", "install", "model_to_estimator", "v1"}
    assert importlib.import_module("hookbridge.estimator.places") is places
    assert hookbridge.estimator.install is places.install


@pytest.mark.skipif(RESTORED, reason="TensorFlow has no Estimator of its own from 2.16")
def test_on_2_15_it_is_tf_estimator_itself(subtests: pytest.Subtests) -> None:
    import tensorflow as tf

    before = dict(sys.modules)
    for name in V2:
        with subtests.test(str(name)):
            assert getattr(hb.estimator, name) is getattr(tf.estimator, name)
    assert hb.estimator.v1 is tf.compat.v1.estimator
    hb.estimator.install()
    assert not [name for name in sys.modules if name not in before]


@pytest.mark.slow
def test_unmodified_code_finds_everything_after_install(
    fork_server: ForkServer,
) -> None:
    program = """
        import hookbridge as hb
        hb.estimator.install()
        hb.estimator.install()

        import tensorflow as tf
        import tensorflow.compat.v1 as tf1
        import tensorflow.estimator
        from tensorflow.estimator import RunConfig
        from tensorflow.estimator.experimental import stop_if_no_decrease_hook
        from tensorflow.compat.v1.estimator import inputs
        from tensorflow import estimator as by_name

        class Mine(tf.estimator.SessionRunHook):
            pass

        assert tf1.estimator.inputs.numpy_input_fn is inputs.numpy_input_fn
        assert by_name.RunConfig is RunConfig is tf.estimator.RunConfig
        assert tf.compat.v2.estimator.Estimator is tf.estimator.Estimator
        assert tf.estimator.Estimator is hb.estimator.Estimator
        assert tf1.estimator.Estimator is hb.estimator.v1.Estimator
        assert issubclass(Mine, tf.compat.v1.train.SessionRunHook)
        import tensorflow_estimator as te
        assert te.estimator.Estimator is tf1.estimator.Estimator

        from tensorflow.python.tpu import tpu_config, tpu_estimator
        assert tpu_estimator.TPUEstimator is tf1.estimator.tpu.TPUEstimator
        assert tpu_config.RunConfig is tf1.estimator.tpu.RunConfig

        import tensorflow.compat.v2 as tf2
        from tensorflow.compat.v2.compat.v1.estimator import DNNClassifier
        for nested in (tf1.compat, tf2.compat):
            assert nested.v1.estimator.Estimator is tf1.estimator.Estimator
            assert nested.v2.estimator.Estimator is tf.estimator.Estimator
        assert DNNClassifier is tf1.estimator.DNNClassifier
        print("found")
        """
    assert run_forked(fork_server, program) == "found"

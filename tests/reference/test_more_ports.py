"""Ports of further kinds of models and data, with further kinds of faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from one_keras import one_keras
from recorded_fits import first_difference, recorded

import hookbridge as hb
from hookbridge import errors
from hookbridge.reference.comparison import Comparison
from hookbridge.reference.recordings.recording_files import Recording

v1: Any = tf.compat.v1
RANDOM = np.random.RandomState(5)
X = RANDOM.randn(22, 4).astype("float32")
Y = RANDOM.randint(0, 3, 22)
WORDS = RANDOM.randint(0, 6, (22, 4)).astype("int32")
DATA = X, np.eye(3, dtype="float32")[Y]
SIZE = 8  # of a batch; the last one is short


class Words:
    """A model of words: a session of TensorFlow 1, and its port to Keras."""

    def __init__(self, keras: Any, optimizer: Any, **layer: Any) -> None:
        self.keras = keras
        self.model = keras.Sequential(
            [
                keras.Input((4,), dtype="int32"),
                keras.layers.Embedding(6, 3, name="embed", **layer),
                keras.layers.GlobalAveragePooling1D(),
                keras.layers.Dense(3, name="out"),
            ]
        )
        loss = keras.losses.SparseCategoricalCrossentropy(True)
        self.model.compile(optimizer, loss)

    def trained(self, reference: Path, folder: Path) -> Comparison:
        replay = hb.replay(reference)
        own = {_name_of(v): v for v in self.model.weights}
        pairs = replay.match({n: tuple(v.shape) for n, v in own.items()}).pairs
        for name, other in pairs.items():
            own[other].assign(replay.weights[name])
        recorded(self.model, folder, replay.dataset("words", "y"))
        return hb.compare(reference, folder)


def _name_of(variable: Any) -> str:
    return str(getattr(variable, "path", None) or variable.name)


def words_in_session(folder: Path, optimizer: Callable[[], Any]) -> Path:
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        words = v1.placeholder(tf.int32, [None, 4], "words")
        y = v1.placeholder(tf.int32, [None], "y")
        table = v1.get_variable("embed/embeddings", [6, 3])
        hidden = tf.reduce_mean(tf.nn.embedding_lookup(table, words), 1)
        logits = hidden @ v1.get_variable("out/kernel", [3, 3])
        logits += v1.get_variable("out/bias", [3])
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        )
        train_op = optimizer().minimize(loss, v1.train.get_or_create_global_step())
        with v1.train.MonitoredTrainingSession(hooks=[hb.recorder(folder)]) as session:
            for n in range(0, len(Y), SIZE):
                fed = {words: WORDS[n : n + SIZE], y: Y[n : n + SIZE]}
                session.run(train_op, fed)
    return folder


def test_rows_and_a_short_last_batch(keras: Any, tmp_path: Path) -> None:
    """Adam of Keras 3 is another one for rows that a batch has twice."""
    reference = words_in_session(tmp_path / "run", lambda: v1.train.AdamOptimizer(0.01))
    adam = keras.optimizers.Adam(0.01, epsilon=1e-8)
    result = Words(keras, adam).trained(reference, tmp_path / "port")
    assert len(Recording(tmp_path / "port").steps) == 3
    if keras.__version__.startswith("2"):
        assert result.is_same, str(result)
        return
    assert first_difference(result) == ("update", 1, "embed/embeddings")
    assert result.causes[0].text.startswith("rows that a batch has twice")


def test_a_setting_of_the_optimizer(keras: Any, tmp_path: Path) -> None:
    """It is named even where its effect on a few steps is as small as rounding."""
    reference = words_in_session(tmp_path / "run", lambda: v1.train.AdamOptimizer(1e-8))
    adam = keras.optimizers.Adam(1e-8, beta_2=0.99)
    result = Words(keras, adam).trained(reference, tmp_path / "port")
    assert first_difference(result) == ("update", 1, "beta_2")
    told = "beta_2 is 0.999 in the reference and 0.99 in the port"
    assert result.causes[0].text == told


@one_keras
def test_a_frozen_layer(keras: Any, tmp_path: Path) -> None:
    reference = words_in_session(
        tmp_path / "run", lambda: v1.train.GradientDescentOptimizer(0.1)
    )
    sgd = keras.optimizers.SGD
    result = Words(keras, sgd(0.1)).trained(reference, tmp_path / "port")
    assert result.is_same, str(result)
    port = Words(keras, sgd(0.1), trainable=False)
    result = port.trained(reference, tmp_path / "frozen")
    assert first_difference(result) == ("update", 1, "embed/embeddings")
    told = "`embed/embeddings` does not move in the port: frozen, or left out"
    assert result.causes[0].text == told


def classifier(keras: Any, **faults: Any) -> Any:
    settings = {"activation": "elu", "epsilon": 1e-3, "smoothing": 0.0, **faults}
    keras.utils.set_random_seed(settings.get("seed", 2))
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(5, settings["activation"], name="hidden"),
            layers.LayerNormalization(epsilon=settings["epsilon"], name="norm"),
            layers.Dense(3, "softmax", name="out", use_bias="bias" not in settings),
        ]
    )
    smoothing = settings["smoothing"]
    loss = keras.losses.CategoricalCrossentropy(label_smoothing=smoothing)
    model.compile(keras.optimizers.SGD(0.1), loss)
    return model


@pytest.fixture(scope="module")
def references() -> dict[str, Path]:
    """The recordings of right classifiers, by their Keras."""
    return {}


@pytest.fixture
def reference(
    keras: Any, references: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The recording of a right classifier."""
    name = keras.__name__
    if name not in references:
        folder = tmp_path_factory.mktemp("reference")
        references[name] = recorded(classifier(keras), folder, *DATA, SIZE)
    return references[name]


@one_keras
def test_the_same_training_again(keras: Any, reference: Path, tmp_path: Path) -> None:
    again = recorded(classifier(keras), tmp_path / "again", *DATA, SIZE)
    assert hb.compare(reference, again).is_same


@one_keras
@pytest.mark.parametrize(
    "faults", [{"activation": "selu"}, {"epsilon": 1e-1}, {"smoothing": 0.1}]
)
def test_faults_of_the_forward_pass(
    keras: Any, faults: dict[str, Any], reference: Path, tmp_path: Path
) -> None:
    """Nothing tells their cause, and none is named."""
    port = recorded(classifier(keras, **faults), tmp_path / "port", *DATA, SIZE)
    result = hb.compare(reference, port)
    assert first_difference(result) == ("forward", 1, "loss")
    assert not result.causes, str(result)


@one_keras
def test_a_layer_without_its_bias(keras: Any, reference: Path, tmp_path: Path) -> None:
    port = recorded(classifier(keras, bias=False), tmp_path / "port", *DATA, SIZE)
    result = hb.compare(reference, port)
    assert first_difference(result) == ("forward", 2, "loss")
    assert (
        result.causes[0].text == "out/bias: in the reference alone, a layer or a bias"
    )


@one_keras
def test_a_dropped_batch(keras: Any, reference: Path, tmp_path: Path) -> None:
    whole = tf.data.Dataset.from_tensor_slices(DATA).batch(SIZE, drop_remainder=True)
    port = recorded(classifier(keras), tmp_path / "port", whole.repeat(2))
    result = hb.compare(reference, port)
    assert first_difference(result)[:2] == ("data", 3)
    assert "another shape: [6" in result.causes[0].text


@one_keras
def test_sample_weights(keras: Any, tmp_path: Path) -> None:
    """`dataset` gives them; a port without them is told so."""
    weights = RANDOM.rand(22).astype("float32")
    reference = tmp_path / "run"
    classifier(keras).fit(
        *DATA,
        SIZE,
        sample_weight=weights,
        shuffle=False,
        verbose=0,
        callbacks=hb.as_callbacks([hb.recorder(reference)]),
    )
    replay = hb.replay(reference)
    weighted = replay.dataset("x", "y", "sample_weight")
    port = recorded(classifier(keras), tmp_path / "port", weighted)
    assert hb.compare(reference, port).is_same
    port = recorded(classifier(keras), tmp_path / "without", replay.dataset())
    result = hb.compare(reference, port)
    assert first_difference(result) == ("forward", 1, "loss")
    assert result.causes[0].text == "the port does not get `sample_weight`"


def linear(folder: Path, weights: Any, **options: Any) -> Path:
    """A port that is written from arrays, of one step."""
    with hb.recording(folder, weights, **options) as r:
        r.step(loss=1.0, weights=weights)
    return folder


def test_weights_without_a_partner(tmp_path: Path) -> None:
    """Another order of axes is found; what has no partner is said."""
    one, other = np.ones([4, 2], np.float32), np.arange(8, dtype=np.float32)
    reference = linear(tmp_path / "run", {"layer/kernel": one})
    port = linear(tmp_path / "transposed", {"fc.weight": one.T})
    result = hb.compare(reference, port)
    assert first_difference(result) == ("initial weights", 1, "layer/kernel")
    assert "comes transposed" in result.causes[0].text
    result = hb.compare(reference, linear(tmp_path / "port", {"fc.weight": other}))
    assert result.is_same
    told = "not compared, since no name or shape tells a partner: layer/kernel of the "
    assert any(told in note for note in result.notes)


def test_settings_of_a_port_may_be_anything(tmp_path: Path) -> None:
    w, adam = {"w": np.ones([2])}, {"class": "Adam", "betas": (0.9, 0.99), "eps": None}
    ports = [
        linear(tmp_path / str(eps), w, optimizer={**adam, "epsilon": eps})
        for eps in (1e-8, 1e-7)
    ]
    assert hb.compare(*ports).is_same  # the place of an epsilon is not known


def test_a_recording_without_steps_is_refused(tmp_path: Path) -> None:
    reference = linear(tmp_path / "run", {"w": np.ones([2])})
    with hb.recording(tmp_path / "port", {"w": np.ones([2])}):
        pass
    with pytest.raises(errors.InvalidArgumentError, match="recording without steps"):
        hb.compare(reference, tmp_path / "port")


@one_keras
def test_settings_behind_a_scaled_loss(
    keras: Any, reference: Path, tmp_path: Path
) -> None:
    """Mixed precision: the loss, the gradients and the settings are not scaled."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = classifier(keras)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    scaled = recorded(model, tmp_path / "scaled", *DATA, SIZE)
    (settings,) = Recording(scaled).header["optimizer"]
    assert (settings["class"], settings["momentum"]) == ("SGD", 0.0)
    result = hb.compare(scaled, reference)
    assert first_difference(result)[:2] == ("forward", 1)

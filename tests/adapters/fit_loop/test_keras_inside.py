"""What Keras does with a model besides training is the same in a `fit` with hooks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_recorder import callback_of
from hook_fetching import Fetch, X, run_loop, sequential

ONE_KERAS = True


def subclassed(keras: Any) -> Any:
    """A subclassed model with a config, as a file of a user would have it."""

    @keras.saving.register_keras_serializable("hookbridge_tests")
    class Block(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self, units: int = 5, **options: Any) -> None:
            super().__init__(**options)
            self.units = units
            self.hidden = keras.layers.Dense(units, activation="relu", name="hidden")
            self.out = keras.layers.Dense(1, name="out")

        def call(self, inputs: Any) -> Any:
            return self.out(self.hidden(inputs))

        def get_config(self) -> dict[str, Any]:
            return {"units": self.units, "name": self.name}

    model = Block(name="block")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    model(X[:1])
    return model


MODELS = pytest.mark.parametrize("make", [sequential, subclassed])


@MODELS
def test_a_picture_of_the_model_and_a_model_of_the_config(
    keras: Any, make: Callable[[Any], Any]
) -> None:
    """They are the same while the model trains natively and with a hook."""
    pytest.importorskip("pydot")  # Graphviz itself would only draw the text

    def picture_and_config(model: Any) -> tuple[str, str]:
        options = {"show_shapes": True, "show_layer_names": True}
        dot = keras.utils.model_to_dot(model, expand_nested=True, **options)
        config = json.dumps(model.get_config(), sort_keys=True, default=str)
        copy = type(model).from_config(model.get_config())
        copy(X[:1])
        copy.set_weights(model.get_weights())
        np.testing.assert_allclose(copy(X), model(X), rtol=1e-6)
        return re.sub(r"\d{9,}", "<id>", dot.to_string()), config

    found: list[Any] = []
    for hooks in ([], [Fetch("loss:0")]):
        keras.backend.clear_session()
        uses = callback_of(
            keras,
            on_epoch_end=lambda self, epoch, logs: found.append(
                picture_and_config(self.model)
            ),
        )
        run_loop(make(keras), *hooks, uses)
    native, hooked = found
    assert "hidden" in native[0] or make is subclassed
    assert hooked == native


def test_an_input_that_a_layer_does_not_take(
    subtests: pytest.Subtests, keras: Any
) -> None:
    class Sequences(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(name="sequences")
            self.input_spec = keras.layers.InputSpec(ndim=3)

        def call(self, inputs: Any) -> Any:
            return inputs

    said = []
    for hooks in ([], [Fetch("loss:0")]):
        with subtests.test(str(hooks)):
            model = keras.Sequential([Sequences(), keras.layers.Dense(1)], name="m")
            model.compile("sgd", "mse")
            with pytest.raises(
                ValueError, match="expected ndim=3, found ndim=2"
            ) as error:
                run_loop(model, *hooks)
            said.append(re.findall(r"Input .*found ndim.*", str(error.value))[0])
    assert said[0] == said[1]


@MODELS
def test_a_saved_model_goes_on(
    keras: Any, make: Callable[[Any], Any], tmp_path: Path
) -> None:
    path = str(tmp_path / "{epoch}.keras")
    model, hook = make(keras), Fetch("loss:0")
    run_loop(model, hook, keras.callbacks.ModelCheckpoint(path), epochs=2)
    loaded = keras.models.load_model(tmp_path / "2.keras")
    np.testing.assert_allclose(loaded(X), model(X), rtol=1e-6)
    again = Fetch("loss:0")
    run_loop(loaded, again)
    assert again.steps == [8, 9, 10, 11]
    assert again.seen[0][0] < hook.seen[0][0]

"""What callbacks of old Keras find in `fit`: validation data and parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import output_of

from hookbridge.old_programs.rewriting.file_rewrites import FileRewrite, rewrite_files
from hookbridge.old_programs.scanning.diagnosis import diagnose
from hookbridge.old_programs.scanning.scan import scan
from hookbridge.tf1_names.target import NEWEST

VALIDATED = """import numpy as np
from keras.callbacks import Callback
from keras.engine.topology import Layer
from keras.layers import Dense
from keras.models import Sequential
class Mine(Callback):
    def on_epoch_end(self, epoch, logs=None):
        print([a.shape for a in self.validation_data], self.params["samples"])
model = Sequential([Dense(1, input_shape=(3,))])
model.compile("sgd", "mse")
x, y = np.ones([8, 3]), np.ones([8, 1])
model.fit(x, y, verbose=0, validation_data=(x, y), callbacks=[Mine()])
model.fit(x, y, verbose=0, validation_split=0.25, callbacks=[Mine()])
"""


@pytest.mark.slow
def test_callbacks_get_the_data_of_the_validation(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """Keras 2.2.4 prints these lines."""
    assert output_of(launcher, tmp_path, VALIDATED).splitlines() == [
        "[(8, 3), (8, 1), (8,)] 8",
        "[(2, 3), (2, 1), (2,)] 6",
    ]
    (found,) = [f for f in scan([tmp_path]).findings if f.code == "OLD_CALLBACK"]
    assert (found.line, found.name) == (8, "self.validation_data")
    (rewritten,) = rewrite_files([tmp_path / "old.py"])
    assert isinstance(rewritten, FileRewrite)
    assert "OLD_CALLBACK" in {todo.code for todo in rewritten.result.todos}


OF_2_1 = """import numpy as np
from tensorflow.keras.callbacks import Callback
from tensorflow.keras.layers import Dense, Input
from tensorflow.keras.models import Model, Sequential
class Mine(Callback):
    def on_train_begin(self, logs=None):
        print(self.params["metrics"], self.params.get("samples"))
    def on_epoch_end(self, epoch, logs=None):
        print(self.params["metrics"] == list(logs), self.params["batch_size"])
x, y = np.ones([8, 3]), np.ones([8, 1])
model = Sequential([Dense(1, input_shape=(3,))])
model.compile("sgd", "mse", metrics=["accuracy"])
data = {"validation_data": (x, y), "callbacks": [Mine()], "verbose": 0}
model.fit(x, y, **data)
model.fit(x, y, validation_split=0.25, batch_size=2, callbacks=[Mine()], verbose=0)
inputs = Input((3,))
model = Model(inputs, [Dense(1, name="a")(inputs), Dense(1, name="b")(inputs)])
model.compile("sgd", "mse", metrics=["mae"])
model.fit(x, [y, y], callbacks=[Mine()], verbose=0)
"""


@pytest.mark.slow
def test_callbacks_get_the_params_of_tensorflow_2_1(
    tmp_path: Path, launcher: ForkServer
) -> None:
    validated = ["loss", "accuracy", "val_loss", "val_accuracy"]
    several = ["loss", "a_loss", "b_loss", "a_mae", "b_mae"]
    assert output_of(launcher, tmp_path, OF_2_1).splitlines() == [
        f"{validated} 8",
        "True 32",
        f"{validated} 6",
        "True 2",
        f"{several} 8",
        "True 32",
    ]
    found = [f for f in scan([tmp_path]).findings if f.code == "OLD_CALLBACK"]
    assert [(f.line, f.name) for f in found] == [
        (7, 'self.params["metrics"]'),
        (7, 'self.params["samples"]'),
        (9, 'self.params["metrics"]'),
        (9, 'self.params["batch_size"]'),
    ]
    assert not diagnose([tmp_path / "old.py"], NEWEST).left

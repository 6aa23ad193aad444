"""What a callback resets through `self.model` in a session loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import fit, session_loop

import hookbridge as hb
from hookbridge import errors

v1 = tf.compat.v1


@pytest.mark.parametrize("event", ["on_train_batch_begin", "on_train_batch_end"])
def test_metrics_reset_in_each_batch(keras: Any, event: str) -> None:
    seen: list[Any] = []

    class Looks(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append([logs["loss"], logs["mae"]])

    class Resets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        pass

    def reset(self: Any, batch: int, logs: Any = None) -> None:
        self.model.reset_metrics()

    setattr(Resets, event, reset)
    fit(keras, [Looks(), Resets()], validate=False, epochs=2)
    expected, seen[:] = list(seen), []
    loop = session_loop([Looks(), Resets()], validate=False, epochs=2)
    np.testing.assert_allclose(seen, expected, rtol=2e-5)
    # As in Keras 3, the logs of an epoch are those of its last batch. Keras 2 reads the
    # metrics once more: they are 0 if the end of that batch reset them.
    assert loop.history["loss"] == pytest.approx([seen[2][0], seen[5][0]])


def test_states_of_recurrent_layers(keras: Any, keras2: Any) -> None:
    states: list[float] = []

    class Resets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                self.model.reset_states()

    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        model = keras2.Sequential(
            [keras2.layers.SimpleRNN(1, stateful=True, batch_input_shape=(1, 1, 1))]
        )
        loss = tf.reduce_mean(model(tf.ones([1, 1, 1])), name="loss")
        # The train op does not run the update of the state.
        train_op = v1.train.GradientDescentOptimizer(0.0).minimize(loss, step)
        state = model.layers[0].states[0]
        initializer = state.initializer
        hooks = hb.as_hooks(Resets(), steps_per_epoch=1, model=model)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            raw = session._tf_sess()
            session.run(train_op)
            raw.run(initializer, {initializer.inputs[1]: [[5.0]]})
            states.append(raw.run(state).item())
            session.run(train_op)
            states.append(raw.run(state).item())
    assert states == [5, 0]


def test_layer_of_a_bare_graph_says_what_it_offers(keras: Any) -> None:
    class Asks(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            layer = self.model.layers[0]
            assert layer.count_params() == 3
            assert layer.non_trainable_weights == []
            with pytest.raises(errors.LiveModelError, match="model=<"):
                _ = layer.kernel
            with pytest.raises(errors.LiveModelError, match="optimizer"):
                self.model.optimizer = keras.optimizers.SGD(0.1)
            self.model.mine = 3
            assert self.model.mine == 3

    session_loop([Asks()], validate=False, epochs=1)

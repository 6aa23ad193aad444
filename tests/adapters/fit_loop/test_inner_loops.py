"""Loops, steps and step functions that a callback makes inside a `fit` with hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from callback_recorder import callback_of
from hook_fetching import Fetch, X, Y, run_loop, sequential

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

ONE_KERAS = True

Body = Callable[[Any, int], Any]
BATCHES = len(X) // 8


def calling(keras: Any, **bodies: Body) -> Any:
    """A callback that calls `body(model, index)` in its events."""

    def method(body: Body) -> Any:
        return lambda self, index, logs=None: body(self.model, index)

    return callback_of(keras, **{event: method(body) for event, body in bodies.items()})


def fit_twins(keras: Any, epochs: int, **bodies: Body) -> tuple[Fetch, Any]:
    """Fits with and without a hook, with the same callback; weights must agree."""
    hook = Fetch("loss:0")
    bare, hooked = sequential(keras), sequential(keras)
    hooked.set_weights(bare.get_weights())
    run_loop(bare, calling(keras, **bodies), epochs=epochs)
    run_loop(hooked, hook, calling(keras, **bodies), epochs=epochs)
    for one, other in zip(hooked.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert hook.ended
    assert not {name for name in vars(hooked) if "make_" in name or name == "fit"}
    return hook, hooked


@pytest.mark.slow
def test_a_rebuilt_step_goes_on_with_the_hooks(keras: Any) -> None:
    def freeze(model: Any, epoch: int) -> None:
        if epoch == 0:
            return
        model.layers[0].trainable = epoch == 2
        if epoch == 2:
            model.train_function = None
        made = model.make_train_function(force=epoch == 1)
        if made is not None:  # Keras 2
            model.train_function = made

    hook, _ = fit_twins(keras, 3, on_epoch_begin=freeze)
    assert hook.steps == list(range(3 * BATCHES))


@pytest.mark.slow
def test_steps_on_a_batch_are_not_the_loops(keras: Any) -> None:
    def on_batch(model: Any, index: int) -> None:
        if index == 1:
            model.train_on_batch(X[:4], Y[:4])
            model.test_on_batch(X[:4], Y[:4])
            model.predict_on_batch(X[:4])

    bodies = {"on_epoch_end": on_batch, "on_train_batch_end": on_batch}
    hook, model = fit_twins(keras, 2, **bodies)
    assert len(hook.steps) == 2 * BATCHES
    steps = 2 * BATCHES + 3  # one in each epoch, one after the second
    assert hook.last_step == steps == int(np.asarray(model.optimizer.iterations))


@pytest.mark.slow
def test_a_loop_inside_a_loop(keras: Any) -> None:
    inner: list[Fetch] = []

    def loop(model: Any, name: str, *hooks: Any) -> None:
        inner.extend(hooks)
        run_loop(model, *hooks, loop=name, data=(X[:16], Y[:16]))

    def fail(model: Any) -> None:
        with pytest.raises(errors.UnknownTensorError):
            run_loop(model, Fetch("nowhere:0"), loop="evaluate")
        broken = calling(keras, on_test_batch_end=lambda model, batch: 1 // batch)
        with pytest.raises(ZeroDivisionError):
            run_loop(model, Fetch("loss:0"), broken, loop="evaluate")

    loops: list[Callable[[Any], None]] = [
        lambda model: loop(model, "evaluate", Fetch("hidden/Relu:0")),
        lambda model: loop(model, "predict", Fetch("hidden/Relu:0")),
        fail,
        lambda model: loop(model, "fit", Fetch("hidden/Relu:0")),
        lambda model: loop(model, "fit"),
    ]
    hook, model = Fetch("loss:0"), sequential(keras)
    ends = calling(keras, on_epoch_end=lambda model, epoch: loops[epoch](model))
    run_loop(model, hook, ends, epochs=5)
    # A `fit` inside moves the global step by two.
    assert hook.steps == [*range(16), *range(18, 22)]
    assert hook.ended and hook.last_step == 24
    assert [(each.steps, each.ended) for each in inner] == [
        ([4, 4], True),
        ([8, 8], True),
        ([16, 17], True),
    ]
    # One hook cannot be in both.
    callback = HookToCallback(hook)
    inside = [callback, HookToCallback(hook)]
    again = calling(keras, on_epoch_end=lambda model, _: run_loop(model, inside.pop()))
    while inside:
        with pytest.raises(errors.RefusedError, match="Give the inner loop a separate"):
            run_loop(model, callback, again)
    run_loop(model, callback)
    assert len(hook.steps) == BATCHES and hook.ended


def test_a_loop_that_others_have_ended_is_over(
    subtests: pytest.Subtests, keras: Any
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    model = sequential(keras)
    for event, then in (
        ("set_model", "evaluate"),
        ("on_epoch_end", "fit"),
        ("on_epoch_end", "train_on_batch"),
    ):
        with subtests.test(str(event)):
            hook, broken = Fetch("loss:0"), keras.callbacks.Callback()
            setattr(broken, event, fail)
            with pytest.raises(ZeroDivisionError):
                run_loop(model, hook, broken)
            before = len(getattr(hook, "steps", ()))
            getattr(model, then)(X, Y)
            assert len(getattr(hook, "steps", ())) == before
            run_loop(model, hook)
            assert len(hook.steps) == BATCHES and hook.ended

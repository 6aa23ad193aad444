"""Loops, steps and step functions that a callback makes inside a `fit` with hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hook_fetching import Fetch, X, Y, sequential

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

ONE_KERAS = True

FIT: dict[str, Any] = {"batch_size": 8, "verbose": 0, "shuffle": False}
EPOCHS = 2
STEPS = EPOCHS * len(X) // 8


def in_callback(keras: Any, event: str, body: Callable[[Any, int], None]) -> Any:
    """A callback that calls `body(model, index)` in an event."""

    def method(self: Any, index: int, logs: Any = None) -> None:
        body(self.model, index)

    return type("Inner", (keras.callbacks.Callback,), {event: method})()


def fit_twins(
    keras: Any, event: str, body: Callable[[Any, int], None]
) -> tuple[Fetch, Any]:
    """Fits with and without a hook, with the same callback; weights must agree."""
    hook = Fetch("loss:0")
    bare, hooked = sequential(keras), sequential(keras)
    hooked.set_weights(bare.get_weights())
    for model, hooks in ((bare, []), (hooked, [HookToCallback(hook)])):
        callbacks = [*hooks, in_callback(keras, event, body)]
        model.fit(X, Y, epochs=EPOCHS, callbacks=callbacks, **FIT)
    for one, other in zip(hooked.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert hook.ended
    assert not {name for name in vars(hooked) if "make_" in name or name == "fit"}
    return hook, hooked


@pytest.mark.slow
@pytest.mark.parametrize("how", ["force", "reset"])
def test_a_rebuilt_step_goes_on_with_the_hooks(keras: Any, how: str) -> None:
    def freeze(model: Any, epoch: int) -> None:
        if epoch == 0:
            return
        model.layers[0].trainable = False
        if how == "reset":
            model.train_function = None
        made = model.make_train_function(force=how == "force")
        if made is not None:  # Keras 2
            model.train_function = made

    hook, _ = fit_twins(keras, "on_epoch_begin", freeze)
    assert hook.steps == list(range(STEPS))


@pytest.mark.slow
@pytest.mark.parametrize("event", ["on_epoch_end", "on_train_batch_end"])
def test_steps_on_a_batch_are_not_the_loops(keras: Any, event: str) -> None:
    def on_batch(model: Any, index: int) -> None:
        if index == 1:
            model.train_on_batch(X[:4], Y[:4])
            model.test_on_batch(X[:4], Y[:4])
            model.predict_on_batch(X[:4])

    hook, model = fit_twins(keras, event, on_batch)
    assert len(hook.steps) == STEPS
    extra = 1 if event == "on_epoch_end" else EPOCHS
    assert (
        hook.last_step == STEPS + extra == int(np.asarray(model.optimizer.iterations))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "has_hooks"),
    [("evaluate", True), ("predict", True), ("fit", True), ("fit", False)],
)
def test_a_loop_inside_a_loop(keras: Any, loop: str, has_hooks: bool) -> None:
    inner: list[Fetch] = []

    def body(model: Any, index: int) -> None:
        callbacks = []
        if has_hooks:
            inner.append(Fetch("hidden/Relu:0"))
            callbacks = [HookToCallback(inner[-1])]
        data = (X[:16],) if loop == "predict" else (X[:16], Y[:16])
        getattr(model, loop)(*data, batch_size=8, verbose=0, callbacks=callbacks)

    hook = Fetch("loss:0")
    model = sequential(keras)
    callbacks = [HookToCallback(hook), in_callback(keras, "on_epoch_end", body)]
    model.fit(X, Y, epochs=EPOCHS, callbacks=callbacks, **FIT)
    moved = 2 if loop == "fit" else 0  # steps by each inner loop
    assert hook.steps == [e * (4 + moved) + s for e in range(EPOCHS) for s in range(4)]
    assert hook.ended and hook.last_step == STEPS + EPOCHS * moved
    assert len(inner) == (EPOCHS if has_hooks else 0)
    for index, each in enumerate(inner):
        assert each.ended
        assert each.steps[0] == 4 + index * (4 + moved)
        assert len(each.steps) == 2


def fail(*_: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.slow
def test_an_inner_loop_that_fails_leaves_the_outer_one(keras: Any) -> None:
    failing = Fetch("nowhere:0")

    def body(model: Any, index: int) -> None:
        callbacks = [HookToCallback(failing)]
        with pytest.raises(errors.UnknownTensorError):
            model.evaluate(X, Y, verbose=0, callbacks=callbacks)
        broken = in_callback(keras, "on_test_batch_end", fail)
        callbacks = [HookToCallback(Fetch("loss:0")), broken]
        with pytest.raises(ZeroDivisionError):
            model.evaluate(X, Y, verbose=0, callbacks=callbacks)

    hook, model = Fetch("loss:0"), sequential(keras)
    callbacks = [HookToCallback(hook), in_callback(keras, "on_epoch_end", body)]
    model.fit(X, Y, epochs=EPOCHS, callbacks=callbacks, **FIT)
    assert hook.steps == list(range(STEPS)) and hook.ended


def test_one_hook_cannot_be_in_both_loops(keras: Any) -> None:
    callback = HookToCallback(Fetch("loss:0"))

    def body(model: Any, index: int) -> None:
        model.evaluate(X, Y, verbose=0, callbacks=[callback])

    model = sequential(keras)
    inner = in_callback(keras, "on_epoch_end", body)
    with pytest.raises(errors.RefusedError, match="Give the inner loop a hook"):
        model.fit(X, Y, callbacks=[callback, inner], **FIT)
    model.fit(X, Y, callbacks=[callback], **FIT)
    assert callback.hook.ended


@pytest.mark.parametrize(
    ("event", "then"),
    [
        ("set_model", "evaluate"),
        ("on_epoch_end", "fit"),
        ("on_epoch_end", "train_on_batch"),
    ],
)
def test_a_loop_that_others_have_ended_is_over(
    keras: Any, event: str, then: str
) -> None:
    hook, model = Fetch("loss:0"), sequential(keras)
    broken = keras.callbacks.Callback()
    setattr(broken, event, fail)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y, callbacks=[HookToCallback(hook), broken], **FIT)
    before = len(getattr(hook, "steps", ()))
    getattr(model, then)(X, Y)
    assert len(getattr(hook, "steps", ())) == before
    model.fit(X, Y, callbacks=[HookToCallback(hook)], **FIT)
    assert len(hook.steps) == 4 and hook.ended

"""What `explain` and the record of a guest say before any loop is what comes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import session_loop
from callback_recorder import callback_of

import hookbridge as hb
from hookbridge.adapters.guests import fetched
from hookbridge.adapters.guests.guest_record import record_of

# What a training without validation gives; `on_batch_*` are called by Keras's own
# `on_train_batch_*`.
_KINDS = ("train", "epoch", "train_batch", "batch")
_DELIVERED = {f"on_{kind}_{end}" for kind in _KINDS for end in ("begin", "end")}


def _noting(guest: Any, *events: str) -> Any:
    for event in events:
        setattr(guest, event, functools.partial(_note, guest, event))
    return guest


def _note(guest: Any, event: str, *args: Any, **kwargs: Any) -> None:
    guest.seen = {*getattr(guest, "seen", ()), event}


def _around_the_empty_method(keras: Any) -> Any:
    guest = keras.callbacks.Callback()
    below = guest.on_train_begin

    @functools.wraps(below, updated=())
    def on_train_begin(logs: Any = None) -> None:
        _note(guest, "on_train_begin")
        below(logs)

    guest.on_train_begin = on_train_begin
    return guest


def _again(k: Any) -> Any:
    """The empty methods of the base class once more, and a method of the guest's."""
    base = k.callbacks.Callback
    empty = {event: getattr(base, event) for event in ("on_epoch_end", "on_batch_end")}
    return _noting(callback_of(k, **empty), "on_epoch_begin")


def _quiet(k: Any) -> Any:
    guest = callback_of(k, _implements_train_batch_hooks=lambda self: False)
    return _noting(guest, "on_train_batch_end", "on_epoch_end")


class Duck:
    def set_params(self, params: Any) -> None: ...
    def set_model(self, model: Any) -> None: ...


GUESTS: dict[str, Callable[[Any], list[Any]]] = {
    "class": lambda k: [
        callback_of(k, on_epoch_end=lambda self, *_, **__: _note(self, "on_epoch_end"))
    ],
    "alias": lambda k: [_noting(k.callbacks.Callback(), "on_batch_end")],
    "empty method again": lambda k: [_again(k)],
    "around an empty method": lambda k: [_around_the_empty_method(k)],
    "wants no batches": lambda k: [_quiet(k)],
    "wants none beside one that does": lambda k: [
        _quiet(k),
        _noting(k.callbacks.Callback(), "on_train_batch_begin"),
    ],
    "no class": lambda k: [
        _noting(Duck(), *(e for e in _DELIVERED if "on_batch" not in e))
    ],
    "no method at all": lambda k: [k.callbacks.Callback()],
}


@pytest.mark.parametrize("name", GUESTS)
def test_explained_is_delivered(name: str, keras: Any) -> None:
    guests = GUESTS[name](keras)
    report = hb.explain(guests, host="session")
    session_loop(guests, epochs=2)
    for guest, told in zip(guests, report.guests, strict=True):
        explained = {e.event for e in told.events} & _DELIVERED
        assert explained == getattr(guest, "seen", set())


train: Any = tf.compat.v1.train


class NamesInCode(train.SessionRunHook):  # type: ignore[misc]
    """Has a name in its code and one in an attribute."""

    def __init__(self) -> None:
        self.names = {"more": ["hidden/Relu:0"]}

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs("loss:0")


class Quiet(train.SessionRunHook):  # type: ignore[misc]
    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.text = "no name"


@pytest.mark.parametrize(
    ("make", "names", "may_fetch_loss"),
    [
        (NamesInCode, {"loss:0", "hidden/Relu:0"}, True),
        (Quiet, set(), False),
        (lambda: train.LoggingTensorHook(["a:0"], every_n_iter=1), {"a:0"}, True),
        (lambda: train.NanTensorHook("loss:0"), {"loss:0"}, True),
        (lambda: train.StopAtStepHook(last_step=2), set(), False),
    ],
)
def test_what_a_hook_may_fetch(
    make: Any, names: set[str], may_fetch_loss: bool
) -> None:
    hook = make()
    assert fetched.tensor_names(hook) == names
    assert fetched.may_fetch_loss(hook) == may_fetch_loss


def test_where_guests_write(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    callbacks, folder = keras.callbacks, str(tmp_path)
    log, whole = f"{folder}/a.csv", f"{folder}/a.keras"
    for guest, expected in (
        (train.CheckpointSaverHook(folder, save_steps=1), [(folder, True)]),
        (Quiet(), []),
        (callbacks.TensorBoard(folder), [(folder, True)]),
        (callbacks.CSVLogger(log), [(log, False)]),
        (callbacks.ModelCheckpoint(whole), [(whole, False)]),
        (callbacks.EarlyStopping("loss"), []),
    ):
        with subtests.test(str(guest)):
            assert record_of(guest).writes == expected

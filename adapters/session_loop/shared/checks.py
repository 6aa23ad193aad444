"""Refuses callbacks before the first step, by name and with a way out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.live_model import rate_checks, weight_files
from hookbridge.adapters.live_model.clone import Clone
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.adapters.session_loop.shared import monitors
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.ground.imports import extras
from hookbridge.ground.lifecycle import CALLBACK_EVENTS
from hookbridge.ground.lifecycle.overrides import overrides

_OF_OTHERS = ("on_test_", "on_predict_")


def refusal_error(
    guest: Guest, reason: str, way_out: str, *, see: str = "callback in a session"
) -> errors.RefusedError:
    """Return the error for a callback that cannot run in a session loop."""
    return errors.RefusedError(
        f"`{guest.name}` cannot run in a session loop: {reason}. Instead, {way_out}.",
        see=see,
    )


def check_guest(guest: Guest, *, has_model: bool) -> None:
    """Refuse a callback that no session can host, before any graph exists.

    Args:
      guest: the callback.
      has_model: whether the user gave `model=`.

    Raises:
      errors.RefusedError: it cannot run in a session, or not without the model.
    """
    if guest.keras_row.refused_in_session is not None:
        raise refusal_error(guest, *guest.keras_row.refused_in_session)
    if guest.keras_row.needs_tensorboard:
        extras.check(
            "tensorboard",
            user="`TensorBoard`",
            way_out="TensorFlow 2.20 and later do not include it.",
        )
    if guest.saves_model and not has_model:
        raise refusal_error(
            guest,
            "it saves the whole Keras model, and this graph has none "
            "(`model=` is not given)",
            (
                "construct it with `save_weights_only=True`"
                if guest.keras_class
                else "give it the `model_fn` and a `serving_input_fn`"
            )
            + ", or give the tf.keras or tf_keras model of the graph as "
            "`as_hooks(..., model=model)`",
        )
    if guest.keras_row.monitors == "monitor of the best" and not has_model:
        _check_options(guest)
    has_embeddings = has_model and guest.flavour != "keras3"
    if getattr(guest.item, "embeddings_metadata", None) and not has_embeddings:
        raise refusal_error(
            guest,
            "`embeddings_metadata` belongs to Embedding layers of its Keras, and this "
            "graph has no Keras model, or one of `tf_keras`",
            "leave it out, or use `tf_keras.callbacks.TensorBoard` and give the model "
            "of the graph as `as_hooks(..., model=model)`",
        )


def _check_options(guest: Guest) -> None:
    """Refuse options that the weights files of a bare graph cannot follow."""
    # Keras ignores the options for HDF5 files.
    if weight_files.is_h5(str(guest.item.filepath)):
        return
    name = weight_files.unsupported(getattr(guest.item, "_options", None))
    if name:
        raise refusal_error(
            guest,
            f"its options have `{name}`, and the weights of a bare graph are one file "
            "that this process writes",
            "leave it out, or give the tf.keras or tf_keras model of the graph as "
            "`as_hooks(..., model=model)`",
            see="model in a session",
        )


def check_variables(callbacks: Sequence[Guest], variables: Iterable[Any]) -> None:
    """Refuse callbacks on a graph whose variables `tf.distribute` mirrors."""
    for variable in variables:
        if isinstance(variable, tf.distribute.DistributedValues):
            strategy = type(variable.distribute_strategy).__name__
            raise refusal_error(
                callbacks[0],
                f"`{strategy}` keeps a copy of each variable on every replica "
                f'("{variable.name}" is a {type(variable).__name__}), and '
                "`self.model` reads and sets one variable of the session for each "
                "weight",
                "replicate with `hb.replicate_model_fn(model_fn, devices)` and no "
                "`train_distribute`: its replicas share the variables, and callbacks "
                "run there; hooks run under this strategy as they are",
                see="callbacks under a strategy",
            )


def _needs_epochs(guest: Guest) -> bool:
    """Return whether a callback acts by epoch and has no `epochs_are_optional`."""
    called = guest.called
    if getattr(called, "epochs_are_optional", False):
        return False
    return overrides(called, "on_epoch_begin") or overrides(called, "on_epoch_end")


def needs_epochs_only(guest: Guest) -> bool:
    """Return whether a callback would be useless without epochs in any session."""
    events = (e.name for e in CALLBACK_EVENTS if e.name.startswith(_OF_OTHERS))
    return _needs_epochs(guest) and not any(overrides(guest.called, e) for e in events)


def no_epochs_error(guest: Guest, config: HookOptions) -> errors.EpochsUndefinedError:
    """Return the error for a callback that needs epochs where there are none."""
    return errors.EpochsUndefinedError(
        f"`{guest.name}` works in epochs, and a session loop has none. Say how many "
        f"training steps make an epoch: {config.way_to_epochs}.",
        see="epochs in a session",
    )


def check_training(
    guest: Guest,
    config: HookOptions,
    *,
    produced: monitors.Produced,
    clone: Clone | None,
    rates: Sequence[LearningRate],
) -> None:
    """Refuse a callback that this training graph cannot host.

    Args:
      guest: the callback.
      config: the options of its `as_hooks` call.
      produced: what the training puts into `logs`.
      clone: the copy of the graph's Keras model, or None without `model=`.
      rates: the learning rates of the graph.
    """
    if config.steps_per_epoch is None and _needs_epochs(guest):
        raise no_epochs_error(guest, config)
    monitors.check_monitor(guest, config, produced)
    if guest.saves_model and clone is not None and clone.reason:
        raise refusal_error(
            guest,
            "it saves the whole Keras model, and the model of this graph cannot be "
            f"cloned from its configuration ({clone.reason})",
            "give the model a `get_config()` from which `from_config` can rebuild it"
            + (
                ", or construct the callback with `save_weights_only=True`"
                if guest.keras_class
                else ""
            ),
            see="model in a session",
        )
    reason = rate_checks.why_not_settable(rates) if guest.keras_row.sets_rate else None
    if reason is not None:
        raise refusal_error(guest, *reason, see="model in a session")

"""`as_hooks` and `as_callbacks`: any mix of guests for one host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from hookbridge.adapters import callback_to_hook, hook_to_callback
from hookbridge.adapters.guests import kinds, roles, skipped, watchers, written
from hookbridge.adapters.guests.bare import BareCallback, is_bare
from hookbridge.adapters.guests.foreign import ForeignCallback
from hookbridge.adapters.guests.guest_record import (
    Guest,
    Wrapper,
    record_of,
    records,
)
from hookbridge.adapters.hooked_loop import fit_states
from hookbridge.adapters.multi_worker.end_together import (
    EndTogether,
    may_be_one_of_several,
)
from hookbridge.adapters.parameter_server import ps_refusals
from hookbridge.adapters.parameter_server.deferred_callback import (
    DeferredCallback,
    is_batch_level,
)
from hookbridge.adapters.session_loop.group import CallbackGroup
from hookbridge.adapters.session_loop.last_epoch import LastEpochHook
from hookbridge.adapters.session_loop.on_steps import HookOnSteps
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.ground.arguments import optional_count
from hookbridge.ground.lifecycle import Kind


def as_hooks(
    items: object,
    *,
    steps_per_epoch: int | None = None,
    epochs: int | None = None,
    model: object = None,
    logs: Mapping[str, Any] | None = None,
    validation: Callable[[], Mapping[str, float]] | Any = None,
    validation_freq: int | Collection[int] = 1,
    learning_rate: object = None,
    params: Mapping[str, Any] | None = None,
    missing_metric: Literal["refuse", "warn"] = "refuse",
    hooks_on: Literal["runs", "steps"] = "runs",
) -> list[Any]:
    """Make `SessionRunHook`s of any mix of hooks and callbacks.

    For `MonitoredTrainingSession(hooks=...)`, `Estimator.train(hooks=...)`,
    `evaluate` and `predict`. The order is kept. Hooks pass through untouched, so a
    second call on the result changes nothing.

    Callbacks, and functions among the arguments, are called on the thread that runs the
    session, which waits for them. Callbacks are called once for each event of a
    `tf.keras.callbacks.Callback`; a batch is a run that moves the global step.

    Args:
      items: one hook or callback, or a list of them, of any Keras flavour.
      steps_per_epoch: training steps (moves of the global step) that make an
        epoch. Needed as soon as a callback overrides an `on_epoch_*` method.
      epochs: the run stops after this many epochs; None leaves the end to the
        loop.
      model: the `tf.keras`/`tf_keras` model built inside the graph, or a function
        without arguments that returns it, called in the first `begin` of each run.
        None when the graph has no Keras model: callbacks then see the trainable
        variables.
      logs: `{key: tensor}` for the callbacks' `logs`. Each value is a tensor, a
        tensor name such as `"metrics/acc:0"`, a `(value, update_op)` pair of a
        `tf.compat.v1.metrics` function, a Keras metric of the graph, or a
        function without arguments that returns one of those, called in the first
        `begin` of each run. The loss is found automatically; `{"loss": ...}` names it
        when it cannot be found. `{"size": ...}` is the number of examples in the batch,
        the weight in means over the epoch. Callbacks do not see this entry.
      validation: makes the `val_*` logs at the end of each epoch, as
        `{metric: value}` (the prefix is added): a function of the session, a function
        without arguments, which runs eagerly, a pair `(estimator, eval_spec)`, or an
        object with a method `run(session, report)`, which evaluates on the live
        variables and reports each batch (`hb.Validation`). If a callback monitors a
        `val_*` name, and no `metric_names` of the function or object tell what there
        will be, it is also called once before the first step.
      validation_freq: as in `Model.fit`: every how many epochs `validation` is called,
        or at the ends of which epochs, counted from 1.
      learning_rate: the tensor, variable or name that `optimizer.learning_rate`
        reads; found through the optimizer's update ops when None.
      params: further entries of `callback.params`. `verbose` is 0 unless given, or 1
        for a `ProgbarLogger`.
      missing_metric: what to do about a callback that monitors what the loop does not
        produce: "refuse" it before training, or "warn" and train on, as Keras does.
      hooks_on: which runs of the session call the hooks of `items`: all "runs", as in
        TensorFlow, or those that are "steps", as for callbacks. A run that only
        fetches data then triggers no hook and fetches nothing for one.

    Returns:
      A list of hooks, one for each guest, in order; with `epochs` and no callback,
      one more that ends the run. `hook.role` of a wrapped callback says which
      processes of a cluster call the callback. By default callbacks that write files
      or monitor a `val_*` value run on the chief, and all others on every worker
      (`hookbridge.adapters.guests.roles`). It may be set until the session begins.

    Raises:
      errors.NotAGuestError: an item is neither a hook nor a callback.
      errors.EpochsUndefinedError: a callback needs epochs and `steps_per_epoch`
        is missing.
      errors.RefusedError: a callback cannot run in a session loop, or a guest is
        both a hook and a callback.
      errors.UnwritableError: a callback cannot write its files.
      errors.InvalidArgumentError: an argument has a bad value.
    """
    return hooks_for(
        items,
        HookOptions(
            steps_per_epoch=steps_per_epoch,
            epochs=epochs,
            model=model,
            logs=logs,
            validation=validation,
            validation_freq=validation_freq,
            learning_rate=learning_rate,
            params=params,
            missing_metric=missing_metric,
            hooks_on=hooks_on,
        ),
    )


def hooks_for(items: object, config: HookOptions) -> list[Any]:
    """Return what `as_hooks` returns, with its options as one object.

    Args:
      items: hooks and callbacks, in a list or nested in one.
      config: the options; `config.callbacks` is not used.

    Raises:
      errors.RefusedError: a guest cannot run in a session.
    """
    group = CallbackGroup(config)
    group.all_guests = records(items)
    hooks = _convert(items, "hook", lambda guest: _as_hook(guest, group))
    last_step = config.last_step
    kinds_that_end = (callback_to_hook.CallbackToHook, LastEpochHook)
    ends = [h.last_step for h in hooks if isinstance(h, kinds_that_end)]
    if last_step is not None and last_step not in ends:
        hooks.append(LastEpochHook(last_step))
    return hooks


def _as_hook(guest: Guest, group: CallbackGroup) -> Any:
    """Return what a session calls for a guest: the guest itself, or a wrapper."""
    if guest.kind == "callback":
        return callback_to_hook.CallbackToHook(guest, group=group)
    if not roles.runs_here(guest.role):
        return skipped.SkippedHook(guest, guest.role)
    written.check_files(guest, [*group.all_guests])
    return HookOnSteps(guest) if group.config.hooks_on == "steps" else guest.item


def _convert(items: object, kind: Kind, make: Callable[[Guest], Any]) -> list[Any]:
    """Return what `make` makes of each guest; what was made before stays as it is."""
    wrappers: list[Any] = []
    for item in kinds.flatten(items):
        if not isinstance(item, Wrapper) or item.acts_as != kind:
            guest = record_of(item)
            guest.check_kind()
            item = make(guest)
        watchers.tell_wrapped(item)
        wrappers.append(item)
    return wrappers


def as_callbacks(items: object, *, max_lag: int | None = None) -> list[Any]:
    """Make Keras callbacks of any mix of hooks and callbacks.

    For `Model.fit(callbacks=...)`, `evaluate` and `predict` of every Keras
    flavour. The order is kept. Callbacks pass through untouched, so a second call on
    the result changes nothing. A guest that `set_role` keeps out of this process is
    replaced by a stand-in, which logs this once. Without `set_role`, Keras's own rule
    holds: each process that calls `fit` calls all its callbacks. If Keras 2 is
    imported too, a Keras 3 callback is wrapped so that Keras 2 can call it.

    The state of the callbacks is saved with each checkpoint of a
    `CheckpointSaverHook` in the same `fit`, as in a session loop. If
    `hb.checkpoints.restore` has restored a model from that hook's directory, the next
    `fit` of the model goes on with this state.

    Hooks are called on the thread that called `fit`, `evaluate` or `predict`, which
    waits for them: once for each event that `tf.compat.v1.train.SessionRunHook`
    describes. A run is one call of the model's step function: one batch, or
    `steps_per_execution` batches.

    Under `tf.distribute.ParameterServerStrategy`, Keras refuses callbacks with batch
    methods; these are wrapped too. Call this after the strategy was made, or give
    `max_lag`: otherwise hookbridge cannot know that it has to wrap them.

    Args:
      items: one hook or callback, or a list of them.
      max_lag: under `ParameterServerStrategy`, how many later steps may be scheduled
        already when `after_run` and `on_train_batch_end` of a step are delivered. A
        stop takes effect at most that many steps late. 0 waits for every step; None
        is 30, or twice the number of workers if that is more. The smallest lag of a
        `fit` counts for all its guests. It has no effect under other strategies.

    Returns:
      A list of callbacks, one for each guest, in order. In a job of several processes
      there is one more: a stop ends all of them at the same step.

    Raises:
      errors.NotAGuestError: an item is neither a hook nor a callback.
      errors.RefusedError: a hook needs something that `fit` cannot offer, a guest is
        both a hook and a callback, or there is a `ParameterServerStrategy` and Keras 3
        is the only Keras.
      errors.UnwritableError: a callback cannot write its files.
      errors.InvalidArgumentError: `max_lag` is not a whole number of at least 0.
    """
    callbacks = callbacks_for(items, max_lag=max_lag)
    guests = [g for g in records(callbacks) if g.kind == "callback"]
    for guest in guests:
        if roles.runs_here(guest.role_in_fit):
            written.check_files(guest, records(items))
    fit_states.note_guests([guest.item for guest in guests])
    return [*callbacks, EndTogether()] if may_be_one_of_several() else callbacks


def callbacks_for(items: object, *, max_lag: int | None = None) -> list[Any]:
    """Return what `as_callbacks` returns, without noting guests or checking files.

    Args:
      items: hooks and callbacks, in a list or nested in one.
      max_lag: see `as_callbacks`.

    Raises:
      errors.InvalidArgumentError: `max_lag` is not a whole number of at least 0.
      errors.RefusedError: a guest cannot run in `fit`, or not with this Keras.
    """
    optional_count("max_lag", max_lag, least=0)
    ps_refusals.refuse_keras3_alone()
    is_deferred = max_lag is not None or ps_refusals.meets_parameter_servers()
    plain = [g for g in kinds.flatten(items) if not isinstance(g, EndTogether)]
    return _convert(
        plain, "callback", lambda guest: _as_callback(guest, max_lag, is_deferred)
    )


def _as_callback(guest: Guest, max_lag: int | None, is_deferred: bool) -> Any:
    """Return what `fit` calls for a guest: the guest itself, or a wrapper."""
    if not roles.runs_here(guest.role_in_fit):
        return skipped.SkippedCallback(guest, guest.role_in_fit)
    if guest.kind == "hook":
        return hook_to_callback.HookToCallback(guest, max_lag=max_lag)
    if is_deferred and is_batch_level(guest):
        return DeferredCallback(guest, max_lag=max_lag)
    if is_bare(guest):
        return BareCallback(guest)
    return ForeignCallback(guest) if guest.is_foreign else guest.item

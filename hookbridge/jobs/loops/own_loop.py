"""Hooks and callbacks in a training loop of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from hookbridge import errors
from hookbridge.adapters.convert import as_callbacks
from hookbridge.adapters.fit_loop.native_step_maker import fit_host
from hookbridge.adapters.fit_loop.own_step import EndOfLoop, OwnInstallation
from hookbridge.adapters.graph_fit.functions import is_graph_model
from hookbridge.adapters.guests.guest_record import records
from hookbridge.adapters.guests.keys_of_logs import add_keys
from hookbridge.adapters.hook_to_callback import HookToCallback
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.live_model.clone import keras_of
from hookbridge.adapters.parameter_server.ps_refusals import uses_parameter_servers
from hookbridge.ground.arguments import (
    count,
    instance,
    optional_count,
    shown,
    with_arguments,
)
from hookbridge.ground.patching import Patches, assign
from hookbridge.ground.protocols import KerasModel
from hookbridge.ground.step_errors import END_OF_DATA
from hookbridge.jobs.loops import own_evaluation, own_logs


class OwnLoop:
    """Calls hooks and callbacks around the steps of your own training loop.

        with hb.loops.OwnLoop(guests, model=model, steps_per_epoch=100) as loop:
            for batch in data:
                loop.step(train_step, batch)

    All guests get the events of a `fit` of the same model. The block ends cleanly when
    a guest has asked for a stop: the next `step` leaves it. It also does at the end of
    the data, if the step pulls them (`OutOfRangeError`, as in a `MonitoredSession`).
    Another exception of the body leaves it as it would leave a `fit`: without `end` and
    `on_train_end`.

    Guests are called on the thread of the loop, once for each event of a `fit`.

    Args:
      guests: one hook or callback, or a list of them, also as `as_callbacks` returns
        them.
      model: the `tf.keras`, `tf_keras` or `keras` model that the steps train. It need
        not be compiled.
      optimizer: the optimizer of the steps; the model's own if None. Callbacks see it
        as `model.optimizer`, and hooks feed and save it.
      steps_per_epoch: how many steps make an epoch. None makes one epoch of all steps,
        or as many as `end_epoch` is called.
      epochs: the loop ends after this many epochs; None leaves the end to the body.
      initial_epoch: the number of the first epoch.
      verbose: what callbacks see as `params["verbose"]`.

    Attributes:
      history: `{name: [value of each epoch]}`, as `fit` returns it.

    Raises:
      errors.InvalidArgumentError: the model is not a Keras model, or a number is bad.
      errors.NotAGuestError: an item is neither a hook nor a callback.
      errors.RefusedError: a guest or the model cannot be in such a loop.
    """

    def __init__(
        self,
        guests: object,
        *,
        model: KerasModel,
        optimizer: object = None,
        steps_per_epoch: int | None = None,
        epochs: int | None = None,
        initial_epoch: int = 0,
        verbose: int = 0,
    ) -> None:
        optional_count("steps_per_epoch", steps_per_epoch)
        optional_count("epochs", epochs)
        count("initial_epoch", initial_epoch, least=0)
        count("verbose", verbose, least=0)
        _check_model(model)
        if optimizer is not None and not hasattr(optimizer, "apply_gradients"):
            raise errors.InvalidArgumentError(
                f"Received optimizer={shown(optimizer)}; expected the optimizer that "
                "the loop uses."
            )
        self._callbacks = as_callbacks(guests)
        self._model = model
        attributes = {} if optimizer is None else {"optimizer": optimizer}
        self._lent = Patches(model, attributes)
        self._steps_per_epoch = steps_per_epoch
        self._epochs = epochs
        self._epoch = initial_epoch
        self._verbose = verbose
        self._logs = own_logs.OwnEpochLogs()
        self._batch = 0
        self._checked: Any = None  # the step that can be called as it was
        self._is_in_epoch = False
        self._counter = _BatchCounter(model)
        self._list: Any = None
        self._installation: OwnInstallation | None = None
        self._run: HookedRun | None = None

    # -- the block -------------------------------------------------------------------

    def __enter__(self) -> OwnLoop:
        model = self._model
        self._lent.install()
        self._counter.begin()
        installation = OwnInstallation()
        run = HookedRun.open(model, lambda run: fit_host(run, installation))
        run.means = self._logs
        try:
            assign(model, stop_training=False)
            for callback in self._callbacks:
                if isinstance(callback, HookToCallback):
                    callback.join_next(run)
            self._list = keras_of(model).callbacks.CallbackList(
                self._callbacks,
                add_history=True,
                model=model,
                epochs=self._epochs or 1,
                steps=self._steps_per_epoch,
                verbose=self._verbose,
            )
            run.note_begin("train")
            if run.hooks:
                self._run, self._installation = run, installation
            else:
                run.leave()
            self._list.on_train_begin()
            self._epoch, self._batch = self._first_step()
        except BaseException:
            run.leave()
            self._lent.remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: object,
    ) -> bool:
        try:
            if error is not None and type(error) not in (EndOfLoop, *END_OF_DATA):
                if self._run is not None:
                    self._run.fail()
                return False
            # An epoch of a known length does not end with the body.
            is_left = self._steps_per_epoch and type(error) not in END_OF_DATA
            if is_left and self._run is not None:
                self._run.note_stop()
            self._finish_epoch()
            self._list.on_train_end(own_logs.numbers(self._logs.last))
            return error is not None
        except BaseException:  # of a callback
            if self._run is not None:
                self._run.fail()
            raise
        finally:
            self._lent.remove()

    def _first_step(self) -> tuple[int, int]:
        """Return the epoch and its batch at which a `fit` would begin now."""
        # A `BackupAndRestore` may have restored an earlier run in `on_train_begin`.
        model: Any = self._model
        if hasattr(model, "_maybe_load_initial_counters_from_ckpt"):  # Keras 2
            length, first = self._steps_per_epoch, self._epoch
            epoch, batch = model._maybe_load_initial_counters_from_ckpt(length, first)
            return int(epoch), int(batch)
        return getattr(model, "_initial_epoch", None) or self._epoch, 0

    @property
    def history(self) -> dict[str, list[Any]]:
        """The logs of the epochs so far."""
        return dict(self._model.history.history)

    def should_evaluate(self) -> bool:
        """Return whether the last step was the last one of its epoch: time to evaluate.

        It is true until the next `step`, `should_stop` or `end_epoch`, which end the
        epoch.
        """
        return self._is_in_epoch and self._batch == self._steps_per_epoch

    def should_stop(self) -> bool:
        """End an epoch whose steps are done; return whether the loop has to end."""
        if self.should_evaluate():
            self._finish_epoch()
        is_done = self._epochs is not None and self._epoch >= self._epochs
        return is_done or bool(self._model.stop_training)

    def step(
        self, step: Callable[..., Any], *args: object, logs: own_logs.Logs = None
    ) -> Any:
        """Make one step of training, with the events of all guests.

        Args:
          step: a `tf.function`, or a plain function, which runs eagerly. It may call
            `strategy.run`. Hooks find its tensors by the names that `fit` has, and what
            it returns as `loss:0` or by its names.
          *args: what the step is called with.
          logs: what callbacks get. None takes what the step returns: the numbers of a
            mapping by their names, another number, or the first one of a tuple, as
            `loss`. A list names the parts of a tuple, or chooses from a mapping. All
            these numbers are of the batch: `logs` has their means over the epoch, as
            in `fit`. A mapping of names to Keras metrics is read after each step, and
            its metrics are reset at the start of each epoch. A function makes a mapping
            of what the step returns, which is taken as it is: `logs=dict` for a step
            that returns the results of metrics.

        Returns:
          What the step has returned.

        Raises:
          errors.InvalidArgumentError: `logs` is something else, `step` cannot be
            called with `args`, or what it returns has no number for what a callback
            monitors.
        """
        own_logs.check(logs)
        is_first = step is not self._checked
        if is_first:
            if callable(logs):
                with_arguments("logs", logs, "returned")
            names = (f"argument_{index}" for index in range(len(args)))
            self._checked = with_arguments("step", step, *names)
        self._check_open("step")
        if self.should_stop():
            raise EndOfLoop
        if not self._is_in_epoch:
            self._is_in_epoch = True
            self._logs.begin()  # before the event, as in `fit`
            self._list.on_epoch_begin(self._epoch)
        self._logs.note(logs)
        self._list.on_train_batch_begin(self._batch)
        if self._installation is None:
            returned = step(*args)
        else:
            returned = self._installation.call(
                step, partial(own_logs.named, logs=logs), args
            )
        self._counter.add_one()
        batch_logs = self._logs.after(returned, logs, args)
        if is_first:
            guests = records(self._callbacks)
            own_logs.check_monitored(guests, returned, logs, batch_logs)
        self._deliver("on_train_batch_end", self._batch, batch_logs)
        self._batch += 1
        return returned

    def _check_open(self, method: str) -> None:
        """Refuse a call before the block has begun."""
        if self._list is None:
            raise errors.InvalidArgumentError(
                f"`{method}` was called outside the block: write `with OwnLoop(...) as "
                "loop:` around your loop."
            )

    def end_epoch(self, logs: Mapping[str, Any] | None = None) -> None:
        """End the epoch now.

        Args:
          logs: further logs of the epoch.
        """
        self._logs.add(logs or {})
        self._finish_epoch()

    def _finish_epoch(self) -> None:
        if self._is_in_epoch:
            self._is_in_epoch, self._batch = False, 0
            logs = own_logs.numbers(self._logs.of_ended_epoch())
            self._epoch += 1
            self._deliver("on_epoch_end", self._epoch - 1, logs)

    def _deliver(self, event: str, number: int, logs: Mapping[str, Any]) -> None:
        """Call all callbacks with the number of a batch or an epoch, and its logs."""
        try:
            getattr(self._list, event)(number, logs)
        except KeyError as e:
            add_keys(e, event, logs)
            raise

    def evaluate(
        self,
        step: Callable[..., Any],
        data: Iterable[Any] | None = None,
        logs: own_logs.Logs = None,
    ) -> dict[str, Any]:
        """Evaluate, with `on_test_*` of callbacks; hooks have no events, as in `fit`.

        The results are in the logs of the epoch as `val_<name>`, if the epoch has not
        ended: call this where `should_evaluate()` is true.

        Args:
          step: called with each batch, or, if it takes more than one argument, with the
            parts of each batch: `step(batch)` or `step(*batch)`, as you call
            `loop.step(step, ...)`.
          data: the batches; None calls `step` once, without arguments.
          logs: see `step`.

        Returns:
          `{name: number}`.

        Raises:
          errors.InvalidArgumentError: `logs` is something else, or `step` cannot be
            called with a batch.
        """
        own_logs.check(logs)
        if callable(logs):
            with_arguments("logs", logs, "returned")
        if data is not None:
            instance("data", data, Iterable, "the batches, or None to call `step` once")
        self._check_open("evaluate")
        metrics = own_evaluation.evaluate(self._list, step, data, logs)
        self._logs.add({f"val_{name}": value for name, value in metrics.items()})
        return metrics


class _BatchCounter:
    """Counts the batches as `fit` of Keras 2 does, for `TensorBoard`."""

    def __init__(self, model: KerasModel) -> None:
        self._variable = getattr(model, "_train_counter", None)
        self._count = 0

    def begin(self) -> None:
        """Go on from the count of the model."""
        self._count = 0 if self._variable is None else int(self._variable.numpy())

    def add_one(self) -> None:
        """Count a batch."""
        if self._variable is not None:
            self._count += 1
            self._variable.assign(self._count)


def _check_model(model: KerasModel) -> None:
    """Refuse what is not a model, and models whose loop cannot be the user's own."""
    if keras_of(model) is None:
        raise errors.InvalidArgumentError(
            f"Received model={shown(model)}; expected a Keras model, whose variables "
            "hooks and callbacks see."
        )
    if is_graph_model(model):
        raise errors.RefusedError(
            f"The model `{model.name}` is in a v1 graph, where a loop is a session's: "
            "use `hb.as_hooks` and a `MonitoredTrainingSession`.",
            see="own loops",
        )
    if uses_parameter_servers(model):
        raise errors.RefusedError(
            f"The model `{model.name}` is under `ParameterServerStrategy`, whose "
            "steps arrive late and out of order. Train it with `fit`.",
            see="parameter servers",
        )

"""A `SessionRunHook` as a Keras callback."""

from __future__ import annotations

from typing import Any, ClassVar

from hookbridge import errors
from hookbridge.adapters.fit_loop.native_step_maker import fit_host
from hookbridge.adapters.graph_fit.function_step_maker import graph_host
from hookbridge.adapters.graph_fit.functions import check_model, is_graph_model
from hookbridge.adapters.guests import any_flavour, watchers
from hookbridge.adapters.guests.copies import CopiedWrapper
from hookbridge.adapters.guests.guest_record import Guest, record_of_kind
from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.adapters.hooked_loop import refusals
from hookbridge.adapters.hooked_loop.call_watch import CallWatch
from hookbridge.adapters.hooked_loop.fit_states import FitStates
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun, MakeHost
from hookbridge.adapters.hooked_loop.list_ends import calling_list
from hookbridge.adapters.hooked_loop.model_loops import (
    is_in_another_thread,
    is_in_suspended_run,
)
from hookbridge.adapters.keras_model.structure import trains_in_several_processes
from hookbridge.adapters.multi_worker.end_together import refuse_keras3_model
from hookbridge.adapters.multi_worker.worker_host import worker_host
from hookbridge.adapters.parameter_server import ps_refusals
from hookbridge.adapters.parameter_server.cluster_step_maker import cluster_host
from hookbridge.ground import compat
from hookbridge.ground.arguments import optional_count
from hookbridge.ground.lifecycle import Kind
from hookbridge.ground.lifecycle.events import HOOK_METHODS
from hookbridge.ground.protocols import Hook, KerasModel, Logs


class HookToCallback(CopiedWrapper, any_flavour.AnyFlavour):
    """Runs an unmodified `SessionRunHook` in `fit`, `evaluate` and `predict`.

    All hooks of one `fit` share one live graph and one live session and are
    driven together, in the order of the callback list, around each call of the
    step function: `before_run` of all, the step, `after_run` of all. Their
    `begin` and `after_create_session` come right before the first step, when the
    step has been traced, and `end` at this callback's place in `on_train_end`.
    All five are called on the thread that called `fit`: `before_run` and `after_run`
    once for each call of the step function, the others once in each loop.

    The object is an instance of the `Callback` class of every Keras flavour that
    is imported. It holds no state of a run: it can be used in any number of
    `fit` calls, one after the other.

    Args:
      hook: the hook, or an object with the five methods of a hook.
      max_lag: under `ParameterServerStrategy`, how many later steps may be scheduled
        already when `after_run` of a step is called; see `as_callbacks`.

    Raises:
      errors.NotAGuestError: `hook` is not a hook instance.
      errors.RefusedError: the hook needs something that `fit` cannot offer.
      errors.InvalidArgumentError: `max_lag` is not a whole number of at least 0.
    """

    acts_as: ClassVar[Kind] = "callback"
    # Keras 2: the bridge does not read `logs`, so Keras need not convert them.
    _supports_tf_logs = True
    _chief_worker_only = False

    def __init__(self, hook: Hook | Guest, *, max_lag: int | None = None) -> None:
        self._self_record: Guest = record_of_kind("hook", hook)
        self.hook: Hook = self.record.item
        refusals.check_backend(self.hook, compat.keras_flavours())
        refusals.check_hook(self.hook)
        optional_count("max_lag", max_lag, least=0)
        self.max_lag = max_lag
        # The hook, or what takes its place in this process.
        self._called: Any = None
        self._run: HookedRun | None = None
        self._next_run: HookedRun | None = None  # the run that `set_model` joins
        self._watch: CallWatch | None = None
        # They save the state of callbacks with this hook's checkpoints, in the last
        # `fit` and in the one that is about to begin.
        self._states: FitStates | None = None
        self._next_states: FitStates | None = None

    def copy_options(self) -> dict[str, Any]:
        """Return the options with which a copy is made."""
        return {"max_lag": self.max_lag}

    def set_model(self, model: KerasModel | None) -> None:
        """Join the run, before Keras makes its step function."""
        super().set_model(model)
        if model is None:
            return
        self._run = self._join(model)
        watchers.tell_joined(self.hook, self._run)
        if self._watch is not None:
            self._watch.end()
        self._watch = CallWatch(self, self.hook, model, self._run)
        callback_list = calling_list()  # None if somebody calls this callback alone
        if self.record.saves_checkpoints and callback_list is not None:
            self._next_states = FitStates(self.hook, model, callback_list)

    def join_next(self, run: HookedRun) -> None:
        """Let the next `set_model` join this run, which a loop has opened itself.

        Args:
          run: the run, which is open.
        """
        self._next_run = run

    def _join(self, model: KerasModel) -> HookedRun:
        """Join the run of the model's next loop, with what this process calls."""
        if is_in_suspended_run(self.hook):
            raise errors.RefusedError(
                f"`{self.record.name}` is in a running loop of the model "
                f"`{model.name}`, and a callback has started another one with it: a "
                "hook has one session at a time. Give the inner loop a separate hook.",
                see="live session",
            )
        if is_in_another_thread(model):
            raise errors.RefusedError(
                f"A thread started a loop of the model `{model.name}` with the hook "
                f"`{self.record.name}`, while another thread is running a loop of the "
                "same model with hooks. Hooks get one session at a time. Start this "
                "loop in a callback of the other one, without a thread, or use a copy "
                "of the model (`clone_model`).",
                see="live session",
            )
        make_host = self._choose_host_maker(model)
        run, self._next_run = self._next_run, None
        run = HookedRun.join(model, make_host) if run is None else run
        self._called = run.add(self.record, self.max_lag)
        return run

    def _choose_host_maker(self, model: KerasModel) -> MakeHost:
        """Return the function that makes the host; refuse a model that has none."""
        refusals.check_backend(self.hook, [keras_behind(model)])
        if is_graph_model(model):
            check_model(model, self.hook)
            return graph_host
        if ps_refusals.uses_parameter_servers(model):
            ps_refusals.check_model_and_hook(model, self.hook)
            return cluster_host
        if trains_in_several_processes(model):
            refuse_keras3_model(model, self.record.name)
            return worker_host
        return fit_host

    def _check(self, *, has_stepped: bool = False) -> None:
        if self._watch is not None:
            self._watch.check(has_stepped=has_stepped)

    def _end(self) -> None:
        if self._watch is not None:
            self._watch.end()
            self._watch = None
        run, self._run = self._run, None
        if run is not None:
            run.end(self._called)

    def _begin(self, mode: str) -> None:
        """Begin a loop; refuse one whose model Keras has not told this callback."""
        # A run that an error has ended is still there; no `fit` begins with it.
        has_ended = self._run is None or (mode == "train" and self._run.is_over)
        if self._run is not None and not has_ended:
            self._run.host.step_maker.begin(mode)
        elif self.model is not None:
            raise errors.RefusedError(
                f"The hook `{self.record.name}` cannot run in this loop of the model "
                f"`{self.model.name}`: its callback is in a `CallbackList` that an "
                "earlier loop has used. Keras tells callbacks of a loop's model when "
                "it makes their list, and a hook joins the loop then. Give "
                "`callbacks=` a plain list, or a new `CallbackList` for each loop.",
                see="live session",
            )

    def _is_mode(self, mode: str) -> bool:
        return self._run is not None and self._run.mode == mode

    def on_test_begin(self, logs: Logs = None) -> None:
        """Begin `evaluate`, or validation in `fit`, with the hook."""
        self._begin("test")
        if self._states is not None:
            self._states.on_test_begin()

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Begin `predict` with the hook."""
        self._begin("predict")

    def on_train_begin(self, logs: Logs = None) -> None:
        """Begin `fit` with the hook, and with the state of callbacks beside it."""
        self._begin("train")
        if self._next_states is not None:
            self._states, self._next_states = self._next_states, None
            self._states.on_train_begin(self._run, self.params or {})

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Check that the hook was called for the steps of an epoch with logs."""
        self._check(has_stepped=bool(logs))

    def on_train_end(self, logs: Logs = None) -> None:
        """Call the hook's `end`, as on every clean finish."""
        self._check()
        self._end()

    def on_test_end(self, logs: Logs = None) -> None:
        """Call the hook's `end` in `evaluate`, not after validation in `fit`."""
        self._check(has_stepped=bool(logs))
        if self._is_mode("test"):
            self._end()

    def on_predict_end(self, logs: Logs = None) -> None:
        """Call the hook's `end`."""
        self._check(has_stepped=True)
        if self._is_mode("predict"):
            self._end()

    def __getattr__(self, name: str) -> Any:
        """Name the converter if a session looks for a method of a hook."""
        if name in HOOK_METHODS:
            raise errors.WrongConverterError(
                f"`{type(self).__name__}` of `{self.record.name}` is a "
                f"callback that `hb.as_callbacks` made from a hook, and `{name}` is "
                "a method of hooks. Pass the hook itself to `hb.as_hooks([...])`, "
                "and give the result to sessions and Estimators; callbacks are for "
                "`fit`, `evaluate` and `predict`.",
            )
        raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`.")

    def __repr__(self) -> str:
        return f"HookToCallback({self.hook!r})"

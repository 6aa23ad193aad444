"""A batch-level Keras callback under `ParameterServerStrategy`."""

from __future__ import annotations

from functools import partial, partialmethod
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.foreign import ForeignCallback
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.parameter_server import ps_refusals
from hookbridge.adapters.parameter_server.cluster_step_maker import (
    ClusterStepMaker,
    cluster_host,
)
from hookbridge.adapters.parameter_server.step_values import to_python
from hookbridge.ground.lifecycle.overrides import BATCH_EVENTS, wants_batches
from hookbridge.ground.protocols import KerasModel, Logs


def is_batch_level(guest: Guest) -> bool:
    """Return whether Keras refuses the callback under `ParameterServerStrategy`."""
    # Keras refuses callbacks with batch methods that take converted logs.
    if getattr(guest.item, "_supports_tf_logs", False):
        # `TerminateOnNaN` claims to take unconverted logs, but reads them as a dict.
        return guest.keras_row.monitors == "loss"
    return any(wants_batches(guest.item, mode) for mode in BATCH_EVENTS)


class DeferredCallback(ForeignCallback):
    """Delivers batch events of an unmodified callback in order, with real logs.

    Keras refuses batch methods under `ParameterServerStrategy`, since a scheduled step
    has no logs yet. Here both events of a batch come when its logs have arrived, after
    those of the previous batch. Elsewhere every call is passed on.
    """

    def __init__(self, record: Guest, *, max_lag: int | None = None) -> None:
        super().__init__(record)
        self._self_max_lag = max_lag
        self._self_run: HookedRun | None = None
        self._self_maker: ClusterStepMaker | None = None

    def copy_options(self) -> dict[str, Any]:
        """Return the options with which a copy is made."""
        return {"max_lag": self._self_max_lag}

    @property
    def _supports_tf_logs(self) -> bool:
        """Keras 2: whether the callback gets unconverted logs."""
        return self._self_maker is not None or bool(
            getattr(self.guest, "_supports_tf_logs", False)
        )

    def set_model(self, model: KerasModel | None) -> None:
        """Act before Keras asks which callbacks take logs as tensors."""
        if model is not None and ps_refusals.uses_parameter_servers(model):
            ps_refusals.check_model_and_hook(model, self.guest)
            run = HookedRun.join(model, cluster_host)
            maker = run.host.step_maker
            assert isinstance(maker, ClusterStepMaker)
            maker.add_callback(self._self_max_lag)
            self._self_run, self._self_maker = run, maker
        super().set_model(model)

    # Keras calls these; the guest gets them when its turn and its logs have come.

    def _before_batch(self, method: str, batch: int, logs: Logs = None) -> None:
        event = partial(getattr(self.guest, method), batch, logs)
        if self._self_maker is None:
            event()
        else:
            self._self_maker.events.before_batch(event)

    def _after_batch(self, method: str, batch: int, logs: Logs = None) -> None:
        event, maker = getattr(self.guest, method), self._self_maker
        if maker is None:
            event(batch, logs)
        elif isinstance(logs, tf.distribute.experimental.coordinator.RemoteValue):
            maker.events.after_batch(logs, partial(event, batch))
        else:
            maker.events.flush()
            event(batch, to_python(logs))

    on_train_batch_begin = partialmethod(_before_batch, "on_train_batch_begin")
    on_train_batch_end = partialmethod(_after_batch, "on_train_batch_end")
    on_test_batch_begin = partialmethod(_before_batch, "on_test_batch_begin")
    on_test_batch_end = partialmethod(_after_batch, "on_test_batch_end")
    on_predict_batch_end = partialmethod(_after_batch, "on_predict_batch_end")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.guest.on_epoch_end(epoch, self._deliver_and_convert(logs))

    def on_train_end(self, logs: Logs = None) -> None:
        self.guest.on_train_end(self._deliver_and_convert(logs))
        self._leave()

    def on_test_end(self, logs: Logs = None) -> None:
        self.guest.on_test_end(self._deliver_and_convert(logs))
        if self._self_run is not None and self._self_run.mode != "train":
            self._leave()

    def on_predict_end(self, logs: Logs = None) -> None:
        self.guest.on_predict_end(logs)
        self._leave()

    def _deliver_and_convert(self, logs: Logs) -> Any:
        """Deliver all events held back, then return the logs as Python numbers."""
        if self._self_maker is None:
            return logs
        self._self_maker.events.flush()
        return to_python(logs)

    def _leave(self) -> None:
        maker, self._self_run, self._self_maker = self._self_maker, None, None
        if maker is not None:
            maker.callback_ended()

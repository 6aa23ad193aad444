"""A batch-level Keras callback under `ParameterServerStrategy`."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests import any_flavour, kinds
from hookbridge.adapters.parameter_server import refusals
from hookbridge.adapters.parameter_server.run import ParameterServerRun
from hookbridge.adapters.parameter_server.values import to_python

BATCH_KINDS = ("train", "test", "predict")


def is_batch_level(callback: Any) -> bool:
    """Whether plain Keras refuses the callback under `ParameterServerStrategy`.

    Keras refuses callbacks with batch methods that take converted logs. A callback of
    another Keras, which cannot be asked for its batch methods, counts as one.
    """
    if getattr(callback, "_supports_tf_logs", False):
        # It claims to take logs as they are, and then reads them as a dict.
        return any(cls.__name__ == "TerminateOnNaN" for cls in type(callback).__mro__)
    for kind in BATCH_KINDS:
        ask = getattr(callback, f"_implements_{kind}_batch_hooks", None)
        if ask is None or ask():
            return True
    return False


class DeferredCallback(kinds.Wrapper, any_flavour.AnyFlavour):
    """Delivers batch events of an unmodified callback in order, with real logs.

    Under `ParameterServerStrategy` Keras schedules steps and refuses callbacks with
    batch methods, because there are no logs yet. Here both events of a batch are
    delivered when its logs are there, after those of the batch before. Under other
    strategies every call is passed on unchanged.

    Args:
      callback: the callback.
      max_lag: see `as_callbacks`.
    """

    def __init__(self, callback: Any, *, max_lag: int | None = None) -> None:
        self.callback = callback
        self.max_lag = max_lag
        self.validation_data = None
        self.params: Any = None
        self._model: Any = None
        self._run: Any = None
        self._supports_tf_logs = bool(getattr(callback, "_supports_tf_logs", False))
        self._chief_worker_only = getattr(callback, "_chief_worker_only", None)

    def set_params(self, params: dict[str, Any]) -> None:
        """Called by Keras before training."""
        self.params = params
        self.callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """Called by Keras before it asks which callbacks take logs as tensors.

        Raises:
          errors.RefusedError: the model is one of Keras 3.
        """
        self._model = model
        if model is not None and refusals.uses_parameter_servers(model):
            refusals.check_member(model, self.callback)
            self._supports_tf_logs = True
            self._run = ParameterServerRun.join(model)
            self._run.add_member(self.max_lag)
        self.callback.set_model(model)

    def _implements_train_batch_hooks(self) -> bool:
        return self._implements("train")

    def _implements_test_batch_hooks(self) -> bool:
        return self._implements("test")

    def _implements_predict_batch_hooks(self) -> bool:
        return self._implements("predict")

    def _implements(self, kind: str) -> bool:
        ask = getattr(self.callback, f"_implements_{kind}_batch_hooks", None)
        return True if ask is None else bool(ask())

    def _before_batch(self, method: str, batch: int, logs: Any) -> None:
        event = functools.partial(getattr(self.callback, method), batch, logs)
        if self._run is None:
            event()
        else:
            self._run.delivery.before_batch(event)

    def _after_batch(self, method: str, batch: int, logs: Any) -> None:
        event = getattr(self.callback, method)
        if self._run is None:
            event(batch, logs)
        elif isinstance(logs, tf.distribute.experimental.coordinator.RemoteValue):
            self._run.delivery.after_batch(logs, functools.partial(event, batch))
        else:
            self._run.delivery.flush()
            event(batch, to_python(logs))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Passed on in its turn, after the end of the batch before."""
        self._before_batch("on_train_batch_begin", batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Passed on when the step's logs are there."""
        self._after_batch("on_train_batch_end", batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Passed on in its turn, after the end of the batch before."""
        self._before_batch("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Passed on when the batch's logs are there."""
        self._after_batch("on_test_batch_end", batch, logs)

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Passed on."""
        self.callback.on_predict_batch_begin(batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """Passed on; `predict` runs on the coordinator."""
        self._after_batch("on_predict_batch_end", batch, logs)

    def on_train_begin(self, logs: Any = None) -> None:
        """Passed on."""
        self.callback.on_train_begin(logs)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Passed on."""
        self.callback.on_epoch_begin(epoch, self._plain(logs))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Passed on, after all batches of the epoch."""
        self._flush()
        self.callback.on_epoch_end(epoch, self._plain(logs))

    def on_train_end(self, logs: Any = None) -> None:
        """Passed on, after everything else."""
        self._flush()
        self.callback.on_train_end(self._plain(logs))
        self._leave()

    def on_test_begin(self, logs: Any = None) -> None:
        """Passed on."""
        self.callback.on_test_begin(logs)

    def on_test_end(self, logs: Any = None) -> None:
        """Passed on, after all batches of the evaluation."""
        self._flush()
        self.callback.on_test_end(self._plain(logs))
        if self._run is not None and not self._run.is_mode("train"):
            self._leave()

    def on_predict_begin(self, logs: Any = None) -> None:
        """Passed on."""
        self.callback.on_predict_begin(logs)

    def on_predict_end(self, logs: Any = None) -> None:
        """Passed on."""
        self.callback.on_predict_end(logs)
        self._leave()

    def _flush(self) -> None:
        if self._run is not None:
            self._run.delivery.flush()

    def _leave(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.member_ended()

    def _plain(self, logs: Any) -> Any:
        return logs if self._run is None or logs is None else to_python(logs)

    def __repr__(self) -> str:
        return f"DeferredCallback({self.callback!r})"

"""Every exception the library raises, each derived from a builtin too."""

from __future__ import annotations

from typing import Any

from hookbridge.docs_pages import pointer


class HookBridgeError(Exception):
    """Base class; `except hb.errors.HookBridgeError` catches all of them.

    Args:
      *args: the message.
      see: the row of `docs_pages.PAGES` whose page the message names at its end.
    """

    def __init__(self, *args: Any, see: str = "") -> None:
        if see:
            args = (f"{args[0]} {pointer(see)}", *args[1:])
        super().__init__(*args)


class NotAGuestError(HookBridgeError, TypeError):
    """Raised when an item is neither a hook nor a callback, or is a class."""


class RefusedError(HookBridgeError, ValueError):
    """Raised when a guest cannot be carried to its host.

    This is before training, unless only a step can show it.
    The message names the guest, the host, the reason and the way out.
    """


class EpochsUndefinedError(HookBridgeError, ValueError):
    """Raised when a callback needs epochs and `steps_per_epoch` is missing."""


class UnknownTensorError(HookBridgeError, ValueError, KeyError):
    """Raised when a tensor or operation name does not exist.

    It is a `KeyError`, as TF's own `get_tensor_by_name` raises one, and the message
    lists the nearest names that exist.
    """

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class WrongConverterError(HookBridgeError, AttributeError):
    """Raised when what `as_hooks` returned is given to `fit`, or the other way."""


class RunArgumentsError(HookBridgeError, ValueError, TypeError, AttributeError):
    """Raised when a hook fetches or feeds what its session does not take.

    The message begins as that of the `ValueError` or `TypeError` of a TF session, or of
    its `AttributeError` for what is not a `SessionRunArgs`.
    """


class UnknownFeedError(UnknownTensorError, RunArgumentsError):
    """Raised when a hook feeds a name that does not exist; a `TypeError`, as TF's."""


class UnknownMetricError(HookBridgeError, ValueError):
    """Raised when a callback monitors a metric that the loop does not produce."""


class UnwritableError(HookBridgeError, OSError):
    """Raised when a directory or file that training must write is not writable."""


class InvalidArgumentError(HookBridgeError, ValueError):
    """Raised when an argument of a public function has a bad value."""


class LiveModelError(HookBridgeError, AttributeError):
    """Raised when a callback asks the live model for what it cannot give."""


class LiveSessionError(HookBridgeError, RuntimeError):
    """Raised when a hook asks the live session for what it cannot do.

    Attributes:
      hook_error: the hook's own error, if this error replaces it. (Keras's
        traceback filter removes `__cause__`.)
    """

    hook_error: BaseException | None = None


class NeverCalledError(HookBridgeError, RuntimeError):
    """Raised after a training if one of its guests got no event."""


class GuestFailedError(HookBridgeError, RuntimeError):
    """Raised in a session for an error of a callback or of `validation=`.

    Only for errors that the session would take for the end of its data, or for the loss
    of a task. `__cause__` is the guest's own error.
    """


class ClusterError(HookBridgeError, RuntimeError):
    """Raised when a task of a cluster cannot start, or a task that it needs is gone."""


class TaskLostError(ClusterError):
    """Raised when a task that this one needs is gone: start the job again.

    A process that it ends has an exit code that orchestrators retry.
    """


class CheckpointMismatchError(HookBridgeError, ValueError):
    """Raised when a checkpoint has nothing that fits a weight of the model."""


class GoneNameError(HookBridgeError, NotImplementedError, AttributeError):
    """Raised when a program uses a name of TensorFlow 1 that has no counterpart.

    The message names the place of the use and the way out.
    """


class MissingExtraError(HookBridgeError, ImportError):
    """Raised when an optional dependency is needed; names the `pip install`."""


class ImportOrderError(HookBridgeError, ImportError):
    """Raised when a module was imported too early; names what to import first."""


class PrivateNameMovedError(HookBridgeError, ImportError):
    """Raised when a private TF or Keras name is not where it used to be."""

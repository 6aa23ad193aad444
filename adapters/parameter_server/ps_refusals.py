"""Models and guests that a parameter-server `fit` cannot take, and the way out."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.hooked_loop import refusals
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel

# Like `REFUSED_HOOKS`: hooks that need the process in which the step runs.
_REFUSED_HOOKS: dict[str, tuple[str, str]] = {
    "ProfilerHook": (
        "it traces the step in the process of the hook, and the step runs on a worker",
        "use `tf.profiler.experimental.client.trace` with the workers' addresses",
    ),
    "BackgroundSaverHook": (
        "it copies the values of its own process, but the servers hold them",
        "use `CheckpointSaverHook`; the servers then write the values",
    ),
}


def _keras_3() -> str:
    return (
        "Keras 3 cannot train under `ParameterServerStrategy`. Make the model with "
        f"{compat.keras_2_advice()}. Import it before `hb.as_callbacks` is called."
    )


def meets_parameter_servers() -> bool:
    """Return whether this process has a parameter-server strategy, or is in one."""
    strategy = type(tf.distribute.get_strategy()).__name__
    return strategy.startswith("ParameterServerStrategy") or (
        "ps" in compat.connected_jobs()
    )


def uses_parameter_servers(model: KerasModel) -> bool:
    """Return whether a model trains under `ParameterServerStrategy`."""
    strategy = getattr(model, "distribute_strategy", None)
    return type(strategy).__name__.startswith("ParameterServerStrategy")


def refuse_keras3_alone() -> None:
    """Refuse Keras 3, which fails under this strategy before it asks its callbacks."""
    if meets_parameter_servers() and all(
        compat.is_keras3(k) for k in compat.keras_flavours()
    ):
        raise errors.RefusedError(_keras_3(), see="parameter servers")


def check_model_and_hook(model: KerasModel, guest: object) -> None:
    """Refuse a model or a guest that does not work under `ParameterServerStrategy`."""
    if not hasattr(model, "_cluster_coordinator"):
        raise errors.RefusedError(
            f"`{kinds.name_of(guest)}`: {_keras_3()}", see="parameter servers"
        )
    check_hook(guest)


def check_hook(guest: Any) -> None:
    """Refuse a hook that `fit` cannot host, or that needs the process of the step."""
    refusals.check_hook(guest)
    refusals.check_class(
        guest,
        _REFUSED_HOOKS,
        "under `ParameterServerStrategy`",
        see="parameter servers",
    )

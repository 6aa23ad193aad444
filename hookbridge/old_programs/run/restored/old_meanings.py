"""Calls that a newer TensorFlow refuses, and that old programs rely on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hookbridge.ground import compat, patching
from hookbridge.old_programs.run.restored.restored_arguments import whole

Init: TypeAlias = Callable[..., None]
# The first TensorFlow, (major, minor), whose `SummarySaverHook` has to have a place.
_NEEDS_A_PLACE = (2, 22)


def restore() -> None:
    """Let these calls mean what they did.

    - `TPUClusterResolver("")` is this process, as in TensorFlow 1. Programs with a
      `TPUEstimator` pass it for `--use_tpu=False`.
    - A `SummarySaverHook` without a place writes nothing, as before 2.22.
    - `experimental_run_v2` of a strategy is `run`.
    - A shape may have a float that is whole, such as `[None, 784 / 2]`.
    - A queue reader in a block for a GPU is on the CPU.
    """
    import tensorflow as tf

    from hookbridge.legacy.readers import methods_on_the_cpu

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    patching.wrap(resolver, __init__=_without_a_tpu)
    patching.wrap(tf.compat.v1.Dimension, __init__=_of_whole_floats)
    if compat.tf_version() >= _NEEDS_A_PLACE:
        hook = tf.compat.v1.train.SummarySaverHook
        patching.wrap(hook, __init__=_without_a_place)
    for strategy in (tf.distribute.Strategy, tf.compat.v1.distribute.Strategy):
        patching.Patches(strategy, {"experimental_run_v2": _run}).install()
    reader = tf.compat.v1.ReaderBase
    for kind in (reader, *reader.__subclasses__()):
        patching.Patches(kind, methods_on_the_cpu(kind)).install()


def _run(self: Any, *args: Any, **named: Any) -> Any:
    """`experimental_run_v2`: the `run` of the strategy's own class."""
    return self.run(*args, **named)


def _without_a_tpu(
    init: Init, self: Any, /, tpu: Any = None, *others: Any, **named: Any
) -> None:
    """Make a resolver whose TPU may have an empty name."""
    init(self, "local" if tpu == "" else tpu, *others, **named)


def _of_whole_floats(init: Init, self: Any, /, value: Any) -> None:
    """Make a dimension, which may be 3.0 for 3."""
    init(self, whole(value))


def _without_a_place(
    init: Init,
    self: Any,
    /,
    save_steps: int | None = None,
    save_secs: float | None = None,
    output_dir: str | None = None,
    summary_writer: Any = None,
    **others: Any,
) -> None:
    """Make a hook that needs no `output_dir` or `summary_writer`."""
    if output_dir is None and summary_writer is None:
        output_dir = ""  # TensorFlow makes no writer for it
    init(self, save_steps, save_secs, output_dir, summary_writer, **others)

"""What is refused of the learning rates that callbacks read and set in a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge import errors
from hookbridge.adapters.session_graph.learning_rate import GraphNumber, LearningRate
from hookbridge.ground.protocols import Tensor
from hookbridge.ground.structures import flat_feeds

_SEE = "model in a session"


def why_not_settable(rates: Sequence[LearningRate]) -> tuple[str, str] | None:
    """Return why no callback may set the learning rate, and the way out; or None.

    Args:
      rates: the learning rates of the graph.
    """
    if len(rates) != 1:
        return (
            "it sets the learning rate, and hookbridge does not know which tensor of "
            f"the graph holds it (found: {_names(rates) or 'none'})",
            "name it: `as_hooks(..., learning_rate=<tensor, variable or name>)`",
        )
    tensor = rates[0].tensor
    if tensor.op.type == "Placeholder":
        return (
            f'it reads the learning rate before it sets it, and "{tensor.name}" is a '
            "placeholder that has no value outside a step",
            "make it a `tf.compat.v1.placeholder_with_default` and leave it out of the "
            "loop's `feed_dict`",
        )
    if _is_folded(rates[0]):
        return (
            f'it sets the learning rate, and "{tensor.name}" is a constant '
            "that TensorFlow has already folded into other ops",
            "build the optimizer with a variable or a "
            "`tf.compat.v1.placeholder_with_default`",
        )
    return None


def check_set(rate: LearningRate) -> None:
    """Refuse a value for a rate that cannot be set.

    Raises:
      TypeError: it is a schedule, as in Keras.
      errors.LiveModelError: TensorFlow takes no feed in its place.
    """
    if rate.kind == "schedule":
        raise TypeError(
            # Keras's own words: programs look for them.
            "This optimizer was created with a `LearningRateSchedule` object as "
            "its `learning_rate` constructor argument, hence its learning rate is "
            "not settable. If you need the learning rate to be settable, you "
            "should instantiate the optimizer with a float `learning_rate` "
            f'argument. (In the graph "{rate.tensor.name}" is computed.)'
        )
    if _is_folded(rate):
        raise errors.LiveModelError(
            f'The learning rate "{rate.tensor.name}" is a constant that '
            "TensorFlow has already folded into other ops, so hookbridge cannot "
            "set it. Build the optimizer with a variable "
            "(`tf.compat.v1.get_variable(..., trainable=False)`) or a "
            "`tf.compat.v1.placeholder_with_default`.",
            see=_SEE,
        )


def check_single(rates: Sequence[LearningRate]) -> None:
    """Refuse a graph that does not have exactly one learning rate."""
    if not rates:
        raise errors.LiveModelError(
            "hookbridge found no learning rate in this graph: no update op of an "
            "optimizer has one, and no variable is called `learning_rate`. Name "
            "it: `as_hooks(..., learning_rate=<tensor, variable or name>)`.",
            see=_SEE,
        )
    if len(rates) > 1:
        raise errors.LiveModelError(several(rates), see=_SEE)


def several(rates: Sequence[LearningRate]) -> str:
    """Say that a graph has several learning rates, and what to do."""
    return (
        f"hookbridge found {len(rates)} learning rates in this graph "
        f"({_names(rates)}) and cannot know which one is meant. Name it: "
        "`as_hooks(..., learning_rate=...)`, or take "
        "`model.optimizer.optimizers[i].learning_rate`."
    )


def no_schedule_error() -> errors.LiveModelError:
    """Return the error for a schedule that is set as the learning rate."""
    return errors.LiveModelError(
        "hookbridge cannot replace the learning rate of a running graph by a "
        "schedule. Use the `LearningRateScheduler` callback, or build the "
        "schedule into the graph.",
        see=_SEE,
    )


def no_value_error(number: GraphNumber, called: str) -> errors.LiveModelError:
    """Return the error for a number that can only be computed in a step."""
    return errors.LiveModelError(
        f'The {called} "{number.tensor.name}" has no value outside a '
        "training step: it depends on something that has to be fed. Make it a "
        "`tf.compat.v1.placeholder_with_default` or a variable.",
        see=_SEE,
    )


def loop_feed_of(tensor: Tensor, feed_dict: Mapping[Any, Any] | None) -> Any:
    """Return the value that the loop itself feeds for a tensor in a step, or None."""
    for key, value in flat_feeds(feed_dict):
        if key is tensor or (type(key) is str and key == tensor.name):
            return value
    return None


def check_feeds(rates: Mapping[Any, Any], feed_dict: Mapping[Any, Any] | None) -> None:
    """Refuse a step in which the loop feeds what callbacks have set."""
    for tensor in rates:
        if loop_feed_of(tensor, feed_dict) is not None:
            raise errors.InvalidArgumentError(
                f'The loop feeds the learning rate "{tensor.name}" in `session.run`, '
                f"and a callback under hookbridge has set it to {rates[tensor]}. "
                "Leave it out of the loop's `feed_dict` (a "
                "`tf.compat.v1.placeholder_with_default` needs no feed), or take the "
                "callback away and let the loop set the rate."
            )


def check_read(rates: Mapping[str, bool]) -> None:
    """Refuse, at an epoch's end, a learning rate that was set and never read."""
    for name, is_read in rates.items():
        if not is_read:
            raise errors.RefusedError(
                f'A callback has set the learning rate "{name}", and no run of this '
                "session that moves the global step or updates variables has read "
                "it. Name the rate of an optimizer that the loop runs: "
                "`as_hooks(..., learning_rate=...)`. Or make it a variable: runs "
                "outside the loop read a variable too.",
                see=_SEE,
            )


def _names(rates: Sequence[LearningRate]) -> str:
    return ", ".join(f'"{rate.tensor.name}"' for rate in rates)


def _is_folded(rate: LearningRate) -> bool:
    """Return whether the rate is a constant that TensorFlow no longer reads."""
    return rate.kind == "fed" and not rate.tensor.graph.is_feedable(rate.tensor)

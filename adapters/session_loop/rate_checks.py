"""What is refused of the learning rates that callbacks set in a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.adapters.session_loop.checks import refusal
from hookbridge.ground.protocols import Tensor
from hookbridge.ground.structures import flat_feeds


def check_settable(guest: Guest, rates: Sequence[LearningRate]) -> None:
    """Refuse a callback that sets the learning rate where it cannot be set.

    Args:
      guest: the callback.
      rates: the learning rates of the graph.
    """
    if not guest.stock.sets_rate:
        return
    if len(rates) != 1:
        names = ", ".join(f'"{r.tensor.name}"' for r in rates) or "none"
        raise refusal(
            guest,
            "it sets the learning rate, and hookbridge does not know which tensor of "
            f"the graph holds it (found: {names})",
            "name it: `as_hooks(..., learning_rate=<tensor, variable or name>)`",
            see="model in a session",
        )
    tensor = rates[0].tensor
    if tensor.op.type == "Placeholder":
        raise refusal(
            guest,
            f'it reads the learning rate before it sets it, and "{tensor.name}" is a '
            "placeholder that has no value outside a step",
            "make it a `tf.compat.v1.placeholder_with_default` and leave it out of the "
            "loop's `feed_dict`",
            see="model in a session",
        )
    if rates[0].kind == "fed" and not tensor.graph.is_feedable(tensor):
        raise refusal(
            guest,
            f'it sets the learning rate, and "{tensor.name}" is a constant '
            "that TensorFlow has already folded into other ops",
            "build the optimizer with a variable or a "
            "`tf.compat.v1.placeholder_with_default`",
            see="model in a session",
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
    """Refuses, at an epoch's end, a learning rate that was set and never read."""
    for name, is_read in rates.items():
        if not is_read:
            raise errors.RefusedError(
                f'A callback has set the learning rate "{name}", and no run of this '
                "session that moves the global step or updates variables has read "
                "it. Name the rate of an optimizer that the loop runs: "
                "`as_hooks(..., learning_rate=...)`. Or make it a variable: runs "
                "outside the loop read a variable too.",
                see="model in a session",
            )

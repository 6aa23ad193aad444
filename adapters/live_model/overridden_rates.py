"""Learning rates that a session's callbacks override by a feed in each step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from hookbridge import errors


class OverriddenRates(dict[Any, Any]):
    """`{tensor: value}` of one session, for the callbacks of all `as_hooks` calls.

    A session takes the feed of a tensor from one hook only. That is a hook of the
    `as_hooks` call that joined last: it is asked after the others, so its feed has what
    their callbacks set as the step begins.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stop_last: weakref.WeakMethod[Callable[[], None]] | None = None

    def feed_from(self, stop: Callable[[], None]) -> None:
        """Another run state feeds from now on.

        Args:
          stop: a method that is called when one that joined later takes over.
        """
        last = self._stop_last and self._stop_last()
        if last is not None:
            last()
        self._stop_last = weakref.WeakMethod(stop)


_of_session: weakref.WeakKeyDictionary[Any, OverriddenRates] = (
    weakref.WeakKeyDictionary()
)


def of(session: Any) -> OverriddenRates:
    """The overridden rates of a raw session."""
    return _of_session.setdefault(session, OverriddenRates())


def fed_by_loop(tensor: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
    """The value that the loop itself feeds for a tensor in a step, or None."""
    if not feed_dict:
        return None
    value = feed_dict.get(tensor)
    return feed_dict.get(tensor.name) if value is None else value


def check(rates: OverriddenRates, feed_dict: Mapping[Any, Any] | None) -> None:
    """Refuses a step in which the loop feeds what callbacks have set.

    Raises:
      errors.InvalidArgumentError: it does.
    """
    for tensor in rates:
        if fed_by_loop(tensor, feed_dict) is not None:
            raise errors.InvalidArgumentError(
                f'The loop feeds the learning rate "{tensor.name}" in `session.run`, '
                f"and a callback under hookbridge has set it to {rates[tensor]}. "
                "Leave it out of the loop's `feed_dict` (a "
                "`tf.compat.v1.placeholder_with_default` needs none), or take the "
                "callback away and let the loop set the rate."
            )

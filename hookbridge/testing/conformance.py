"""Compares what a guest received with the documented mapping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from hookbridge.ground import lifecycle
from hookbridge.ground.lifecycle import Delivery
from hookbridge.testing.event_log import EventLog


def differences(
    received: Collection[Delivery], expected: Collection[Delivery]
) -> list[str]:
    """Return where a received event sequence differs from the expected one.

    Args:
      received: what a guest got, as `EventLog.of` gives it.
      expected: what it should get, as `lifecycle.expected_events` gives it.

    Returns:
      One line for the first place that differs and one for each event that came
      too often or too rarely.
    """
    got, want = list(received), list(expected)
    if got == want:
        return []
    index = next(
        (
            i
            for i, pair in enumerate(zip(got, want, strict=False))
            if pair[0] != pair[1]
        ),
        min(len(got), len(want)),
    )
    lines = [
        f"event {index + 1}: received {_show(got, index)}, expected "
        f"{_show(want, index)}"
    ]
    have, need = Counter(d.event for d in got), Counter(d.event for d in want)
    lines += [
        f"{event}: received {have[event]} times, expected {need[event]}"
        for event in dict.fromkeys([*need, *have])
        if have[event] != need[event]
    ]
    return lines


def _show(events: list[Delivery], place: int) -> str:
    if place >= len(events):
        return "nothing more"
    event, number = events[place]
    return f"`{event}`" if number is None else f"`{event}({number})`"


def assert_conforms(
    log: EventLog,
    name: str,
    *,
    guest: lifecycle.Kind,
    host: lifecycle.Host,
    **facts: Any,
) -> None:
    """Check that a guest received the documented events.

    Args:
      log: the log the guest recorded in.
      name: the guest's name in the log.
      guest: `"hook"` or `"callback"`.
      host: `"session"` or `"fit"`.
      **facts: what the run did, as for `lifecycle.expected_events`. Pass
        `only=lifecycle.overridden(...)` for a guest that was spied on.

    Raises:
      AssertionError: the sequence differs; the message says where.
    """
    lines = differences(log.of(name), lifecycle.expected_events(guest, host, **facts))
    if lines:
        raise AssertionError(
            f"`{name}` ({guest} in {host}) did not see the documented events:\n  "
            + "\n  ".join(lines)
        )

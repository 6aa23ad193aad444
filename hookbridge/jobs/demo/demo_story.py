"""Checks the events that a guest saw in one process of a cluster.

Without a cluster `lifecycle.expected_events` gives each event. In a cluster the number
of steps of a process depends on the others, and `Model.fit` delivers the end of a step
some steps later. The order of the events and their numbers are still documented, and
are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from hookbridge.ground.lifecycle import Kind

Events = Sequence[Sequence[Any]]


def complaints(
    kind: Kind,
    events: Events,
    expected: Collection[str],
    *,
    lagging: bool = False,
    is_chief: bool = True,
) -> list[str]:
    """Return where a guest's events in one process differ from the documented order.

    `expected` are the events that the guest can see here. A `lagging` step may end
    after later ones have begun. A task other than the chief begins with the epoch in
    which it joined, and the chief may end it in the middle of a step.
    """
    words = "".join(f"{event} " for event, _ in events)
    pattern = _pattern(kind, expected, lagging, is_chief)
    faults = []
    if re.fullmatch(pattern, words) is None:
        faults.append(f"the order, which report.html shows, is not {pattern}")
    return faults + _numbers(events, is_chief)


def _pattern(
    kind: Kind, expected: Collection[str], lagging: bool, is_chief: bool
) -> str:
    """Return the documented order as a regular expression over event names."""

    def one(event: str) -> str:
        return f"{event} " if event in expected else ""

    def steps(begin: str, end: str) -> str:
        edges = [one(begin), one(end)] if lagging else [one(begin) + one(end)]
        choices = "|".join(filter(None, edges))
        return f"(?:{choices})+" if choices else ""

    def ending(event: str, cut: str) -> str:
        """Return the last event, or the place where an interruption cut them."""
        return one(event) if is_chief else f"(?:{one(event)}|{cut})"

    if kind == "hook":
        runs = steps("before_run", "after_run")
        begins = one("begin") + one("after_create_session")
        return begins + runs + ending("end", f"(?:{one('before_run')})?")
    setters = "".join(map(one, ("set_model", "set_params", "on_train_begin")))
    batches = steps("on_train_batch_begin", "on_train_batch_end")
    tests = steps("on_test_batch_begin", "on_test_batch_end")
    test = one("on_test_begin") + tests + one("on_test_end")
    epoch = one("on_epoch_begin") + batches + test + one("on_epoch_end")
    begun = f"(?:{batches})?(?:{one('on_train_batch_begin')})?"
    cut = f"(?:{one('on_epoch_begin')}{begun})?"
    return f"{setters}(?:{epoch})*{ending('on_train_end', cut)}"


def _numbers(events: Events, is_chief: bool) -> list[str]:
    """Return the first epoch or batch whose number is wrong, if there is one.

    Epochs rise without gaps, and batches rise in each epoch.
    """
    epochs = (number for event, number in events if event.startswith("on_epoch"))
    before = -1 if is_chief else next(epochs, 0) - 1
    latest = {"on_epoch_begin": before, "on_epoch_end": before}
    for event, number in events:
        if event in ("on_epoch_begin", "on_epoch_end"):
            latest |= {"on_train_batch_begin": -1, "on_train_batch_end": -1}
            is_next = number == latest[event] + 1
        elif event in ("on_train_batch_begin", "on_train_batch_end"):
            is_next = number > latest.get(event, -1)
        else:
            continue
        if not is_next:
            return [f"{event}({number}) came after {event}({latest.get(event, -1)})"]
        latest[event] = number
    return []

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

from hookbridge.lifecycle import Guest

Events = Sequence[Sequence[Any]]


def complaints(
    kind: Guest,
    events: Events,
    expected: Collection[str],
    *,
    lagging: bool = False,
    interrupted: bool = False,
    late: bool = False,
) -> list[str]:
    """Where a guest's events in one process differ from the documented order."""
    words = "".join(f"{event} " for event, _ in events)
    story = _Story(expected, lagging, interrupted)
    pattern = story.hook() if kind == "hook" else story.callback()
    found = []
    if re.fullmatch(pattern, words) is None:
        found.append(f"received {shortened(words)}; expected {pattern}")
    return found + _numbers(events, late)


class _Story:
    """The documented order as a regular expression over event names."""

    def __init__(
        self, expected: Collection[str], lagging: bool, interrupted: bool
    ) -> None:
        self._expected = expected
        self._lagging = lagging
        self._interrupted = interrupted

    def hook(self) -> str:
        return (
            self._one("begin")
            + self._one("after_create_session")
            + self._steps("before_run", "after_run")
            + self._tail(self._maybe("before_run"), self._one("end"))
        )

    def callback(self) -> str:
        steps = self._steps("on_train_batch_begin", "on_train_batch_end")
        batches = self._steps("on_test_batch_begin", "on_test_batch_end")
        test = self._one("on_test_begin") + batches + self._one("on_test_end")
        begin, end = map(self._one, ("on_epoch_begin", "on_epoch_end"))
        epochs = self._any(begin + steps + test + end)
        unfinished = f"(?:{steps})?{self._maybe('on_train_batch_begin')}"
        cut = f"(?:{begin}{unfinished})?"
        return (
            "".join(map(self._one, ("set_model", "set_params", "on_train_begin")))
            + epochs
            + self._tail(cut, self._one("on_train_end"))
        )

    def _tail(self, cut: str, end: str) -> str:
        """The end of the events, or the place where an interruption cut them."""
        return f"(?:{end}|{cut})" if self._interrupted else end

    def _one(self, event: str) -> str:
        return f"{event} " if event in self._expected else ""

    def _maybe(self, event: str) -> str:
        return f"(?:{self._one(event)})?"

    def _any(self, *choices: str) -> str:
        given = [choice for choice in choices if choice]
        return f"(?:{'|'.join(given)})*" if given else ""

    def _steps(self, begin: str, end: str) -> str:
        edges = self._one(begin), self._one(end)
        steps = self._any(*edges) if self._lagging else self._any("".join(edges))
        return f"{steps[:-1]}+" if steps else ""


def _numbers(events: Events, late: bool) -> list[str]:
    """Checks that epochs rise without gaps, and that batches rise in each epoch."""
    found = []
    first = next((n for event, n in events if event.startswith("on_epoch")), 0)
    first = first if late else 0
    for edge in ("begin", "end"):
        epochs = [number for event, number in events if event == f"on_epoch_{edge}"]
        if epochs != list(range(first, first + len(epochs))):
            found.append(
                f"on_epoch_{edge} of {epochs}; expected "
                f"{first}, {first + 1}, {first + 2} and so on"
            )
        last = -1
        for event, number in events:
            if event.startswith("on_epoch"):
                last = -1
            elif event == f"on_train_batch_{edge}":
                if number <= last:
                    found.append(f"{event}({number}) came after {event}({last})")
                    break
                last = number
    return found


def shortened(words: str) -> str:
    """A sequence of events in which each repeated part is shown once."""
    for size in (1, 2, 3, 4, 5, 6):
        again = re.compile(rf"((?:[^ \[\]]+ ){{{size}}})\1+")
        words = again.sub(lambda match: f"[{match[1].strip()}]... ", words)
    return words if len(words) < 400 else words[:400] + "..."

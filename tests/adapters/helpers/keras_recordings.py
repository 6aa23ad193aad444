"""What each recorded scenario of `Model.fit` is in a session loop.

`tests/traces/data/keras_*.json` hold 37 scenarios, recorded on tf.keras 2.15,
Keras 3.15 and tf_keras 2.21: which callback was called with which index, optimizer
step, stop flag, keys and types of `logs`; what was raised; what escaped. A scenario
that is not in `DIFFERENCES` is *same*. `write_tables.py` writes the table
of `tests/traces/recorded_fits.md` anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).resolve().parents[3]
PAGE = _ROOT / "tests" / "traces" / "recorded_fits.md"
BEGIN = "<!-- recorded scenarios: tests/adapters/helpers/keras_recordings.py -->\n"
END = "<!-- end of the recorded scenarios -->\n"
Events = list[list[Any]]
TF_KERAS, KERAS_2, KERAS_3 = "tf_keras 2.21", "tf.keras 2.15", "Keras 3.15"


def _read(name: str) -> dict[str, Events]:
    path = _ROOT / "tests" / "traces" / "data" / f"keras_{name}.json"
    return json.loads(path.read_text("utf-8"))["scenarios"]  # type: ignore[no-any-return]


RECORDED = {
    KERAS_2: _read("2_15"),
    KERAS_3: _read("3_15"),
    TF_KERAS: _read("tf_keras_2_21"),
}
SCENARIOS = tuple(RECORDED[KERAS_2])


def flavour_of(keras: Any) -> str:
    """The recording that a Keras module is compared with."""
    if keras.__name__ == "tf_keras":
        return TF_KERAS
    return KERAS_3 if keras.__version__.startswith("3") else KERAS_2


class Difference(NamedTuple):
    """Why the events in a session loop are not the recorded ones."""

    because: str
    events: Callable[[str], Events]
    flavours: tuple[str, ...] = (KERAS_2, KERAS_3, TF_KERAS)


def _as_keras_2(scenario: str) -> Events:
    return RECORDED[KERAS_2][scenario]


def _ends_cleanly(scenario: str) -> Events:
    """The recorded events until the exception, then the end of a clean run."""
    recorded = _as_keras_2(scenario)
    at = [event[0] for event in recorded].index("RAISE")
    name = recorded[at - 1]
    steps, keys, types = name[3], name[5], name[6]
    return [
        *recorded[: at + 1],
        *(["on_train_end", c, None, steps, False, keys, types] for c in "AXB"),
        # X raised before the History, the last callback, got the epoch.
        ["RETURNED", 0, []],
        ["AFTER", False, steps],
    ]


def _two_steps_later(scenario: str) -> Events:
    """The recorded events, two steps later: an earlier session took epoch 0."""
    moved = [list(event) for event in _as_keras_2(scenario)]
    for event in moved:
        if event[0].startswith("on_"):
            event[3] += 2
        elif event[0] == "AFTER":
            event[2] += 2
    return moved


def _without_empty_steps(scenario: str) -> Events:
    """Keras 3's events; their step does not count steps that found no data."""
    events = [list(event) for event in RECORDED[KERAS_3][scenario]]
    ended = 0
    for event in events:
        ended += event[0] == "on_epoch_end"
        if event[0].startswith("on_"):
            event[3] -= ended
        elif event[0] == "AFTER":
            event[2] -= ended
    return events


_END_OF_DATA = (
    "`MonitoredSession` takes `StopIteration` and `OutOfRangeError` out of a hook as "
    "the end of the data: nothing escapes, and the run ends with `on_train_end`"
)
DIFFERENCES: dict[str, Difference] = {
    "initial_epoch": Difference(
        "epochs are counted by the global step: a run begins at epoch 1 because an "
        "earlier one took the steps of epoch 0, so the step begins at 2",
        _two_steps_later,
    ),
    **{
        f"{error}_in_{event}": Difference(_END_OF_DATA, _ends_cleanly)
        for error in ("stopiteration", "outofrange")
        for event in ("on_epoch_begin", "on_train_batch_begin", "on_epoch_end")
    },
    **{
        f"{error}_in_on_train_batch_end": Difference(
            "the session ends, as Keras 2 does; Keras 3 goes on with its next epoch",
            _as_keras_2,
            (KERAS_3,),
        )
        for error in ("stopiteration", "outofrange")
    },
    "dataset_unknown_size": Difference(
        "the step counts training steps only; Keras also counts the one that found no "
        "data. Keras 2 knows the size from its second epoch on and tries no further "
        "step; a session finds the end of its data in each epoch, as Keras 3 does",
        _without_empty_steps,
    ),
}
# How the session loop produces a scenario, where that is not obvious.
LOOPS: dict[str, str] = {
    "evaluate": "a session on an evaluation graph (with an eval step)",
    "predict": "a session on a graph without a train op",
    "steps_per_execution": "a train op that takes two steps",
    "dataset_too_short": "the loop initializes the iterator at each epoch, as `fit` "
    "makes a new one",
    "dataset_unknown_size": "the loop initializes the iterator when its data ends",
}


def expected(scenario: str, flavour: str) -> Events:
    """The events of a scenario in a session loop."""
    difference = DIFFERENCES.get(scenario)
    if difference is None or flavour not in difference.flavours:
        return RECORDED[flavour][scenario]
    return difference.events(scenario)


def table() -> str:
    """The rows of the documentation: scenarios with the same remark share a row."""
    groups: dict[tuple[str, str], list[str]] = {}
    for scenario in SCENARIOS:
        difference = DIFFERENCES.get(scenario)
        remarks = [LOOPS[scenario]] if scenario in LOOPS else []
        kind = "same"
        if difference is not None:
            kind = "different"
            if len(difference.flavours) < len(RECORDED):
                kind = f"same; different from {', '.join(difference.flavours)}"
            remarks.append(difference.because)
        groups.setdefault((kind, "; ".join(remarks)), []).append(f"`{scenario}`")
    plain = groups.pop(("same", ""))
    rows = [f"{len(plain)} are the same without a remark. The others:", ""]
    rows += ["| scenario | in a session loop | |", "|---|---|---|"]
    for (kind, remark), names in groups.items():
        rows.append(f"| {', '.join(names)} | {kind} | {remark} |")
    return BEGIN + "\n" + "\n".join(rows) + "\n\n" + END

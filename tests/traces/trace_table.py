"""The table of the scenarios in `tests/traces/README.md`.

`python tests/traces/trace_table.py` writes it.
"""

from __future__ import annotations

from pathlib import Path

import classification as c
from trace_events import RECORDED

PATH = Path(__file__).resolve().parent / "README.md"

_HEAD = """\
# Recorded scenarios

{total} scenarios were recorded on `MonitoredTrainingSession`s of TensorFlow 1.15,
2.15 and 2.21: which hook method ran with which global step and stop flag, what it
fetched, what was raised and what escaped. This is what each of them is when a Keras
model is the host.

| class | scenarios |
|---|---|
| same in fit | {same} |
| different because ... | {different} |
| has no meaning in fit | {meaningless} |

*Same*: a test runs the scenario and compares its events with the recorded ones.
**fit**: each run is a batch of `Model.fit`, on every Keras flavour, without what only
a session loop has. **live session**: `fit` has no such event, for the reason given;
TensorFlow's own `MonitoredTrainingSession` runs the scenario over a live session of a
Keras model. Those marked \u2020 are compared in both. A message is equal when it
starts with TensorFlow's text. *Different* scenarios are compared with the events that
this table promises. In `fit` of a v1 graph `tests/v1_mode/test_trace_graph_fit.py`
runs those marked **fit** too. `tests/traces/trace_table.py` writes this file.

"""


def text() -> str:
    """The whole file."""
    head = _HEAD.format(
        total=len(RECORDED),
        same=len(c.with_verdict(c.SAME)),
        different=len(c.with_verdict(c.DIFFERENT)),
        meaningless=len(c.with_verdict(c.NO_MEANING)),
    )
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in RECORDED:
        groups.setdefault(_place(name), []).append(f"`{name}`")
    rows = ["| class | tested in | why | scenarios |", "|---|---|---|---|"]
    rows += [f"| {' | '.join(k)} | {', '.join(names)} |" for k, names in groups.items()]
    return head + "\n".join(rows) + "\n"


def _place(name: str) -> tuple[str, str, str]:
    """Class of a scenario, where it is tested, and the remark."""
    kind, where, remark = c.verdict(name), "fit", ""
    if kind == c.NO_MEANING:
        where, remark = "", c.MEANINGLESS[name]
    elif kind == c.DIFFERENT:
        difference = c.DIFFERENCES[name]
        kind, remark = "different because", difference.because
        where = {"fit": "fit", "session": "live session"}[difference.where]
    elif name in c.SESSION_ONLY:
        where, remark = "live session", c.SESSION_ONLY[name]
    elif name in c.same_in_session():
        where = "fit \u2020"
    return kind, where, remark


if __name__ == "__main__":
    PATH.write_text(text(), "utf-8")

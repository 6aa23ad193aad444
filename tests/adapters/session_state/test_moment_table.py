"""The table of moments: each host, kind of value, end and place of the end.

A run ends in each of the ways that it has, within an epoch or at its end, and a new run
goes on from its files. Beside what `test_one_moment.py` draws by hypothesis this has no
holes; which steps are saved, and where the saver stands, changes from row to row.
`make test` has the ends of each host, each with one of its kinds of value. TF 2.15.1
has each third row of these.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from typing import Any

import pytest
from moment_hosts import EPOCHS, HOSTS, LAST, Ending, Left, left_by
from moment_rows import AT_END, ENDS, WITHIN, ending, expected

ONE_KERAS = True

HOST_KINDS = (
    *itertools.product(("session", "estimator"), ("fed", "variable", "local")),
    *itertools.product(("fit", "own_loop"), ("variable", "slot")),
)
# Rows that are tested with the fast tests.
FAST = (
    ("session", "fed", "epoch's callback", AT_END),
    ("estimator", "local", "epochs", AT_END),
    ("fit", "slot", "callback", AT_END),
    ("own_loop", "slot", "later hook", WITHIN),
)
TABLE = [
    (host, kind, *end) for (host, kind), end in itertools.product(HOST_KINDS, ENDS)
]


def is_sample(host: str, kind: str, end: tuple[str, int]) -> bool:
    """Whether `make test` has this end of the host with this kind of value."""
    kinds = [own for other, own in HOST_KINDS if other == host]
    turn = ENDS.index(end)
    if host in ("session", "fit"):
        return kind == kinds[(turn + turn // len(kinds)) % len(kinds)]
    # An Estimator has a session, and a loop of one's own does what `fit` does: these
    # two end in each way once, within an epoch or at its end.
    how = turn // 2
    is_place = end[0] in ("epoch's callback", "epochs") or turn % 2 == how % 2
    return is_place and kind == kinds[turn % len(kinds)]


def rows() -> list[Any]:
    """Each row of the table with one of the places of its saver."""
    cases, samples = [], itertools.count()
    for number, (host, kind, how, step) in enumerate(TABLE):
        marks = []
        if (host, kind, how, step) not in FAST:
            marks.append(pytest.mark.slow)
            if not is_sample(host, kind, (how, step)):
                marks.append(pytest.mark.exhaustive)
            elif next(samples) % 3:
                marks.append(pytest.mark.one_tensorflow)
        end = ending(how, step, number)
        name = f"{host}-{kind}-{how}-{step}"
        cases.append(pytest.param(host, kind, end, marks=marks, id=name))
    return cases


@pytest.mark.parametrize(("host", "kind", "end"), rows())
def test_a_run_goes_on(keras: Any, host: str, kind: str, end: Ending) -> None:
    undisturbed = left_by_one_run(keras.__name__, host, kind)
    assert (undisturbed.begins, undisturbed.ends) == (list(range(EPOCHS)), EPOCHS)
    left = left_by(keras, kind, HOSTS[host], [end, LAST])
    assert left == expected(undisturbed, host, end)


@functools.cache
def left_by_one_run(keras: str, host: str, kind: str) -> Left:
    """What one undisturbed run leaves."""
    return left_by(importlib.import_module(keras), kind, HOSTS[host], [LAST])

"""What each of the recorded scenarios is in `fit`: the table of README.md, read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hookbridge.ground.compat import LAST_WITH_KERAS2, installed_tf_version

SAME, DIFFERENT, NO_MEANING = (
    "same in fit",
    "different because",
    "has no meaning in fit",
)


class Row(NamedTuple):
    """A row of the table, without its scenarios and reason."""

    kind: str
    where: str  # "fit", "live session" or none


def _read() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    text = (Path(__file__).parent / "README.md").read_text("utf-8")
    for kind, where, names in re.findall(
        r"(?m)^\| (.*) \| (.*) \| .* \| (`.*) \|$", text
    ):
        for name in re.findall(r"`(\w+)`", names):
            assert name not in rows, f"{name} is in two rows"
            rows[name] = Row(kind, where)
    return rows


ROWS = _read()


def _rows(kind: str, where: str) -> list[str]:
    return [n for n, r in ROWS.items() if r.kind == kind and where in r.where]


# What runs in `fit`, and what runs on a live session with events of its own.
SAME_IN_FIT, DIFFERENT_IN_FIT = _rows(SAME, "fit"), _rows(DIFFERENT, "fit")
DIFFERENT_IN_SESSION = _rows(DIFFERENT, "live session")
SAME_IN_SESSION = _rows(SAME, "live session")

# One of each kind, for a host that shares with another what calls hooks.
SAMPLE = (
    "hook_creates_variable_in_begin",
    "stop_at_step_resume_num_steps",
    "out_of_range",
    "stopiteration_in_after_run",
    "recover_aborted_in_before_run_ckpt",
    "nested_fetches",
    "feeds_same_tensor_by_name_and_object",
    "checkpoint_listeners",
    "profiler_hook",
)
IS_NEWEST = installed_tf_version() > LAST_WITH_KERAS2


def with_sample(names: Iterable[str], *more: str) -> list[Any]:
    """All scenarios, of which `make test` has those of the sample and `more`."""
    return [
        pytest.param(
            name, marks=[] if name in (*SAMPLE, *more) else [pytest.mark.exhaustive]
        )
        for name in names
    ]

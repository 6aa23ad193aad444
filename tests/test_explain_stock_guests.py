"""`explain` never raises and never writes, for every stock guest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from callback_support import STOCK, stock_of
from hook_support import ROWS

import hookbridge as hb
from hookbridge.explanation import HOSTS

# Audit events that change the disk; `open` counts too if it opens for writing.
_WRITES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "tempfile.mkstemp")
_seen: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def _audited() -> Iterator[None]:
    is_on = [True]

    def audit(event: str, args: tuple[Any, ...]) -> None:
        opens = event == "open" and any(c in str(args[1]) for c in "wax+")
        if is_on and (event in _WRITES or opens):
            _seen.append(f"{event}{args}")

    sys.addaudithook(audit)  # cannot be removed
    yield
    is_on.clear()


def assert_told(guest: Any) -> None:
    """Each host gives a verdict, with a reason if it refuses; nothing is written."""
    _seen.clear()
    for host in HOSTS:
        (report,) = hb.explain(guest, host).guests
        assert bool(report.reason) is (report.verdict == "refused"), host
    # A hook's writer makes its event files on a thread of its own.
    assert not [each for each in _seen if "tfevents" not in each]


def test_callbacks(keras: Any, tmp_path: Path) -> None:
    for name in stock_of(keras):
        for folder in (tmp_path, tmp_path / "nowhere"):
            assert_told(STOCK[name](keras.callbacks, folder))


def test_hooks(tmp_path: Path) -> None:
    for row in ROWS:
        for folder in (tmp_path, tmp_path / "nowhere"):
            assert_told(row.make(folder, "fit"))


def test_the_watch_sees_what_is_written(tmp_path: Path) -> None:
    _seen.clear()
    (tmp_path / "file").write_text("x")
    assert len(_seen) == 1

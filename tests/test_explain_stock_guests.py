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
from hookbridge.explanation import HOSTS, Host

# Audit events that change the disk; `open` counts too if it opens for writing.
_WRITES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "tempfile.mkstemp")
_seen: list[str] | None = None


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if _seen is None:
        return
    writes = event == "open" and any(c in str(args[1]) for c in "wax+")
    if event in _WRITES or writes:
        _seen.append(f"{event}{args}")


@pytest.fixture(scope="module")
def _audited() -> None:
    sys.addaudithook(_audit)  # cannot be removed; does nothing outside of `writes`


@pytest.fixture
def writes(_audited: None) -> Iterator[list[str]]:
    """What is written while the test runs."""
    global _seen
    _seen = []
    yield _seen
    _seen = None


def files(folder: Path) -> list[Path]:
    """All files but event files, which a hook's writer makes on its own thread."""
    return sorted(f for f in folder.rglob("*") if "tfevents" not in f.name)


def assert_told(guest: Any, folder: Path, writes: list[str]) -> None:
    """Each host gives a verdict, with a reason if it refuses; nothing is written."""
    before = files(folder)
    writes.clear()
    for host in HOSTS:
        (report,) = hb.explain(guest, host).guests
        assert bool(report.reason) is (report.verdict == "refused"), host
    assert not writes
    assert files(folder) == before


@pytest.mark.parametrize("name", STOCK)
def test_callback(name: str, keras: Any, tmp_path: Path, writes: list[str]) -> None:
    if name not in stock_of(keras):
        pytest.skip(f"{keras.__name__} has no {name}")
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert_told(STOCK[name](keras.callbacks, folder), tmp_path, writes)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_hook(row: Any, tmp_path: Path, writes: list[str]) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert_told(row.make(folder, "fit"), tmp_path, writes)


def test_the_watch_sees_what_is_written(tmp_path: Path, writes: list[str]) -> None:
    (tmp_path / "file").write_text("x")
    host: Host = "session"
    assert host in HOSTS and len(writes) == 1

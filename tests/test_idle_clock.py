"""The clock of time limits counts what the tests could have used of the machine."""

from __future__ import annotations

import time
from pathlib import Path

import idle_clock
import pytest

ONE_TENSORFLOW = True


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a container says what it may use and has used."""
    monkeypatch.setattr(idle_clock, "CONTAINER", tmp_path)
    return tmp_path


def test_it_counts_idle_cores_where_nothing_is_limited(container: Path) -> None:
    for limit in (None, "max 100000\n"):
        if limit is not None:
            (container / "cpu.max").write_text(limit)
        first = idle_clock.idle_secs()
        assert 0 <= first <= idle_clock.idle_secs()


def test_the_cores_of_a_container_are_idle_while_it_does_not_use_them(
    container: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the machine may have nothing to do while a busy container waits."""
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    (container / "cpu.max").write_text("200000 100000\n")  # two cores
    (container / "cpu.stat").write_text("usage_usec 150000000\nuser_usec 1\n")
    assert idle_clock.idle_secs() == 25.0

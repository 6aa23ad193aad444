"""Recordings that several files of this folder compare ports with."""

from __future__ import annotations

from pathlib import Path

import pytest
import real_programs
from real_ports import RIGHT


@pytest.fixture(scope="session")
def real_references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The four programs, recorded once."""
    found = {}
    for name in RIGHT:
        found[name] = tmp_path_factory.mktemp("reference") / name
        real_programs.record(name, found[name])
    return found

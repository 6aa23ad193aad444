"""Recordings that several files of this folder compare ports with."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The four programs, recorded once."""
    import real_programs  # TensorFlow is imported by tests that need it
    from real_ports import RIGHT

    found = {}
    for name in RIGHT:
        found[name] = tmp_path_factory.mktemp("reference") / name
        real_programs.record(name, found[name])
    return found

"""Known troubles of installed versions are said at the first use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ONE_TENSORFLOW = True
ROOT = Path(__file__).resolve().parent.parent


def test_known_troubles_are_said_once_at_the_first_use(tmp_path: Path) -> None:
    for name, version in (("tensorflow", "2.20.0"), ("protobuf", "7.34.2")):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    done = subprocess.run(
        [sys.executable, "-c", "import hookbridge as hb; hb.errors; hb.data"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert done.stderr.count('correct it with `pip install "protobuf<7"`') == 1

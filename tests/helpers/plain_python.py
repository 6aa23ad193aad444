"""The real interpreter, for what has to be imported from a certain place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_python(code: str, path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a folder, with another folder or a wheel as the only path."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(path)},
    )

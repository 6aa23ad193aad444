"""Records what the programs in `programs/` do on the TensorFlow they were written for.

    PYTHONPATH=tests/helpers python tests/migrate/record_programs.py [NAME...]

Run it with the Python of TensorFlow 2.15.1, and again with that of TensorFlow 1.15.5;
`tests/run/record_program_losses.py` says how to install the latter. Nothing of
hookbridge is imported; the rows of other versions stay.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from left_files import files_of
from migrated import NATIVE, PROGRAMS, RECORDED, told


def main() -> None:
    """Records the programs of this TensorFlow."""
    import tensorflow as tf

    rows = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for name, version in NATIVE.items():
        asked = name in (sys.argv[1:] or NATIVE)
        if not asked or not tf.__version__.startswith(version):
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, str(PROGRAMS / f"{name}.py")],
                cwd=folder,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            rows[name] = {
                "tensorflow": tf.__version__,
                "told": told(done.stdout),
                "files": files_of(Path(folder)),
            }
        RECORDED.write_text(_as_text(rows))
        print(name, len(rows[name]["told"]), len(rows[name]["files"]))


def _as_text(rows: dict[str, Any]) -> str:
    lines = [f'"{name}": {json.dumps(rows[name])}' for name in sorted(rows)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()

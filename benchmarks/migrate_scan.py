"""Seconds to scan many files, on one core.

    python -m benchmarks.migrate_scan --files=1000
    python -m benchmarks.migrate_scan PATH...

Without paths, the files are copies of the Python files of this project's tests.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from hookbridge import old_programs as migrate

ROOT = Path(__file__).resolve().parent.parent


def copies(folder: Path, count: int) -> None:
    """Writes `count` files into `folder`."""
    sources = sorted((ROOT / "tests").rglob("*.py"))
    for number in range(count):
        source = sources[number % len(sources)]
        shutil.copy(source, folder / f"m{number}_{source.name}")


def main() -> None:
    """Prints the numbers of files, findings and unread files, and the CPU seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="copies to scan")
    parser.add_argument("paths", nargs="*", help="files or folders to scan instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        if not options.paths:
            copies(Path(work), options.files)
        start = time.process_time()
        report = migrate.scan(options.paths or [work])
        secs = time.process_time() - start
    print(
        f"{report.files} files, {len(report.findings)} findings, "
        f"{len(report.unread)} not read: {secs:.1f} CPU seconds"
    )


if __name__ == "__main__":
    main()

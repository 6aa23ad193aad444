"""Runs each Python program of a page, in this interpreter and this folder.

python .ci/run_readme.py README.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def main(page: str) -> None:
    programs = PROGRAM.findall(Path(page).read_text(encoding="utf-8"))
    if not programs:
        raise SystemExit(f"{page} has no program")
    for program in programs:
        exec(compile(program, page, "exec"), {"__name__": "__main__"})
    print(f"{len(programs)} programs of {Path(page).name} have run.")


if __name__ == "__main__":
    main(sys.argv[1])

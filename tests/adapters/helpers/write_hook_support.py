"""Writes what docs/hook-support.md says of each hook, from the table of the tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import hook_support as support  # noqa: E402 - needs the path


def main() -> None:
    path = ROOT / "docs" / "hook-support.md"
    text = path.read_text(encoding="utf-8")
    for first, made in (("Carried: ", support.carried()), ("- `", support.reasons())):
        block = rf"(?m)^{re.escape(first)}.*(\n.+)*"
        text = re.sub(block, lambda _, made=made: made, text, count=1)  # type: ignore[misc]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

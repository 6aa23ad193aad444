"""Writes the tables of stock hooks and of stock callbacks.

It runs every stock callback of the Kerases of this TensorFlow in every loop, which
takes a minute.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import callback_support  # noqa: E402 - needs the path
import hook_support  # noqa: E402


def replace(path: Path, pattern: str, text: str) -> None:
    """Puts a text in the place of a part of a page."""
    page, count = re.subn(pattern, lambda _: text, path.read_text("utf-8"), count=1)
    assert count == 1, f"{path} has no part like {pattern!r}"
    path.write_text(page, "utf-8")


def main() -> None:
    """Writes hooks and callbacks."""
    hooks = ROOT / "docs" / "hook-support.md"
    block = r"(?m)^{}.*(\n.+)*"
    replace(hooks, block.format(re.escape("Carried: ")), hook_support.carried())
    replace(hooks, block.format(re.escape("- `")), hook_support.reasons())
    for flavour in callback_support.FLAVOURS:
        keras = importlib.import_module(flavour)
        with tempfile.TemporaryDirectory() as folder:
            outcomes = callback_support.carry(keras, Path(folder))
        rows = callback_support.table_of(keras, outcomes)
        title = re.escape(rows.partition("\n")[0])
        replace(callback_support.TABLE, rf"(?m)^{title}\n\n(-.*\n)+", rows)


if __name__ == "__main__":
    main()

"""The outcomes of tests, as pytest's `--junitxml` has them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

KINDS = {"failure": "failed", "error": "failed", "skipped": "skipped"}


def read(report: Path) -> dict[str, str]:
    """Test -> "passed", "failed" or "skipped"."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        # `test_session` is a helper of TensorFlow's TestCase that looks like a test.
        if not name.endswith(".test_session"):
            outcomes = [KINDS[child.tag] for child in case if child.tag in KINDS]
            found[name] = min(outcomes, default="passed")
    return found

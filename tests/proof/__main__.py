"""Runs the tests of a code base of others through `hookbridge run`, and counts them.

    python -m tests.proof NAME [--source=PATH_OR_ADDRESS] [--native=PYTHON]

The code is copied into a temporary folder. With `--native`, that Python, which has a
TensorFlow of its own, runs the same tests without hookbridge, and each test with
another outcome is named; the exit code is 1 if there is one. docs/proof.md has the
results.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
THROUGH = ("-m", "hookbridge", "run", "--keras=2", "-m", "pytest")
NATIVE = ("-m", "pytest")


class CodeBase(NamedTuple):
    """A code base that somebody else wrote, with its own tests.

    Attributes:
      address: of its repository.
      revision: the commit that docs/proof.md speaks of.
      words: what pytest gets.
      needs: packages that its tests import, and the distributions that have them.
    """

    address: str
    revision: str
    words: tuple[str, ...]
    needs: tuple[tuple[str, str], ...] = ()


CODE_BASES = {
    "ranking": CodeBase(
        "https://github.com/tensorflow/ranking",
        "5b1d133",
        tuple(
            f"tensorflow_ranking/python/{name}_test.py"
            for name in ("estimator", "head", "model", "feature")
        ),
        (("tensorflow_serving", "tensorflow-serving-api"),),
    ),
    "tf-slim": CodeBase(
        "https://github.com/google-research/tf-slim",
        "1287b1e",
        (
            *("tf_slim/learning_test.py", "tf_slim/evaluation_test.py"),
            *("tf_slim/training", "tf_slim/summaries_test.py"),
        ),
        (("nose", "pynose"),),
    ),
}


def checkout(base: CodeBase, source: str, folder: Path) -> None:
    """Puts the revision of a code base into a folder."""
    subprocess.run(["git", "clone", "--quiet", source, str(folder)], check=True)
    words = ["git", "-C", str(folder), "checkout", "--quiet", base.revision]
    subprocess.run(words, check=True)


def outcomes(python: str, words: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Runs pytest in a folder.

    Returns:
      Test -> "passed", "failed" or "skipped".
    """
    report = folder / "outcomes.xml"
    report.unlink(missing_ok=True)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    subprocess.run(
        [python, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "CUDA_VISIBLE_DEVICES": "",
            # Not as arguments: tests may parse them as flags of their own.
            "PYTEST_ADDOPTS": f"-q -p no:cacheprovider --junitxml={report}",
        },
        check=False,
    )
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        # `test_session` is a helper of TensorFlow's TestCase that looks like a test.
        if not name.endswith(".test_session"):
            found[name] = _outcome(case)
    return found


def _outcome(case: ElementTree.Element) -> str:
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in kinds else "passed"


def counts(found: dict[str, str]) -> str:
    """The outcomes in one line."""
    numbers = collections.Counter(found.values())
    return ", ".join(f"{numbers[kind]} {kind}" for kind in sorted(numbers))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(CODE_BASES))
    parser.add_argument("--source", help="a local copy, or another address")
    parser.add_argument("--native", help="a Python that runs the tests by itself")
    values = parser.parse_args()
    base = CODE_BASES[values.name]
    for module, package in base.needs:
        if importlib.util.find_spec(module) is None:
            parser.error(f"its tests import {module}; pip install {package}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, values.name)
        checkout(base, values.source or base.address, folder)
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
        )
        through = outcomes(sys.executable, (*THROUGH, *base.words), folder)
        print(f"{values.name}: hookbridge: {counts(through)}")
        if values.native is None:
            return 0
        native = outcomes(values.native, (*NATIVE, *base.words), folder)
    print(f"{values.name}: native: {counts(native)}")
    others = sorted(
        name
        for name in native.keys() | through.keys()
        if native.get(name) != through.get(name)
    )
    for name in others:
        print(f"  {name}: native {native.get(name)}, hookbridge {through.get(name)}")
    return int(bool(others))


if __name__ == "__main__":
    sys.exit(main())

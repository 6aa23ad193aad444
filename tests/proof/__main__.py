"""Runs a code base of others through `hookbridge run`, and counts what passes.

    python -m tests.proof NAME [--source=PATH_OR_ADDRESS] [--native=PYTHON [--losses]]

What runs is in `code_bases.json`: tests of its own, or programs on small inputs; hooks
of it also run in `fit` (`guests.py`). The code is copied into a temporary folder. With
`--native`, that Python, which has a TensorFlow of its own, runs the same without
hookbridge, and each test or program with another outcome is named; the exit code is 1
if there is one. With `--losses` only trainings run, in both with the same seeds
(`same_seeds`): `hookbridge record` here, and natively what has the same files. The two
recordings are compared; so are losses that a training without an Estimator writes
itself. tests/proof/README.md has the results.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import inputs  # noqa: E402
from code_bases import CODE_BASES, CodeBase  # noqa: E402
from outcomes import read  # noqa: E402

from hookbridge.reference.comparison import Comparison, compare  # noqa: E402

THROUGH = ("-m", "hookbridge", "run")
STEPS = 10  # that are recorded and compared
# A file of tests that cannot be read is one failure.
_ADDED = "-q -p no:cacheprovider --continue-on-collection-errors"
ROUNDING = 1e-5  # how far losses that a program writes may differ, as a part of it
RECORDED = ("-m", "hookbridge", "record", f"--steps={STEPS}", "--then_stop")


def checkout(base: CodeBase, source: str, folder: Path) -> None:
    """Puts the revision of a code base into a folder; a plain folder is copied."""
    if (
        Path(source).is_dir()
        and not Path(source, "objects").is_dir()
        and (not Path(source, ".git").exists())
    ):
        shutil.copytree(source, folder)
        return
    subprocess.run(["git", "clone", "--quiet", source, str(folder)], check=True)
    words = ["git", "-C", str(folder), "checkout", "--quiet", base.revision]
    subprocess.run(words, check=True)


def outcomes(
    python: str, through: tuple[str, ...], base: CodeBase, copy: Path
) -> dict[str, str]:
    """Runs a code base: test or program -> "passed", "failed" or "skipped"."""
    out = Path(tempfile.mkdtemp(dir=copy.parent))
    getattr(inputs, base.inputs)(python, copy, out)
    found = of_tests(python, through, base, copy) if base.tests else {}
    lines = list(base.programs)
    options = base.options if through else ()
    if base.hooks and through:
        lines.append(f"--v2 {HERE / 'guests.py'} {base.hooks}")
    for line in lines:
        code = of_program([python, *through, *options], line, base, copy, out)
        found[line.partition(" --")[0] + f" #{len(found)}"] = (
            "failed" if code else "passed"
        )
    return found


def of_program(
    start: list[str],
    line: str,
    base: CodeBase,
    copy: Path,
    out: Path,
    more: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Runs a program, with `more` in its environment: its exit code."""
    words = [word.replace("{out}", str(out)) for word in (*start, *shlex.split(line))]
    if start[1:] == [] and ".ipynb" in line:
        words.insert(1, str(HERE / "native_notebook.py"))
    folder = copy.parent if base.is_package else copy
    env = {**environment(folder, *(copy / path for path in base.paths)), **more}
    if "PROOF_STEPS" in more:
        env["PYTHONPATH"] = f"{HERE / 'same_seeds'}{os.pathsep}{env['PYTHONPATH']}"
    return subprocess.run(words, cwd=folder, env=env, check=False).returncode


def recordings(
    python: str, through: tuple[str, ...], base: CodeBase, copy: Path
) -> dict[str, Path]:
    """Runs the trainings of a code base with the same seeds: program -> recording."""
    out = Path(tempfile.mkdtemp(dir=copy.parent))
    getattr(inputs, base.inputs)(python, copy, out)
    options = [word for word in base.options if through and "old_library" in word]
    found: dict[str, Path] = {}
    for number, line in enumerate(base.losses):
        folder = copy.parent / f"{out.name}-recorded-{number}"
        more = {"PROOF_STEPS": str(STEPS), "PYTHONHASHSEED": "0"}
        start = [python, *through, *options]
        if through:
            start.append(f"--to={folder}")
        else:
            more["PROOF_RECORDING"] = str(folder)
        of_program(start, line, base, copy, out, more)
        if (folder / "recording.json").exists():
            found[line.partition(" --")[0] + f" #{number}"] = folder
    return found


def told(
    python: str, through: tuple[str, ...], base: CodeBase, copy: Path
) -> dict[str, list[float]]:
    """Runs trainings that write their losses, with the same seeds: name -> losses."""
    out = Path(tempfile.mkdtemp(dir=copy.parent))
    getattr(inputs, base.inputs)(python, copy, out)
    more = {"PROOF_STEPS": str(STEPS), "PYTHONHASHSEED": "0"}
    for line in base.told:
        of_program([python, *through], line, base, copy, out, more)
    files = sorted(out.glob("*.losses"))
    return {file.stem: [float(one) for one in file.open()] for file in files}


def compare_told(python: str, base: CodeBase, copy: Path) -> int:
    """Prints how far losses that the programs write differ: the exit code."""
    ours = told(sys.executable, THROUGH, base, copy)
    native = told(python, (), base, copy)
    code = int(len(native) < len(base.told) or native.keys() != ours.keys())
    for name in sorted(native.keys() & ours.keys()):
        pairs = list(zip(native[name], ours[name], strict=True))
        difference = max(abs(b - a) / abs(a) for a, b in pairs)
        print(f"{base.address}: {name}: {difference:.1e} of the loss")
        code |= difference > ROUNDING
    return code


def compare_recordings(python: str, base: CodeBase, copy: Path) -> int:
    """Prints where each training first differs from the native one: the exit code."""
    ours = recordings(sys.executable, RECORDED, base, copy)
    native = recordings(python, (), base, copy)
    code = int(not native or native.keys() != ours.keys())
    for name in sorted(native.keys() & ours.keys()):
        result = compare(native[name], ours[name])
        print(f"{base.address}: {name}: {largest(result):.1e} of the loss\n{result}")
        code |= not result.is_same
    return code


def largest(result: Comparison) -> float:
    """The largest difference of the losses of a step, as a part of the loss."""
    pairs = zip(result.reference.steps, result.port.steps, strict=False)
    return max(abs((b.loss or 0) - (a.loss or 0)) / abs(a.loss or 1) for a, b in pairs)


def of_tests(
    python: str, through: tuple[str, ...], base: CodeBase, copy: Path
) -> dict[str, str]:
    """Runs pytest: test -> outcome."""
    report = copy / "outcomes.xml"
    report.unlink(missing_ok=True)
    more = ("--keras=2",) if through else ()
    # Not as arguments: tests may parse them as flags of their own.
    options = {"PYTEST_ADDOPTS": f"{_ADDED} --junitxml={report}"}
    subprocess.run(
        [python, *through, *more, "-m", "pytest", *base.tests],
        cwd=copy,
        env={**environment(copy, *(copy / path for path in base.paths)), **options},
        check=False,
    )
    return read(report)


def environment(*folders: Path) -> dict[str, str]:
    """The environment of a run: the code base comes first, and no GPU.

    Inputs import TensorFlow 2, which says in TF2_BEHAVIOR that it is on: TensorFlow
    1.15 would run eagerly.
    """
    found = (*map(str, folders), os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, found))
    env = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
    env.pop("TF2_BEHAVIOR", None)
    return env


def counts(found: dict[str, str]) -> str:
    """The outcomes in one line."""
    numbers = collections.Counter(found.values())
    return ", ".join(f"{numbers[kind]} {kind}" for kind in sorted(numbers))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(CODE_BASES))
    parser.add_argument(
        "--source", help="a local copy (a repository or a folder), or an address"
    )
    parser.add_argument("--native", help="a Python that runs the same by itself")
    parser.add_argument(
        "--losses", action="store_true", help="compare the trainings with --native's"
    )
    values = parser.parse_args()
    base = CODE_BASES[values.name]
    if values.losses and not (values.native and (base.losses or base.told)):
        parser.error("--losses needs --native, and a code base with trainings")
    for module, package in base.needs.items():
        if importlib.util.find_spec(module) is None:
            parser.error(f"it imports {module}; pip install {package}")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, values.name)
        checkout(base, values.source or base.address, copy)
        if values.losses:
            code = compare_recordings(values.native, base, copy) if base.losses else 0
            return code | (compare_told(values.native, base, copy) if base.told else 0)
        found = outcomes(sys.executable, THROUGH, base, copy)
        print(f"{values.name}: hookbridge: {counts(found)}")
        if values.native is None:
            return 0
        native = outcomes(values.native, (), base, copy)
    print(f"{values.name}: native: {counts(native)}")
    others = sorted(
        name
        for name in native.keys() | found.keys()
        if native.get(name) != found.get(name) and "guests.py" not in name
    )
    for name in others:
        print(f"  {name}: native {native.get(name)}, hookbridge {found.get(name)}")
    return int(bool(others))


if __name__ == "__main__":
    sys.exit(main())

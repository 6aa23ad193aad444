"""The table of names: documented, and true of the lists of names and TensorFlow."""

from __future__ import annotations

import importlib
import re
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookbridge.ground import compat
from hookbridge.ground.imports import installed
from hookbridge.old_programs.scanning.findings import CODES, VERDICTS
from hookbridge.tf1_names import contrib_names
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import (
    NEWEST,
    RELEASED,
    Target,
    newest_here,
    table,
    versions,
)


def test_every_verdict_is_documented(repo_root: Path) -> None:
    text = (repo_root / "docs" / "codes.md").read_text("utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    assert rows == set(VERDICTS)
    assert {code.verdict for code in CODES.values()} <= rows


def old_names() -> list[str]:
    """Every listed name of TensorFlow 1, of Estimator and of tf.contrib."""
    names = [f"tf.contrib.{path}" for path in contrib_names.NAMES]
    for area, listed in contrib_names.names().items():
        names += [f"tf.contrib.{area}.{name}" for name in listed]
    return names


@pytest.mark.parametrize("version", versions())
def test_every_way_out_is_a_name_that_its_place_has(version: str) -> None:
    target, asked = Target(version), old_names()
    assert NEWEST in versions()[-2:]  # the last one may be a candidate
    listed = table("tensorflow-2.15")
    for place, kind in (("tf", "v2"), ("tf.compat.v1", "v1"), ("tf", "v1")):
        asked += [f"{place}.{name}" for name in listed[kind][""]]
        asked += [f"{place}.estimator.{name}" for name in listed[kind]["estimator"]]
    for module in ("layers", "train", "losses", "summary", "nn.rnn_cell", "data"):
        asked += [f"tf.{module}.{name}" for name in listed["v1"][module]]
    assert len(asked) > 2000
    for name in asked:
        found = resolve(name, target)
        if found is not None and found.replacement:
            # The place has the name: nothing more becomes of it.
            assert resolve(found.replacement, target) is None, (name, found)
            if found.replacement.startswith("tf."):
                assert target.has(found.replacement), (name, found)


def fates() -> list[list[str]]:
    """Each row of the table, in three parts; one without a replacement ends empty."""
    lines = Path(__file__).with_name("fates.txt").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return [[name, code, *(way or [""])] for name, code, *way in rows]


@pytest.mark.parametrize(("name", "code", "replacement"), fates())
def test_what_becomes_of_a_name(name: str, code: str, replacement: str) -> None:
    found = resolve(name, Target(NEWEST))
    assert found is not None and found.code == code
    assert found.replacement.startswith(replacement) and bool(
        found.replacement
    ) is bool(replacement)


def test_the_package_of_estimator_has_one_replacement() -> None:
    """Also on a TensorFlow with Estimator: the package itself has the names of v1."""
    name = "DNNRegressor"
    for version in versions():
        found = resolve(f"tensorflow_estimator.estimator.{name}", Target(version))
        assert found is not None, version
        assert found.replacement == f"hookbridge.estimator.v1.{name}"


def names_of_1_15(kind: str) -> list[str]:
    """Every public name that TensorFlow 1.15 had: of "tf", or of "contrib"."""
    top = "tf" if kind == "tf" else "tf.contrib"
    return [
        f"{top}.{module}.{name}" if module else f"{top}.{name}"
        for module, names in table("public-1.15")[kind].items()
        for name in names
    ]


def column_of(name: str, target: Target) -> str:
    """The column of docs/migration.md that a name belongs to."""
    found = resolve(name, target)
    if found is None:
        return "as it is"
    return "another name" if found.replacement else "removed, with advice"


def test_every_name_of_1_15_has_an_answer_and_the_docs_count_them(
    subtests: pytest.Subtests,
    repo_root: Path,
) -> None:
    target = Target(NEWEST)
    text = (repo_root / "docs" / "migration.md").read_text("utf-8")
    for kind, title in (("tf", "`tf`"), ("contrib", "`tf.contrib`")):
        with subtests.test(str(kind)):
            names = names_of_1_15(kind)
            counts = Counter(column_of(name, target) for name in names)
            row = [
                counts[c] for c in ("as it is", "another name", "removed, with advice")
            ]
            cells = " | ".join(f"{number:,}" for number in (len(names), *row))
            assert f"| {title} | {cells} |" in text
            for name in names:
                found = resolve(name, target)
                assert found is None or found.way_out, name
                assert found is None or found.code != "MISSING", name


def test_the_lists_of_names_are_those_of_the_installed_tensorflow(
    subtests: pytest.Subtests,
) -> None:
    import tensorflow as tf

    version = ".".join(tf.__version__.split(".")[:2])
    if version not in versions():
        pytest.skip(f"there is no list of the names of TensorFlow {version} yet")
    target = Target(version)
    for name in ("train", "compat.v1.train", "data", "nn"):
        with subtests.test(str(name)):
            place = importlib.import_module(f"tensorflow._api.v2.{name}")
            public = [n for n in dir(place) if not n.startswith("_")]
            assert public
            assert [n for n in public if not target.has(f"tf.{name}.{n}")] == []
            assert not target.has(f"tf.{name}.no_such_name")


def test_private_names_are_those_of_the_installed_tensorflow(
    subtests: pytest.Subtests,
) -> None:
    target = Target(".".join(map(str, compat.installed_tf_version())))
    for module in ("ops.array_ops", "training.moving_averages", "util.nest"):
        with subtests.test(str(module)):
            place = f"tensorflow.python.{module}"
            there = [
                name for name in dir(importlib.import_module(place)) if name[0] != "_"
            ]
            assert there
            for name in there:
                found = resolve(f"{place}.{name}", target)
                assert found is not None and found.code == "PRIVATE", name
    python, placeholder = "tensorflow.python", "`tf.compat.v1.placeholder`"
    gone = {
        "ops.no_such_ops.conv2d": "your own code",
        "ops.no_such_ops.placeholder": placeholder,
        "util.nest.no_such_name": "your own code",
        "keras.engine.no_such_module.Network": "your own code",
    }
    for name, way in {**gone, "util.nest.placeholder": placeholder}.items():
        with subtests.test(str(name)):
            found = resolve(f"{python}.{name}", target)
            code = "PRIVATE_GONE" if name in gone else "V1_NAME"
            assert found is not None and (found.code, found.way_out) == (code, way)
    # Of another TensorFlow than the installed one nothing is known.
    others = [Target(version) for version in versions() if version != target.version]
    for other in others:
        found = resolve(f"{python}.no_such_module.x", other)
        assert found is not None and found.code == "PRIVATE"


def test_the_candidate_is_the_newest_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its private names are known there alone, so it is what doctor asks about."""
    (*_, candidate) = versions()
    major, minor = map(int, candidate.split("."))
    for found, newest in (
        (None, RELEASED),
        ((2, 15), RELEASED),
        ((major, minor), candidate),
        ((major, minor + 1), RELEASED),
    ):
        monkeypatch.setattr(installed, "tensorflow", lambda found=found: found)
        assert newest_here() == newest


def test_every_name_of_tf_slim_is_listed() -> None:
    seen: set[str] = set()

    def public(module: types.ModuleType, path: str) -> Iterator[str]:
        for name, value in vars(module).items():
            if name.startswith("_") or type(value).__name__ == "_Feature":
                continue
            if not isinstance(value, types.ModuleType):
                yield f"{path}.{name}"
            elif value.__name__.startswith("tf_slim.") and value.__name__ not in seen:
                seen.add(value.__name__)
                yield from public(value, f"{path}.{name}")

    names = list(public(importlib.import_module("tf_slim"), "tf_slim"))
    assert len(names) > 400
    outcomes = {name: resolve(name, Target(NEWEST)) for name in names}
    assert not [n for n, one in outcomes.items() if one and one.code == "MISSING"]

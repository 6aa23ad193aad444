"""The table of rules: documented, without duplicates, true of the real TensorFlow."""

from __future__ import annotations

import importlib
import itertools
import re
from pathlib import Path

import pytest

from hookbridge.migrate.findings import VERDICTS
from hookbridge.migrate.rules import OTHER_CODES, RULES, rule_for
from hookbridge.migrate.target import NEWEST, Target, versions


def test_every_code_is_documented_with_its_verdict(repo_root: Path) -> None:
    text = (repo_root / "docs" / "migration.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([A-Z0-9_]+)` \| (\w+) \|", text, re.M))
    expected = {rule.code: rule.verdict for rule in RULES}
    expected |= {code: verdict for code, (verdict, _) in OTHER_CODES.items()}
    assert rows == expected
    assert set(expected.values()) <= set(VERDICTS)


def test_no_two_rules_claim_the_same_prefix() -> None:
    prefixes = [prefix for rule in RULES for prefix in rule.prefixes]
    assert len(prefixes) == len(set(prefixes))
    for rule, prefix in itertools.product(RULES, prefixes):
        if prefix in rule.prefixes:
            assert rule_for(prefix) == (rule, prefix)


def test_the_longer_prefix_counts_and_only_whole_parts_do() -> None:
    found = rule_for("tf.contrib.framework.get_global_step")
    assert found is not None and found[0].code == "CONTRIB_GLOBAL_STEP"
    found = rule_for("tf.contrib.frameworks")
    assert found is not None and found[0].code == "CONTRIB"
    assert rule_for("tf.estimators") is None


@pytest.mark.parametrize("name", ["tf.train", "tf.compat.v1.train", "tf.data", "tf.nn"])
def test_the_lists_of_names_are_those_of_the_installed_tensorflow(name: str) -> None:
    import tensorflow as tf

    version = ".".join(tf.__version__.split(".")[:2])
    if version not in versions():
        pytest.skip(f"there is no list of the names of TensorFlow {version} yet")
    target = Target(version)
    place = importlib.import_module(f"tensorflow._api.v2.{name.removeprefix('tf.')}")
    public = [n for n in dir(place) if not n.startswith("_")]
    assert public
    assert [n for n in public if not target.has(f"{name}.{n}")] == []
    assert not target.has(f"{name}.no_such_name")


def test_the_newest_list_is_the_default_target() -> None:
    assert versions()[-1] == NEWEST

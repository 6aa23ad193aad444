"""The error for a missing `tf.estimator` says where it is; nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from fork_server import ForkServer

import hookbridge as hb
from hookbridge import compat, missing
from hookbridge.pages import pointer

HAS_ESTIMATOR = compat.tf_version() < (2, 16)
ROOT = Path(__file__).resolve().parent.parent
NAMESPACES = [tf, tf.compat.v1]


@pytest.fixture(autouse=True)
def told() -> None:
    missing.tell_of_estimator(tf)


@pytest.mark.skipif(HAS_ESTIMATOR, reason="this TensorFlow has tf.estimator")
@pytest.mark.parametrize("module", NAMESPACES, ids=["tf", "tf.compat.v1"])
def test_the_error_points_to_install_and_run(
    module: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test of this process may have installed it.
    monkeypatch.delattr(module, "estimator", raising=False)
    with pytest.raises(AttributeError) as e:
        module.estimator.Estimator  # type: ignore[attr-defined]  # noqa: B018
    text = str(e.value)
    assert "has no attribute 'estimator'" in text  # Python's own words
    assert "`hb.estimator.install()`" in text and "`hookbridge run" in text
    assert text.endswith(pointer("estimator"))
    assert e.value.name == "estimator"


@pytest.mark.parametrize("module", NAMESPACES, ids=["tf", "tf.compat.v1"])
def test_other_names_are_missed_as_before(module: object) -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'no_such_name'$"):
        module.no_such_name  # type: ignore[attr-defined]  # noqa: B018
    assert getattr(module, "no_such_name", 3) == 3
    assert not hasattr(module, "no_such_name")


def test_it_is_told_of_a_tensorflow_that_is_imported_later(
    launcher: ForkServer,
) -> None:
    """The import of hookbridge is enough; `install()` sets the real `tf.estimator`."""
    program = """
import importlib.util, sys
import hookbridge as hb
assert "tensorflow" not in sys.modules
assert importlib.util.find_spec("no_such_package") is None
assert importlib.util.find_spec("tensorflow").name == "tensorflow"
assert "tensorflow" not in sys.modules
import tensorflow as tf
assert not [f for f in sys.meta_path if type(f).__module__ == "hookbridge.missing"]
assert "exec_module" not in vars(tf.__spec__.loader)
if "estimator" not in dir(tf):
    assert not hasattr(tf, "estimator")
    try:
        tf.estimator
    except AttributeError as e:
        assert "hb.estimator.install()" in str(e), e
    assert not hasattr(tf, "estimator") and not hasattr(tf.compat.v1, "estimator")
hb.estimator.install()
assert tf.estimator.Estimator and tf.compat.v1.estimator.Estimator
"""
    done = launcher.run("-c", program)
    assert done.returncode == 0, done.stderr


def test_known_troubles_are_said_once_at_the_first_use(tmp_path: Path) -> None:
    for name, version in (("tensorflow", "2.20.0"), ("protobuf", "7.34.2")):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    done = subprocess.run(
        [sys.executable, "-c", "import hookbridge as hb; hb.errors; hb.data"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert done.stderr.count('mend it with `pip install "protobuf<7"`') == 1


def test_telling_twice_is_telling_once() -> None:
    before = vars(tf).get("__getattr__")
    missing.tell_of_estimator(tf)
    assert vars(tf).get("__getattr__") is before
    assert hb.estimator

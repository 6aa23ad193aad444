"""tf.contrib under `hookbridge run`: living names act as on TensorFlow 1.15."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer, fork_server
from launching import PROGRAMS, launch_fork

from hookbridge.contrib import namespace

CONTRIB = PROGRAMS / "contrib"
# Written by `python3.7 tests/run/programs/contrib/areas.py FILE` on TensorFlow 1.15.5.
RECORDED = Path(__file__).with_name("data") / "contrib_areas_1_15.json"

# Name of tf.contrib -> its arguments on TensorFlow 1.15.5.
SIGNATURES = RECORDED.with_name("contrib_signatures_1_15.json")


def is_close(a: Any, b: Any) -> bool:
    """Whether two structures are equal, numbers to about the precision of float32."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_close(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=2e-4, abs_tol=2e-4)
    return bool(a == b)


@pytest.fixture(scope="module")
def launcher() -> Iterator[ForkServer]:
    with fork_server(tensorflow=False) as server:
        yield server


@pytest.fixture(scope="module")
def areas(tmp_path_factory: pytest.TempPathFactory, launcher: ForkServer) -> Any:
    out = tmp_path_factory.mktemp("areas") / "found.json"
    done = launch_fork(launcher, "areas.py", str(out), cwd=CONTRIB)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("area", sorted(json.loads(RECORDED.read_text())))
def test_an_area_acts_as_on_1_15(areas: Any, area: str) -> None:
    recorded = json.loads(RECORDED.read_text())[area]
    assert is_close(areas[area], recorded), (areas[area], recorded)


@pytest.mark.slow
def test_what_is_gone_raises_when_it_is_used(launcher: ForkServer) -> None:
    done = launch_fork(launcher, "gone.py", cwd=CONTRIB)
    said = json.loads(done.stdout)
    assert said[:2] == ["placeholder", None]
    # If the program catches the ImportError of an import, that import fails.
    assert said[2] == "No module named 'tensorflow.contrib.image'"
    assert said[3] is False
    for text, name, line in zip(
        said[4:],
        ("gan.GANModel", "opt.AdamWOptimizer", "learn.DNNClassifier", "timeseries."),
        (29, 23, 31, 32),
        strict=True,
    ):
        assert text.startswith(f"tf.contrib.{name}"), text
        assert f"gone.py:{line}" in text
        assert "Way out: " in text
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("hookbridge.errors.GoneNameError: tf.contrib.gan.gan_train")
    assert "/hookbridge/" not in done.stderr


@pytest.mark.parametrize(
    ("name", "arguments"), sorted(json.loads(SIGNATURES.read_text()).items())
)
def test_a_name_takes_the_arguments_of_1_15(name: str, arguments: str) -> None:
    found, wanted = namespace.find(name), arguments.split()
    is_ours = found.__module__.startswith("hookbridge")
    if inspect.isclass(found) and not is_ours:  # TensorFlow wraps some constructors
        found = inspect.unwrap(found.__init__).__get__(found)
    parameters = inspect.signature(found).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    # TensorFlow's own functions may have got more arguments.
    assert (names if is_ours else names[: len(wanted)]) == wanted

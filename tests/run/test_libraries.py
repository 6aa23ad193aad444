"""Libraries under `run`: they see TensorFlow 2, with Estimator where they look for it.

The look-alikes in programs/libraries/site-packages import what Horovod, Optuna,
AdaNet, TF-GAN and Polyaxon import.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launching import PROGRAMS, ROOT, launch

from hookbridge import compat
from hookbridge.estimator import places
from hookbridge.run.located import OLD_LIBRARIES, OwnCode

LIBRARIES = PROGRAMS / "libraries"
V1_PLACES = ["compat.v1.placeholder", "compat.v1.layers", "compat.v1.app"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("model")
    paths = f"{LIBRARIES / 'site-packages'}:{ROOT}"
    done = launch("train.py", str(folder), cwd=LIBRARIES, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_hooks_of_libraries_work(seen: Any) -> None:
    assert (seen["runs"], seen["summaries"]) == (3, 3)
    assert (seen["head"], seen["metrics"]) == ("RegressionHead", 0)


@pytest.mark.slow
def test_libraries_see_tensorflow_2(seen: Any) -> None:
    assert seen["sees"] == [False, False, "tensorflow"]


@pytest.mark.slow
def test_tensorflows_modules_get_what_is_listed_and_no_more(seen: Any) -> None:
    ours = [place for place in seen["places"] if place not in V1_PLACES]
    listed = [f"{place}.estimator".partition(".")[2] for place in places.PLACES]
    assert ours and set(ours) <= set(listed), (ours, compat.tf_version())


def test_installed_code_is_not_the_programs_own(tmp_path: Path) -> None:
    own = OwnCode(str(tmp_path))
    assert str(tmp_path / "helper.py") in own
    assert str(tmp_path / "venv" / "lib" / "site-packages" / "helper.py") not in own
    assert json.__file__ not in own
    assert str(ROOT / "hookbridge" / "errors.py") not in own
    for part in OLD_LIBRARIES:
        assert str(tmp_path / "site-packages" / part) in own

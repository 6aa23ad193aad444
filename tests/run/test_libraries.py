"""Libraries under `run`: they see TensorFlow 2, with Estimator where they look for it.

The look-alikes in programs/libraries/site-packages import what Horovod, Optuna,
AdaNet, TF-GAN and Polyaxon import.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from launching import ON_NEWEST, PROGRAMS, ROOT, launch_fork

from hookbridge.estimator import places
from hookbridge.ground import compat
from hookbridge.old_programs.run.located import OwnCode
from hookbridge.old_programs.scanning import diagnosis

LIBRARIES = PROGRAMS / "libraries"
V1_PLACES = ["compat.v1.placeholder", "compat.v1.layers", "compat.v1.app"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, launcher: ForkServer) -> Any:
    folder = tmp_path_factory.mktemp("model")
    paths = f"{LIBRARIES / 'site-packages'}:{ROOT}"
    words = ("train.py", str(folder))
    done = launch_fork(launcher, *words, cwd=LIBRARIES, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_hooks_of_libraries_work_and_see_tensorflow_2(seen: Any) -> None:
    assert (seen["runs"], seen["summaries"]) == (3, 3)
    assert (seen["head"], seen["metrics"]) == ("RegressionHead", 0)
    assert seen["sees"] == [False, False, "tensorflow"]
    # TensorFlow's modules get what is listed and no more.
    ours = [place for place in seen["places"] if place not in V1_PLACES]
    listed = [f"{place}.estimator".partition(".")[2] for place in places.PLACES]
    assert ours and set(ours) <= set(listed), (ours, compat.tf_version())


def test_installed_code_is_not_the_programs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnCode(str(tmp_path))
    for name in ("target", "more"):
        (tmp_path / name).mkdir()
    (tmp_path / "target" / "thing-1.0.dist-info").mkdir()  # `pip install --target`
    more = [str(tmp_path / "target"), str(tmp_path / "more")]
    monkeypatch.setattr(sys, "path", [*sys.path, *more])
    assert str(tmp_path / "target" / "thing" / "part.py") not in own
    assert str(tmp_path / "more" / "thing" / "part.py") in own
    assert (more[0] in own.roots(), more[1] in own.roots()) == (False, True)
    assert str(tmp_path / "helper.py") in own
    assert str(tmp_path / "venv" / "lib" / "site-packages" / "helper.py") not in own
    assert json.__file__ not in own
    assert str(ROOT / "hookbridge" / "errors.py") not in own
    assert str(tmp_path / "site-packages" / "tf_slim" / "ops.py") in own


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package of TensorFlow 1, and a module that is for both versions."""
    packages = tmp_path / "site-packages"
    (packages / "old_metrics").mkdir(parents=True)
    (packages / "old_metrics" / "__init__.py").write_text(
        "import tensorflow as tf\n"
        "from tensorflow.python.ops.metrics_impl import _streaming_confusion_matrix\n"
        "from old_metrics.more import mean\n"
        "def count(labels):\n"
        "    return tf.metrics.mean(tf.to_float(labels))\n"
    )
    (packages / "old_metrics" / "more.py").write_text(
        "import tensorflow as tf\ndef mean(x):\n    return tf.reduce_mean(x)\n"
    )
    (packages / "for_both.py").write_text(
        "import tensorflow as tf\n"
        "graph = getattr(tf, 'compat', tf).v1.get_default_graph\n"
        "try:\n    tf.placeholder\nexcept AttributeError:\n    pass\n"
        "HAS = hasattr(tf, 'placeholder')\n"
    )
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\nimport for_both, old_metrics\n"
        "print(for_both.HAS, old_metrics.more.tf.__name__, tf.placeholder)\n"
        "with tf.Session() as session:\n"
        "    value, update = old_metrics.count([1, 0])\n"
        "    session.run(tf.local_variables_initializer())\n"
        "    print('mean', session.run(update))\n"
    )
    monkeypatch.syspath_prepend(str(packages))
    return tmp_path


def test_the_source_of_a_library_says_what_it_means(installed: Path) -> None:
    packages, own = installed / "site-packages", OwnCode(str(installed))
    assert str(packages / "old_metrics" / "__init__.py") in own
    assert str(packages / "old_metrics" / "more.py") in own
    assert str(packages / "for_both.py") not in own
    named = OwnCode(str(installed), ["for_both"])
    assert str(packages / "for_both.py") in named
    (found,) = [
        one
        for one in diagnosis.diagnose([installed / "main.py"], "2.21").found
        if one.code == "OLD_LIBRARY"
    ]
    assert found.line == 2 and found.run and not found.person
    assert found.name.startswith("old_metrics (tf.to_float in __init__.py:5")


def test_the_doctor_says_what_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "main.py").write_text(
        "import os, own, json\n"
        "import horovod_of_nobody.tensorflow as hvd\n"
        "try:\n    import better_json as json\nexcept ImportError:\n    pass\n"
    )
    found = diagnosis.diagnose([tmp_path / "main.py"], "2.21")
    assert found.absent == ("horovod_of_nobody",)
    text = diagnosis.as_text(found)
    assert "imports horovod_of_nobody, which is not installed" in text
    verdict = "Nothing is missing, once horovod_of_nobody can be imported."
    assert text.startswith(verdict)


@ON_NEWEST
@pytest.mark.slow
def test_a_library_of_tensorflow_1_runs(installed: Path, launcher: ForkServer) -> None:
    path = f"{installed / 'site-packages'}:{ROOT}"
    done = launch_fork(launcher, "main.py", cwd=installed, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("False tensorflow ")
    assert "mean 0.5" in done.stdout

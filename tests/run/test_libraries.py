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
from written_files import write_files

from hookbridge.estimator import places
from hookbridge.ground import compat
from hookbridge.old_programs.run.located import OwnCode
from hookbridge.old_programs.scanning import diagnosis, verdict

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
    assert not own.is_adapted(str(tmp_path / "target" / "thing" / "part.py"))
    assert own.is_adapted(str(tmp_path / "more" / "thing" / "part.py"))
    assert (more[0] in own.roots(), more[1] in own.roots()) == (False, True)
    assert own.is_adapted(str(tmp_path / "helper.py"))
    assert not own.is_adapted(
        str(tmp_path / "venv" / "lib" / "site-packages" / "helper.py")
    )
    assert not own.is_adapted(json.__file__)
    assert not own.is_adapted(str(ROOT / "hookbridge" / "errors.py"))
    assert own.is_adapted(str(tmp_path / "site-packages" / "tf_slim" / "ops.py"))


def output_beside(launcher: ForkServer, packages: Path) -> str:
    """What `main.py` prints, whose folder has a folder of installed packages."""
    path, folder = f"{packages}:{ROOT}", packages.parent
    done = launch_fork(launcher, "main.py", cwd=folder, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


INSTALLED = {
    "old_metrics/__init__.py": "import tensorflow as tf\n"
    "from tensorflow.python.ops.metrics_impl import _streaming_confusion_matrix\n"
    "from old_metrics.more import mean\n"
    "def count(labels):\n"
    "    return tf.metrics.mean(tf.to_float(labels))\n",
    "old_metrics/more.py": "import tensorflow as tf\n"
    "def mean(x):\n    return tf.reduce_mean(x)\n",
    "for_both.py": "import tensorflow as tf\n"
    "graph = getattr(tf, 'compat', tf).v1.get_default_graph\n"
    "try:\n    tf.placeholder\nexcept AttributeError:\n    pass\n"
    "HAS = hasattr(tf, 'placeholder')\n",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package of TensorFlow 1, and a module that is for both versions."""
    packages = tmp_path / "site-packages"
    write_files(packages, INSTALLED)
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
    assert own.is_adapted(str(packages / "old_metrics" / "__init__.py"))
    assert own.is_adapted(str(packages / "old_metrics" / "more.py"))
    assert not own.is_adapted(str(packages / "for_both.py"))
    named = OwnCode(str(installed), ["for_both"])
    assert named.is_adapted(str(packages / "for_both.py"))
    (found,) = [
        one
        for one in diagnosis.diagnose([installed / "main.py"], "2.21").report.findings
        if one.code == "OLD_LIBRARY"
    ]
    assert found.line == 2 and found.run and not found.person
    assert found.name.startswith("old_metrics (tf.to_float in __init__.py:5")


@pytest.fixture
def losing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes installed packages that use removed names of NumPy, and a careful one."""
    packages = tmp_path / "site-packages"
    for name in ("old_gym", "old_gym/tests", "careful", "huge"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text("")
    (packages / "old_gym" / "__init__.py").write_text("from old_gym import space\n")
    (packages / "old_gym" / "space.py").write_text(
        "import numpy as np\n"
        "def low(n):\n    return np.zeros(n, np.float), np.product([n])\n"
    )
    (packages / "old_gym" / "tests" / "more.py").write_text(
        "import numpy as np\nnp.alltrue([1])\n"
    )
    (packages / "careful" / "__init__.py").write_text(
        "import numpy as np\n"
        "try:\n    product = np.product\nexcept AttributeError:\n"
        "    product = np.prod\n"
        "big = np.float_info = 'np.float'  # np.int\n"
        "if hasattr(np, 'int'):\n    np.int(3)\n"
    )
    for number in range(401):
        (packages / "huge" / f"m{number}.py").write_text("import numpy\nnumpy.float\n")
    (packages / "one_file.py").write_text("import numpy\nx = numpy.asscalar\n")
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\nimport os, careful, huge, one_file, old_gym\n"
        "print(tf.Session, old_gym.space.low(2)[1], one_file.x)\n"
    )
    monkeypatch.syspath_prepend(str(packages))
    return tmp_path


def test_removed_names_in_installed_packages_are_noted(losing: Path) -> None:
    found = diagnosis.diagnose([losing / "main.py"], "2.21")
    noted = [one for one in found.report.findings if one.code == "LIBRARY_LOSS"]
    assert [(one.name, one.line) for one in noted] == [
        ("old_gym (numpy.float in space.py:3, and 1 more)", 2),
        ("one_file (numpy.asscalar in one_file.py:2)", 2),
    ]
    assert all(one.run and not one.person and not one.migrate for one in noted)
    assert found.left == 0


@ON_NEWEST
@pytest.mark.slow
def test_a_package_with_lost_names_runs(losing: Path, launcher: ForkServer) -> None:
    output_beside(launcher, losing / "site-packages")


def test_packages_that_star_each_other_lack_what_none_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "round_a.py").write_text(
        "from round_b import *\nfrom round_a import *\n"
    )
    (packages / "round_b.py").write_text("from round_a import *\nthere = 3\n")
    monkeypatch.syspath_prepend(str(packages))
    main = tmp_path / "main.py"
    main.write_text("from round_a import there, missing\nprint(there, missing)\n")
    found = diagnosis.diagnose([main], "2.21").report.findings
    assert [one.name for one in found] == ["round_a.missing"]


def test_the_doctor_says_what_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "main.py").write_text(
        "import os, own, json\n"
        "import horovod_of_nobody.tensorflow as hvd\n"
        "import unused_of_nobody as unused_one\n"
        "try:\n    import better_json as json\nexcept ImportError:\n    pass\n"
        "if __name__ == '__main__':\n    hvd.init()\n"
    )
    found = diagnosis.diagnose([tmp_path / "main.py"], "2.21")
    assert found.absent == ("horovod_of_nobody",)
    text = verdict.as_text(found)
    assert "imports horovod_of_nobody, which is not installed" in text
    assert text.startswith("First: the program imports horovod_of_nobody")
    assert "Then nothing needs manual work: " in text
    assert [one.name for one in found.report.findings] == ["unused_of_nobody"]


@ON_NEWEST
def test_an_old_library_finds_what_scipy_and_pillow_lost(
    tmp_path: Path, launcher: ForkServer
) -> None:
    packages = tmp_path / "site-packages"
    for name, text in {
        "scipy/__init__.py": "",  # of today: without `misc`
        "old_pictures/__init__.py": "from old_pictures.files import read, write\n",
        "old_pictures/files.py": "import tensorflow as tf\n"
        "from scipy.misc import imread, imsave\n"
        "from PIL import ImageFont\n"
        "float32 = tf.placeholder('float32').dtype.name\n"
        "def read(file):\n    return imread(file).shape, float32\n"
        "def write(file, picture):\n    imsave(file, picture)\n"
        "def width(text):\n"
        "    load = getattr(ImageFont, 'load_default_imagefont', None)\n"
        "    font = (load or ImageFont.load_default)()\n"
        "    return font.getsize(text)[0]\n",
    }.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    (tmp_path / "main.py").write_text(
        "import numpy as np\nimport old_pictures\n"
        "from old_pictures.files import width\n"
        "import tensorflow as tf\ntf.placeholder('float32')\n"
        "old_pictures.write('a.png', np.zeros([4, 6, 3], np.uint8))\n"
        "print(old_pictures.read('a.png'), width('Hello'))\n"
    )
    assert output_beside(launcher, packages) == "((4, 6, 3), 'float32') 30\n"


def test_what_is_not_installed_and_not_used_is_left_out(
    tmp_path: Path, launcher: ForkServer
) -> None:
    (tmp_path / "main.py").write_text(
        "import package_of_nobody.parts, own\nprint(own.one())\n"
        "import os, sys\nsys.path.append(os.path.join(*['more', 'folder']))\n"
        "import added_at_run_time\n"
    )
    (tmp_path / "more" / "folder").mkdir(parents=True)
    (tmp_path / "more" / "folder" / "added_at_run_time.py").write_text("print(2)\n")
    (tmp_path / "own.py").write_text(
        "from other_of_nobody import thing\ndef one():\n    return 1\n"
    )
    done = launch_fork(launcher, "main.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n2\n"), done.stderr
    told = "main.py:1: package_of_nobody is not installed and nothing uses it"
    assert told in done.stderr
    assert "other_of_nobody is not installed" in done.stderr


@ON_NEWEST
@pytest.mark.slow
def test_a_library_of_keras_2_alone_gets_the_keras_of_the_program(
    tmp_path: Path, launcher: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    layers = (
        "import keras\nimport keras.backend as K\n"
        "class Doubled(keras.layers.Layer):\n"
        "    def call(self, x):\n        return K.dot(x, K.ones([3, 3])) * 2\n"
    )
    write_files(packages, {"old_layers/__init__.py": layers})
    (tmp_path / "main.py").write_text(
        "import keras\nimport numpy as np\nfrom old_layers import Doubled\n"
        "x = keras.layers.Input([3])\n"
        "model = keras.models.Model(input=x, output=Doubled()(x))\n"
        "print(model.predict(np.array([[1, 2, 3]])))\n"
    )
    monkeypatch.syspath_prepend(str(packages))
    (found,) = [
        finding
        for finding in diagnosis.diagnose(
            [tmp_path / "main.py"], "2.21"
        ).report.findings
        if finding.code == "OLD_LIBRARY"
    ]
    assert "old_layers" in found.name
    assert output_beside(launcher, packages).endswith("[[12. 12. 12.]]\n")


@ON_NEWEST
@pytest.mark.slow
def test_a_library_of_tensorflow_1_runs(installed: Path, launcher: ForkServer) -> None:
    output = output_beside(launcher, installed / "site-packages")
    assert output.startswith("False tensorflow ")
    assert "mean 0.5" in output

"""What `doctor` says of absent packages and modules that a program needs."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from written_files import write_files

from hookbridge.cli import main
from hookbridge.ground import compat
from hookbridge.ground.imports import installed
from hookbridge.old_programs.scanning import diagnosis, verdict
from hookbridge.tf1_names.target import NEWEST


def test_packages_that_fail_together_are_named_with_the_command() -> None:
    versions = {"tf-nightly": "2.20.0", "protobuf": "7.34.2"}
    (trouble,) = compat.known_troubles(versions)
    assert 'pip install "protobuf<7"' in trouble
    assert not compat.known_troubles({"tensorflow": "2.20.0", "protobuf": "6.33.6"})
    assert not compat.known_troubles({"tensorflow": "2.21.0", "protobuf": "7.34.2"})


def test_packages_that_are_missing_are_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the program needs beside TensorFlow, and what it imports itself."""
    file = tmp_path / "old.py"
    file.write_text(
        "import distutils.version\n"
        "import tensorflow as tf\n"
        "tf.estimator.Estimator(None)\n"
    )
    find = importlib.util.find_spec
    gone = ("tensorflow_estimator", "tf_keras", "distutils")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in gone else find(name)
    )
    monkeypatch.delitem(sys.modules, "distutils", raising=False)
    monkeypatch.setattr(installed, "tensorflow", lambda: (2, 22))
    said = " ".join(verdict.as_text(diagnosis.diagnose([file], NEWEST)).split())
    assert "needs tensorflow-estimator and tf_keras, which are not installed." in said
    assert 'pip install "tf-hookbridge[estimator]"' in said
    assert 'pip install --no-deps "tf_keras==2.21.*"' in said
    assert "imports distutils" in said and '"tf-hookbridge[distutils]"' in said


def test_modules_that_a_package_of_the_program_lacks_are_named(tmp_path: Path) -> None:
    """Such as those that are to be built first."""
    files = {
        "main.py": "import tensorflow as tf\nfrom utils import nms, built, made\n"
        "from utils.protos import box_pb2\nimport utils.gone as gone\n"
        "try:\n    from utils import fast\nexcept ImportError:\n    fast = None\n"
        "print(nms.nms, built, made, box_pb2, gone)\ntf.placeholder\n",
        "utils/__init__.py": "made = 3\n",
        "utils/nms.py": "from utils.cython_nms import nms as n\n"
        "from .other_nms import m\nfrom . import made\ndef nms(): n(m)\n",
        "utils/cython_nms.pyx": "def nms(a): return a\n",
        "utils/built.cpython-313-x86_64-linux-gnu.so": "",
        "utils/protos/box.proto": "",
    }
    write_files(tmp_path, files)
    found = diagnosis.diagnose([tmp_path / "main.py"], NEWEST)
    lacking = ("cython_nms", "gone", "protos.box_pb2")
    assert found.absent == (".other_nms", *(f"utils.{name}" for name in lacking))
    said = " ".join(verdict.as_text(found).split())
    assert "imports utils.cython_nms, which has no Python file" in said
    assert said.startswith("First: ") and " Then nothing needs manual work: " in said


@pytest.mark.parametrize(
    ("backend", "is_told"), [("jax", True), ("tensorflow", False), ("", False)]
)
def test_hooks_need_a_keras_that_computes_with_tensorflow(
    backend: str,
    is_told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is said of this machine, whatever the program lacks, and is no finding."""
    (tmp_path / "new.py").write_text("import tensorflow as tf\ntf.constant(1)\n")
    monkeypatch.setenv("KERAS_BACKEND", backend)
    assert main(["doctor", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Nothing is missing.")
    assert ("This machine: KERAS_BACKEND is 'jax'" in said) is is_told
    assert ("Set KERAS_BACKEND=tensorflow" in said) is is_told
    assert main(["doctor", "--format=json", str(tmp_path)]) == 0
    assert ("KERAS_BACKEND" in capsys.readouterr().out) is is_told


def test_what_has_to_be_installed_comes_first_and_places_are_counted_in_one_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/part.py").write_text(
        "import tensorflow as tf\nimport tensorflow.contrib.graph_editor as ge\n"
        "ge.sgv(); ge.copy()\nge.sgv()\ntf.contrib.ffmpeg.decode_audio(1)\n"
        "tf.placeholder; tf.Session\n"
    )
    main_file = tmp_path / "main.py"
    main_file.write_text("import not_there\nfrom pkg import part\nnot_there.x(part)\n")
    monkeypatch.chdir(tmp_path)
    found = diagnosis.diagnose([str(main_file)], NEWEST)
    # A removed module is one place; a single name of another one keeps its name.
    left = [(one.file, one.name) for one in found.report.findings if one.person]
    graph_editor = (os.path.join("pkg", "part.py"), "tf.contrib.graph_editor")
    assert set(left) == {
        graph_editor,
        (graph_editor[0], "tf.contrib.ffmpeg.decode_audio"),
    }
    assert left.count(graph_editor) == 4 and found.left == 2
    lines = verdict.as_text(found).splitlines()
    assert lines[0].startswith("First: the program imports not_there, which is not")
    assert lines[1].startswith("Then 2 places need manual work. (2 files read")
    assert lines[-1] == "`--details` lists 2 more places."
    same = verdict.as_text(diagnosis.diagnose(["main.py"], NEWEST)).splitlines()
    assert same == lines

"""Programs of several files: what one file means follows from the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fork_server import ForkServer
from migrate_command import in_place

from hookbridge import old_programs as migrate
from hookbridge.old_programs.reading.whole_programs.program_files import read_programs
from hookbridge.old_programs.scanning import diagnosis

ONE_TENSORFLOW = True

ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
SPLITS = Path(__file__).parent / "splits"
PROGRAMS = sorted(path.stem for path in SPLITS.glob("*.txt"))


def texts_of(name: str) -> tuple[dict[str, str], list[str]]:
    """The files of a program, and what it prints on TensorFlow 1.15."""
    text = (SPLITS / f"{name}.txt").read_text("utf-8")
    _, *parts = re.split(r"^=== (.+)\n", text, flags=re.M)
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    return files, files.pop("prints on TensorFlow 1.15").splitlines()


def write(folder: Path, name: str) -> Path:
    for file, text in texts_of(name)[0].items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_rewritten_files_run_as_one_program(
    name: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    folder = write(tmp_path, name)
    assert not any(done.result.todos for done in in_place(folder))
    ended = fork_server.run("main.py", folder=folder, **ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert set(texts_of(name)[1]) <= set(ended.stdout.splitlines())
    assert not any(done.result.edits for done in in_place(folder))


def test_a_package_that_is_given_imports_itself_by_its_name(tmp_path: Path) -> None:
    """`metrics` hands on `tf` too, and needs nothing of TensorFlow 1 itself."""
    package = tmp_path / "net"
    package.mkdir()
    texts = {
        "__init__": "",
        "layers": "import tensorflow as tf\nflags = tf.app.flags\n",
        "metrics": "import tensorflow as tf\ndef mean(x): return tf.reduce_mean(x)\n",
        "train": "from net.layers import *\nfrom net.metrics import *\n"
        "tf.placeholder(tf.float32)\nflags.DEFINE_string('a', '', '')\n",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    in_place(package)
    imports = [(package / f"{n}.py").read_text().split("\n")[0] for n in texts]
    v1 = "import tensorflow.compat.v1 as tf"
    assert imports[1:3] == [v1, v1]


def test_a_name_that_another_file_hands_on_needs_no_comment(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text(
        "import tensorflow as tf\ntrain = tf.train\ncfg = tf.app.flags.FLAGS\n"
    )
    main = "from config import cfg, train\ntrain.AdamOptimizer(cfg.rate)\n"
    (tmp_path / "main.py").write_text(main)
    assert not any(done.result.todos for done in in_place(tmp_path))
    text = (tmp_path / "config.py").read_text()
    assert text.startswith("import tensorflow.compat.v1 as tf\n")
    assert (tmp_path / "main.py").read_text().endswith(main)


def test_a_switch_does_not_use_what_a_later_import_binds(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import tensorflow as tf\n")
    for star in ("from net import *", "from net import tf"):
        (tmp_path / "main.py").write_text(f"{star}\ntf.Session()\n")
        in_place(tmp_path)
        assert (tmp_path / "main.py").read_text() == (
            "import tensorflow.compat.v1 as tf\n"
            f"tf.disable_v2_behavior()\n\n{star}\ntf.Session()\n"
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_main_file_alone_tells_doctor_all(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path, name)
    alone = diagnosis.diagnose([folder / "main.py"], "2.21")
    whole = diagnosis.diagnose([folder], "2.21")
    assert alone.left == whole.left == 0
    assert {d.name for d in alone.report.findings} == {
        d.name for d in whole.report.findings
    }
    assert alone.report.files == len(texts_of(name)[0])


def test_a_neutral_file_cites_what_decided(tmp_path: Path) -> None:
    folder = write(tmp_path, "estimators")
    found = {f.code: f for f in migrate.scan([folder / "main.py"]).findings}
    assert "V1_FILE" not in found
    (neutral,) = [f for f in migrate.scan([folder]).findings if f.code == "V1_FILE"]
    assert neutral.file.endswith("model.py")
    assert "tf.variable_scope" in neutral.name and "main.py:11" in neutral.name


def test_a_file_means_what_any_program_means_that_imports_it(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("import tensorflow as tf\nx = tf.constant(1)\n")
    (tmp_path / "new.py").write_text("import tensorflow as tf\nimport shared\n")
    programs, _ = read_programs([tmp_path])
    assert not any(programs.in_program(module).targets_tf1 for module in programs.given)
    (tmp_path / "old.py").write_text(
        "import tensorflow as tf\nimport shared\ntf.placeholder\n"
    )
    programs, _ = read_programs([tmp_path])
    old = {
        Path(m.file).stem for m in programs.given if programs.in_program(m).targets_tf1
    }
    assert old == {"old", "shared"}


def test_a_file_may_get_an_object_of_a_library_of_another_file(tmp_path: Path) -> None:
    part = tmp_path / "evaluate.py"
    part.write_text(
        "def show(model, thread, draw, x):\n"
        "    return model.predict_classes(x), thread.isAlive(), draw.textsize('a')\n"
    )
    assert not migrate.scan([part]).findings
    main = tmp_path / "main.py"
    main.write_text("import threading\nfrom keras import models\nimport evaluate\n")
    found = [f.name for f in migrate.scan([tmp_path]).findings if f.file == str(part)]
    assert found == ["keras.models.Sequential.predict_classes"]


def test_no_false_alarm(tmp_path: Path) -> None:
    file = tmp_path / "main.py"
    for line in (
        "tf.model = tf.keras.Sequential()\ntf.model.fit(x)",
        "x = tf.image_summary if hasattr(tf, 'image_summary') else 1",
        "x = tf.mul if 'mul' in dir(tf) else tf.multiply",
        "try:\n    x = tf.image_summary\nexcept AttributeError:\n    x = 1",
        "if tf.__version__ < '1':\n    x = tf.pack(y)",
        "x = tf.compat.v1.estimator.tpu.TPUConfig()",
    ):
        file.write_text(f"import tensorflow as tf\n{line}\n")
        assert not diagnosis.diagnose([file], "2.21").left, line
        assert not migrate.rewrite(file.read_text()).todos, line


def test_a_main_file_has_the_switches_of_its_own_program(tmp_path: Path) -> None:
    """Another program that imports it makes its own choices."""
    (tmp_path / "main.py").write_text(
        "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n"
        "import tensorflow as tf\nimport part\ntf.app.run()\n"
    )
    (tmp_path / "part.py").write_text(
        "from tensorflow import keras, estimator\n"
        "if __name__ == '__main__':\n    estimator.RunConfig(keras)\n"
    )
    for is_changed in (True, False):
        assert any(done.result.edits for done in in_place(tmp_path)) is is_changed
    assert "TF_USE_LEGACY_KERAS" in (tmp_path / "part.py").read_text()

"""`hookbridge doctor` tells who handles a missing name: `run`, `migrate`, a person."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from launching import PROGRAMS, ROOT
from one_line import one_line_of_error

from hookbridge.cli import main
from hookbridge.ground.imports import installed
from hookbridge.old_programs.scanning import diagnosis
from hookbridge.old_programs.scanning.scan import scan
from hookbridge.tf1_names import contrib_names
from hookbridge.tf1_names.target import NEWEST, table, target_in_words

SOURCE = """\
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.learn.python.learn import learn_runner

x = tf.placeholder(tf.float32)
y = slim.conv2d(x, 2, 3)
learn_runner.run(None)
tf.contrib.crf.crf_decode(x, x, x)
tf.contrib.opt.AdamWOptimizer(1)
tf.estimator.Estimator(None)
tf.mul(3)
import numpy as np
np.zeros(1, np.object)
import inspect
inspect.getargspec(tf.contrib.seq2seq.TrainingHelper)
tf.contrib.seq2seq.BahdanauMonotonicAttention(1)
"""


@pytest.mark.both_tensorflows
def test_each_name_has_its_line_and_who_mends_it(
    subtests: pytest.Subtests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.py").write_text(SOURCE)
    assert main(["doctor", "--format=json", str(tmp_path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["left"], found["files"]) == (3, 1)
    by_name = {one["name"]: one for one in found["found"]}
    assert by_name["tf.placeholder"]["line"] == 5
    assert by_name["tf.placeholder"]["run"] == "uses tf.compat.v1 instead"
    assert by_name["tf.placeholder"]["migrate"] == "`tf.compat.v1.placeholder`"
    helper = by_name["tf.contrib.seq2seq.TrainingHelper"]
    assert helper["migrate"] == "`hb.contrib.seq2seq.TrainingHelper`"
    for name in (
        "tf.contrib.slim.conv2d",
        "tf.contrib.learn.python.learn.learn_runner.run",
        "tf.contrib.crf.crf_decode",
        "tf.contrib.seq2seq.TrainingHelper",
        "tf.estimator.Estimator",
        "numpy.object",
        "inspect.getargspec",
    ):
        with subtests.test(str(name)):
            assert by_name[name]["run"] and not by_name[name]["person"], name
    for name, line in (
        ("tf.contrib.opt.AdamWOptimizer", 9),
        ("tf.mul", 11),
        ("tf.contrib.seq2seq.BahdanauMonotonicAttention", 16),
    ):
        with subtests.test(str(name)):
            one = by_name[name]
            assert (one["line"], one["run"], one["migrate"]) == (line, "", "")
            assert one["person"]
    # Names that are left to a person come first.
    assert [bool(one["person"]) for one in found["found"][2:4]] == [True, False]
    # The text fits 100 columns and cuts nothing.
    assert main(["doctor", "--details", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    first, name, *lines = text.splitlines()
    target = target_in_words(NEWEST)
    verdict = f"3 places need manual work. (1 file read; {target})"
    assert first == verdict
    assert (name, lines[0].split()[0]) == ("tf.contrib.opt.AdamWOptimizer", "in")
    assert max(map(len, lines)) <= 100
    words = " ".join(text.split())
    for one in found["found"]:
        for advice in ("run", "migrate", "person"):
            assert " ".join(one[advice].split()) in words
    # Without `--details` only these places are listed.
    assert main(["doctor", str(tmp_path)]) == 1
    first, name, *_, last = capsys.readouterr().out.splitlines()
    assert (first, name) == (verdict, "tf.contrib.opt.AdamWOptimizer")
    mended = {one["line"] for one in found["found"] if not one["person"]}
    assert last == f"`--details` lists {len(mended)} more places."


def test_names_of_before_1_0_and_what_is_below_them_are_left_to_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.py").write_text(
        "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n"
        "tf.nn.seq2seq.basic_rnn_seq2seq(x, x, None)\n"
        "tf.batch_matrix_inverse(x)\ntf.of_no_version.at_all(x)\n"
    )
    assert main(["doctor", "--format=json", str(tmp_path)]) == 1
    found = json.loads(capsys.readouterr().out)
    ways = {one["name"]: one["person"] for one in found["found"] if one["person"]}
    assert found["left"] == 2
    assert "legacy_seq2seq" in ways["tf.nn.seq2seq.basic_rnn_seq2seq"]
    assert "`tf.linalg.inv`" in ways["tf.batch_matrix_inverse"]


def test_another_target_than_the_installed_tensorflow_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written for the newest may not run on the installed one."""
    (tmp_path / "old.py").write_text("import tensorflow as tf\ntf.placeholder\n")
    for here, text in (
        ((2, 15), "; installed is `--target=2.15`"),
        ((2, 18), "; installed is 2.18"),
        ((2, 21), ""),
        (None, ""),
    ):
        monkeypatch.setattr(installed, "tensorflow", lambda here=here: here)
        for command in (["doctor"], ["migrate", "scan"], ["migrate", "rewrite"]):
            main([*command, "--target=2.21", str(tmp_path)])
            said_here = " ".join(capsys.readouterr().out.split())
            ends = [f"target TensorFlow 2.21{text}{end}" for end in (")", ".", "")]
            assert any(end in said_here for end in ends), command
            assert ("installed is" in said_here) is bool(text)


def test_modules_in_a_folder_of_pythonpath_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import saving\nsaving.grads()\n")
    source = "import tensorflow.contrib.graph_editor as ge\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "saving.py").write_text(
        f"{source}def grads():\n    ge.get_backward_walk_ops([])\n"
    )
    monkeypatch.chdir(tmp_path)  # paths are shown as seen from here
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'nothing'}:{tmp_path / 'src'}")
    assert main(["doctor", str(tmp_path / "train.py")]) == 1
    assert "src/saving.py:1, 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    "call",
    [
        'subprocess.check_call([sys.executable, "other.py"])',
        'subprocess.Popen(args=[sys.executable, "-u", os.path.join(HERE, "other.py")])',
        'command = ["python3", "other.py", "--steps=3"]',
        'os.system("python other.py --steps=%d" % 3)',
        'subprocess.run(f"CUDA_VISIBLE_DEVICES={3} python -u other.py", shell=True)',
    ],
)
def test_a_file_of_tensorflow_1_that_is_started_by_itself_is_left_to_a_person(
    call: str, tmp_path: Path
) -> None:
    """Its process gets TensorFlow as it is; one without TensorFlow may."""
    main, other = tmp_path / "main.py", tmp_path / "other.py"
    main.write_text(f"import os, subprocess, sys\nimport tensorflow as tf\n{call}\n")
    other.write_text("import tensorflow as tf\ntf.Session()\n")
    (left,) = (
        one for one in diagnosis.diagnose([main], NEWEST).report.findings if one.person
    )
    assert (left.code, left.line, left.name) == ("CHILD_PROGRAM", 3, "other.py")
    assert "`hookbridge run other.py`" in left.person
    other.write_text("import numpy as np\nprint(np.ones(3))\n")
    assert diagnosis.diagnose([main], NEWEST).left == 0


def test_doctor_and_scan_count_places_alike_and_share_their_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line with two findings is one place."""
    (tmp_path / "old.py").write_text(
        "import tensorflow as tf\nx = tf.placeholder('f')\n"
    )
    report = scan([tmp_path])
    assert [f.line for f in report.findings if f.verdict == "auto"] == [2, 2]
    assert (report.verdicts["auto"], report.remaining) == (1, 1)
    assert main(["doctor", "--details", str(tmp_path)]) == 0
    assert "changes 1 place." in " ".join(capsys.readouterr().out.split())
    assert main(["doctor", "--format=sarif", str(tmp_path)]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    codes = {result["ruleId"] for result in run["results"]}
    assert codes == {f.code for f in report.findings}
    assert main(["doctor", "--format=html", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("source", "code", "begin"),
    [
        (
            "import tensorflow as tf\ntf.placeholder\n",
            0,
            "Nothing needs manual work: `hookbridge run` runs it as it is. `hookbridge "
            "migrate rewrite` changes 1 place. (",
        ),
        (
            "import inspect\nimport tensorflow as tf\n"
            "tf.placeholder\ninspect.getargspec(print)\n",
            0,
            "Nothing needs manual work: `hookbridge run` runs it as it is. `hookbridge "
            "migrate rewrite` changes 1 place and comments 1 more place, where only "
            "`run` knows what to do. (",
        ),
        (
            "from tensorflow import keras\nmodel.predict_classes(x)\n"
            "print(f'{model.predict_classes(x)}')\n",
            0,
            "Nothing needs manual work: `hookbridge run` runs it as it is. `hookbridge "
            "migrate rewrite` changes 1 place and comments 1 more place, where only "
            "`run` knows what to do. (",
        ),
        (
            'import tensorflow as tf\nassert tf.__version__[0] == "1"\n'
            "tf.placeholder\n",
            0,
            "Nothing needs manual work: `hookbridge run` runs it as it is. `hookbridge "
            "migrate rewrite` changes 1 place and comments 1 more place, where only "
            "`run` knows what to do. (",
        ),
        (
            'import tensorflow as tf\ntf.placeholder\nassert tf.VERSION == "1.4.0"\n',
            1,
            "1 place needs manual work. (",
        ),
        (
            "import numpy as np\nimport tensorflow as tf\ntf.placeholder\n"
            "from tensorflow.python.framework import graph_util\n"
            "tf.train.Server(graph_util)\nnp.array([s.split() for s in open('x')])\n"
            "image.tostring()\n",
            0,
            "Nothing needs manual work: `hookbridge run` runs it as it is. `hookbridge "
            "migrate rewrite` changes 3 places and comments 1 more place, where only "
            "`run` knows what to do. (",
        ),
        (
            "from tensorflow.python.framework import graph_util\nprint(graph_util)\n",
            0,
            "Nothing needs manual work: `hookbridge run` runs it as it is. `hookbridge "
            "migrate rewrite` changes nothing. (",
        ),
        ("import tensorflow as tf\ntf.constant(1)\n", 0, "Nothing is missing."),
        ("print 'hello'\n", 1, "1 place needs manual work. ("),
    ],
)
def test_verdicts(
    source: str,
    code: int,
    begin: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "old.py").write_text(source)
    assert main(["doctor", str(tmp_path)]) == code
    text = capsys.readouterr().out
    assert " ".join(text.split()).startswith(begin)
    assert ("could not be read: Python 2" in text) is ("print '" in source)


@pytest.mark.parametrize("words", [[], ["nowhere"], ["--target=1.0", "."]])
def test_bad_input(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *words]) == 2
    assert one_line_of_error(capsys)


def test_tensorflow_is_not_imported() -> None:
    code = (
        "import sys; from hookbridge.cli import main;"
        f"main(['doctor', {str(PROGRAMS)!r}]); "
        "print([m for m in sys.modules if m.partition('.')[0] in "
        "('tensorflow', 'keras', 'tf_keras', 'tf_slim', 'numpy')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_programs_that_run_need_no_person() -> None:
    found = diagnosis.diagnose([PROGRAMS], "2.21")
    left = {one.file for one in found.report.findings if one.person}
    assert {Path(file).name for file in left} == {"gone.py"}


def test_every_name_of_the_table_is_listed() -> None:
    known = {*contrib_names.AREAS, *table("public-1.15")["contrib"]}
    assert contrib_names.names().keys() <= known
    for name in contrib_names.NAMES:
        assert contrib_names.is_available(f"tf.contrib.{name}"), name

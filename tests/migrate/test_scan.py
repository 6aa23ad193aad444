"""`hookbridge.old_programs.scan`: what it finds, and how it reports bad files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from migrate_command import Output, command, in_place

from hookbridge import errors
from hookbridge import old_programs as migrate
from hookbridge.old_programs.scanning.findings import CODES, Finding
from hookbridge.tf1_names.target import NEWEST, versions

ONE_TENSORFLOW = True
ROOT = Path(__file__).resolve().parents[2]


def scan_text(tmp_path: Path, text: str, **options: str) -> list[Finding]:
    (tmp_path / "program.py").write_text(text)
    report = migrate.scan([tmp_path], **options)
    assert not report.unread
    return list(report.findings)


CASES = re.split(
    r"^=== (.+)\n", (Path(__file__).parent / "scans.txt").read_text("utf-8"), flags=re.M
)


@pytest.mark.parametrize(
    ("name", "text"), list(zip(CASES[1::2], CASES[2::2], strict=True)), ids=CASES[1::2]
)
def test_the_findings_of_each_line(name: str, text: str, tmp_path: Path) -> None:
    """A line of `scans.txt` ends with the codes of its findings."""
    target = "2.15" if name.startswith("2.15") else NEWEST
    found: dict[int, list[str]] = {}
    for finding in scan_text(tmp_path, text, target=target):
        found.setdefault(finding.line, []).append(finding.code)
    expected = {
        number: line.partition("#: ")[2].split()
        for number, line in enumerate(text.splitlines(), 1)
        if "#: " in line
    }
    assert {line: sorted(codes) for line, codes in found.items()} == expected


def test_a_name_that_a_program_sets_shows_no_tensorflow_1(tmp_path: Path) -> None:
    """Nor is it missing, whichever file sets it."""
    files = {
        "main.py": "import names\nimport other\n",
        "names.py": "import tensorflow as tf\ntf.Session = tf.compat.v1.Session\n"
        "if not hasattr(tf, 'mul'):\n    setattr(tf, 'mul', tf.multiply)\n",
        "other.py": "import tensorflow as tf\n"
        "def run():\n    return tf.Session().run(tf.mul(1, 2))\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert not migrate.scan([tmp_path]).findings


def test_rows_of_unequal_length_may_come_from_another_file(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text(
        "import numpy as np\ndef batches(rows):\n    return np.array(rows)\n"
    )
    text = "import data\ndata.batches(list(zip(x, y)))\n"
    (found,) = scan_text(tmp_path, text)
    assert (Path(found.file).name, found.code) == ("data.py", "UNEQUAL_ROWS")


READERS = {
    "net/__init__.py": "from net.model import Model\n",
    "net/model.py": "import tensorflow as tf\nfrom net import data\n"
    "class Model:\n    def __init__(self):\n        self.x = data.read()\n"
    "    def relu(self):\n        return tf.TFRecordReader()\n"
    "    def test(self):\n        return data.on_cpu()\n"
    "    def later(self):\n        return self.test(), tf.IdentityReader()\n",
    "net/data.py": "import tensorflow as tf\n"
    "def read():\n    return tf.TextLineReader()\n"
    "def on_cpu():\n    with tf.device('/cpu:0'):\n        return read_whole()\n"
    "def read_whole():\n    return tf.WholeFileReader()\n",
    "train.py": "import tensorflow as tf\nfrom net import Model\n"
    "with tf.device('/gpu:%d' % 0):\n    model = Model()\n    tf.nn.relu(model.x)\n"
    "    model.later()\n",
}


def test_queue_readers_on_a_gpu_may_be_in_another_file(tmp_path: Path) -> None:
    """The rewrite changes the same places."""
    for name, text in READERS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    readers = {
        f.name for f in migrate.scan([tmp_path]).findings if f.code == "GPU_READER"
    }
    assert readers == {"tf.TextLineReader", "tf.IdentityReader"}
    results = [done.result for done in in_place(tmp_path)]
    assert not any(result.todos for result in results)
    edits = [edit.after for result in results for edit in result.edits]
    ours = {after for after in edits if after.startswith("hb.legacy.")}
    assert ours == {"hb.legacy.TextLineReader", "hb.legacy.IdentityReader"}


HOOKS = """\
import tensorflow as tf
class Base(tf.estimator.SessionRunHook):
    pass
class Rate(Base):
    def begin(self):
        self.summary = tf.compat.v1.summary.scalar("a", 1.0)
    def before_run(self, run_context):
        self.n += 1
        return tf.compat.v1.train.SessionRunArgs("loss:0", feed_dict={"rate:0": 0.1})
    def after_run(self, run_context, run_values):
        run_context.request_stop()
"""
OTHERS = """\
from pkg.hooks import Rate
import keras
class Faster(Rate):
    def end(self, session):
        session.run(self.summary)
class Stop(keras.callbacks.EarlyStopping):
    def on_epoch_end(self, epoch, logs=None):
        open("x", "w")
"""


def test_methods_of_classes_in_other_files_are_no_lost_ones(tmp_path: Path) -> None:
    (tmp_path / "pages.py").write_text("class Page:\n    def tostring(self): pass\n")
    main = "import numpy as np\nfrom pages import Page\nPage().tostring(), x.ptp()\n"
    (tmp_path / "main.py").write_text(main)
    found = migrate.scan([str(tmp_path)]).findings
    assert [one.name for one in found] == ["numpy.ndarray.ptp"]


def test_guest_classes_are_followed_across_files(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "hooks.py").write_text(HOOKS)
    (tmp_path / "main.py").write_text(OTHERS)
    report = migrate.scan([tmp_path])
    found = {f.name: f for f in report.findings if f.code.endswith("_CLASS")}
    assert {n: f.details["kind"] for n, f in found.items()} == {
        "Base": "hook",
        "Rate": "hook",
        "Faster": "hook",
        "Stop": "callback",
    }
    assert found["Rate"].details == {
        "kind": "hook",
        "methods": ["begin", "before_run", "after_run"],
        "adds_ops": True,
    }
    assert not found["Faster"].details["adds_ops"]


def test_cells_of_a_notebook(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["tf.estimator"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!ls\n"]},
        {"cell_type": "code", "source": ["import tensorflow as tf\n", "tf.app.run()"]},
        {"cell_type": "code", "source": "%%bash\necho tf.app"},
    ]
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    found, switch = migrate.scan([tmp_path]).findings
    assert (found.cell, found.line, found.code) == (3, 2, "V1_NAME")
    assert (switch.cell, switch.line, switch.code) == (3, 2, "V1_BEHAVIOUR")
    assert found.place == f"{tmp_path / 'book.ipynb'}:cell 3:2"


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="does not exist"):
        migrate.scan([tmp_path / "nothing"])
    with pytest.raises(errors.InvalidArgumentError, match=r"2\.15, 2\.21"):
        migrate.scan([tmp_path], target="1.0")


def test_the_command_and_its_formats(
    subtests: pytest.Subtests, tmp_path: Path, capsys: Output
) -> None:
    (tmp_path / "a.py").write_text(HOOKS + "raise SystemExit('executed')\n")
    (tmp_path / "b.py").write_text("def f(:\n")
    done = command(capsys, "scan", tmp_path, "--check")
    assert done.code == 1, done.err
    assert "HOOK_CLASS  Rate" in done.out
    assert "executed" not in done.out + done.err
    as_json = json.loads(command(capsys, "scan", tmp_path, "--format=json").out)
    assert as_json["verdicts"]["bridge"] == 2
    assert len(as_json["unread"]) == 1
    sarif = json.loads(command(capsys, "scan", tmp_path, "--format=sarif").out)
    (run,) = sarif["runs"]
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= known
    unread = [r for r in run["results"] if r["ruleId"] == "UNREAD"]
    assert len(unread) == 1
    assert len(run["results"]) == len(as_json["findings"]) + 1
    page = command(capsys, "scan", tmp_path, "--format=html").out
    assert page.startswith("<!doctype html>")
    assert page.count("<tr>") > len(as_json["findings"])
    assert "http" not in page.replace("https://", "")
    (tmp_path / "c.py").write_text("x = 1\n")
    done = command(capsys, "scan", "--check", tmp_path / "c.py")
    assert (done.code, done.err) == (0, "")
    assert "Nothing found." in done.out
    for words in (["scan"], ["mend", tmp_path], ["scan", tmp_path / "no.py"]):
        with subtests.test(str(words)):
            done = command(capsys, *words)
            assert (done.code, done.err.count("\n")) == (2, 1)


SECTIONS = dict(
    re.findall(
        r"^## ([^\n]+)\n\n(.*?)(?=^## |\Z)",
        (ROOT / "docs" / "codes.md").read_text("utf-8"),
        re.M | re.S,
    )
)
# They follow from several files, an installed package, a notebook, and a rewrite.
WITHOUT_PROGRAM = (
    *("V1_FILE", "OLD_LIBRARY", "LIBRARY_LOSS", "OLD_PIN", "STEPS_PER_EPOCH", "UNREAD"),
    "CHILD_PROGRAM",
)


def test_each_code_has_a_section(subtests: pytest.Subtests) -> None:
    assert list(SECTIONS) == [*CODES, "UNREAD"]
    for name, code in CODES.items():
        with subtests.test(str(name)):
            said = " ".join(SECTIONS[name].split())
            assert said.startswith(f"`{code.verdict}`. {code.message}")
            assert not code.run or f"`hookbridge run` {code.run}." in said
            assert ("```text" in said) == (name not in WITHOUT_PROGRAM)


@pytest.mark.parametrize("name", [n for n in CODES if n not in WITHOUT_PROGRAM])
def test_the_program_of_a_code_has_its_finding(name: str, tmp_path: Path) -> None:
    (program,) = re.findall(r"```text\n(.*?)```", SECTIONS[name], re.S)
    # Private names are known for the installed TensorFlow alone.
    targets = versions()[1:]
    found = [one for v in targets for one in scan_text(tmp_path, program, target=v)]
    assert name in [finding.code for finding in found]


def test_a_summary_hook_without_a_place(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    """TensorFlow 2.22 raises; before, it wrote nothing."""
    text = (
        "from tensorflow.compat.v1.train import SummarySaverHook\n"
        "SummarySaverHook(10, summary_op=op)\n"
        "SummarySaverHook(10, None, 'logs', summary_op=op)\n"
        "SummarySaverHook(10, output_dir='logs', summary_op=op)\n"
        "SummarySaverHook(10, **options)\n"
    )
    for target, lines in (("2.21", []), ("2.22", [2])):
        with subtests.test(str(target)):
            found = scan_text(tmp_path, text, target=target)
            assert [f.line for f in found if f.code == "SUMMARY_NOWHERE"] == lines


def test_a_commit_is_stopped_with_the_place(tmp_path: Path) -> None:
    """In an empty repository, by the entry of the hook for pre-commit."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    script = tmp_path / ".git" / "hooks" / "pre-commit"
    entry = " ".join([hook["entry"], *hook["args"]])
    entry = entry.replace("hookbridge", f"{sys.executable} -m hookbridge", 1)
    names = "$(git diff --cached --name-only --diff-filter=d)"

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        return subprocess.run(
            ["git", *who, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    git("init", "--quiet")
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\nexec {entry} {names}\n")
    script.chmod(0o755)
    for name in ("program.py", "-program.py"):
        program = tmp_path / name
        program.write_text("import tensorflow as tf\n\nx = tf.placeholder('f')\n")
        git("add", "--", name)
        stopped = git("commit", "--message=one")
        assert stopped.returncode == 1
        assert f"{name}:3  V1_NAME  tf.placeholder" in stopped.stdout + stopped.stderr
        program.write_text("import tensorflow as tf\n\nx = tf.constant(1.0)\n")
        git("add", "--", name)
        assert git("commit", "--message=one").returncode == 0


def test_neither_tensorflow_nor_a_terminal_with_all_letters_is_needed(
    tmp_path: Path,
) -> None:
    (tmp_path / "program.py").write_text(f"{HOOKS}tf.estimator.RunConfig('\u00e9')\n")
    code = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from hookbridge.cli import main\n"
        "for words in (['scan'], ['rewrite', '--write']):\n"
        "    assert main(['migrate', *words, sys.argv[1]]) == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        text=True,
    )
    assert "HOOK_CLASS  Rate" in done.stdout and "1 rewritten" in done.stdout
    text = (tmp_path / "program.py").read_text("utf-8")
    assert "hb.estimator.RunConfig('\u00e9')" in text

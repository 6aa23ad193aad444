"""`hookbridge.migrate.scan`: what it finds, and how it reports bad files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from migrate_command import Output, command

from hookbridge import errors, migrate
from hookbridge.migrate.findings import Finding

ONE_TENSORFLOW = True


def scan_text(tmp_path: Path, text: str, **options: str) -> list[Finding]:
    (tmp_path / "program.py").write_text(text)
    report = migrate.scan([tmp_path], **options)
    assert not report.unread
    return list(report.findings)


def codes(found: list[Finding]) -> list[tuple[int, str]]:
    return sorted((f.line, f.code) for f in found)


def test_names_that_the_target_lacks(tmp_path: Path) -> None:
    lacking = [
        ("tf.estimator.Estimator", "ESTIMATOR", "hb.estimator.v1.Estimator"),
        ("tf.placeholder", "V1_NAME", "tf.compat.v1.placeholder"),
        ("tf.logging.__dict__", "V1_NAME", "tf.compat.v1.logging"),
        ("tf.contrib.estimator.replicate_model_fn", "CONTRIB", "hb.contrib.est"),
        ("tf.contrib.nothing.known", "GONE", "`tf.contrib.nothing.known`"),
        ("tf.no_such_name_ever", "MISSING", "release notes"),
    ]
    there = (
        *("tf.compat.v1.train.SessionRunHook", "tf.data.Dataset.from_tensors"),
        *("tf.keras.layers.Dense", "tf.losses.MeanSquaredError", "tf.raw_ops.Add"),
        *("tf.compat.v1.logging.set_verbosity", "tf.__version__"),
        "other.estimator.Estimator",
    )
    lines = ["import tensorflow as tf", *(line for line, _, _ in lacking), *there]
    found = scan_text(tmp_path, "\n".join(lines))
    found = sorted((f for f in found if f.code != "KERAS2"), key=lambda f: f.line)
    assert [(f.name, f.code) for f in found] == [row[:2] for row in lacking]
    for finding, (line, _, way_out) in zip(found, lacking, strict=True):
        assert lines[finding.line - 1] == line
        assert way_out in finding.way_out


def test_the_target_decides(tmp_path: Path) -> None:
    text = "import tensorflow as tf\nx = tf.estimator.Estimator, tf.layers.dense\n"
    assert codes(scan_text(tmp_path, text, target="2.15")) == [(2, "V1_NAME")]
    assert codes(scan_text(tmp_path, text)) == [
        *((2, "ESTIMATOR"), (2, "KERAS2"), (2, "V1_NAME"))
    ]


def test_every_way_to_import(tmp_path: Path) -> None:
    text = """\
import tensorflow.compat.v1 as tf1
import tensorflow.contrib.slim as slim
from tensorflow import estimator as est
from tensorflow.contrib.learn import RunConfig
from tensorflow.python.training.session_run_hook import SessionRunHook as Base
from tensorflow_estimator.python.estimator.model_fn import ModeKeys
from tensorflow.compat.v1.compat import v1 as same
import tensorflow as tf
tf_layers = tf.layers
tf1.estimator.Estimator
slim.conv2d
est.RunConfig
same.placeholder
tf_layers.dense
"""
    found = scan_text(tmp_path, text)
    assert codes(found) == [
        (2, "CONTRIB"),
        (2, "KERAS2"),
        (3, "ESTIMATOR"),
        (4, "CONTRIB"),
        (5, "HOOK_NAME"),
        (6, "ESTIMATOR_PRIVATE"),
        (9, "V1_NAME"),
        (10, "ESTIMATOR"),
        (11, "CONTRIB"),
        (12, "ESTIMATOR"),
        (14, "V1_NAME"),
    ]
    (private,) = [f for f in found if f.line == 6]
    assert private.way_out.endswith("`hb.estimator.ModeKeys`")


def test_a_starred_import_is_said(tmp_path: Path) -> None:
    (found,) = scan_text(tmp_path, "from tensorflow.train import *\n")
    assert (found.code, found.verdict) == ("STAR_IMPORT", "manual")


BEHAVIOUR = """\
import tensorflow as tf
v1 = tf.compat.v1
x = v1.placeholder(tf.float32)
def serving():
    return v1.placeholder(tf.string)
with tf.device(v1.train.replica_device_setter(1)), tf.device("/cpu:0"):
    pass
data.map(f, num_threads=3)
estimator.export_savedmodel("x", serving)
server = v1.train.Server(spec)
supervisor = v1.train.Supervisor()
"""


def test_calls_that_a_rename_does_not_mend(tmp_path: Path) -> None:
    assert codes(scan_text(tmp_path, BEHAVIOUR)) == [
        (3, "V1_BEHAVIOUR"),
        (6, "DEVICE_FUNCTION"),
        (8, "OLD_ARGUMENT"),
        (9, "OLD_ARGUMENT"),
        (10, "CLUSTER"),
        (11, "SUPERVISOR"),
    ]
    switched = BEHAVIOUR + "v1.disable_v2_behavior()\n"
    assert "V1_BEHAVIOUR" not in {c for _, c in codes(scan_text(tmp_path, switched))}


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
        "fetches": True,
        "feeds": True,
        "uses_session": False,
        "stops": True,
        "by_name": True,
        "counts": True,
        "writes_files": False,
    }
    assert found["Faster"].details["uses_session"]
    assert found["Stop"].details["writes_files"]


SITES = """\
import tensorflow as tf
estimator.train(input_fn, hooks=[a], saving_listeners=[b])
spec = tf.estimator.EstimatorSpec(mode, training_chief_hooks=[a])
model.fit(x, callbacks=[c])
with tf.compat.v1.train.MonitoredTrainingSession(hooks=[a]) as sess:
    while not sess.should_stop():
        batch = sess.run(next_batch)
        sess.run([train_op, loss], feed_dict={x: batch})
"""


def test_places_that_take_guests(tmp_path: Path) -> None:
    assert [c for c in codes(scan_text(tmp_path, SITES)) if c[1] != "ESTIMATOR"] == [
        (2, "HOOK_SITE"),
        (2, "HOOK_SITE"),
        (3, "HOOK_SITE"),
        (4, "CALLBACK_SITE"),
        (5, "HOOK_SITE"),
        (5, "V1_BEHAVIOUR"),
    ]


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


def test_the_command_and_its_formats(tmp_path: Path, capsys: Output) -> None:
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
        done = command(capsys, *words)
        assert (done.code, done.err.count("\n")) == (2, 1)


def test_tensorflow_is_not_needed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HOOKS)
    code = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from hookbridge.cli import main\n"
        "for word in ('scan', 'rewrite'):\n"
        "    main(['migrate', word, sys.argv[1]])\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert "HOOK_CLASS  Rate" in done.stdout and "1 would change" in done.stdout

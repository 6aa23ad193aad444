"""Bad definition files and data: one clear message, and exit code 2 or 1."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tensorflow as tf
from commands import weights
from one_line import one_line_of_error

from hookbridge import errors
from hookbridge.cli import main
from hookbridge.ground import compat
from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster
from hookbridge.jobs.training.definition import ModelDefinition
from hookbridge.jobs.training.graph_optimizer import GraphOptimizer

GOOD = """
import tensorflow as tf


def custom_model():
    return tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense({units})])


def loss(labels, predictions):
    return {scale} * tf.nn.sparse_softmax_cross_entropy_with_logits(labels, predictions)


def optimizer():
    return tf.keras.optimizers.Adam(0.1)


def dataset_fn(dataset, mode):
    def parse(line):
        columns = tf.io.decode_csv(line, [0.0, 0.0, tf.constant([], tf.int32)])
        return tf.stack(columns[:2]), columns[2]

    return dataset.map(parse)
"""


def in_graphs(text: str) -> str:
    """The file with a model and an optimizer that a graph can have in this process."""
    text = text.replace("keras.optimizers.Adam", "compat.v1.train.AdamOptimizer")
    keras2 = "tf_keras" if compat.tf_version() >= (2, 16) else "keras"
    # The first line of the file is empty.
    return f"import {keras2} as keras2" + text.replace("tf.keras", "keras2")


JOB = GOOD.format(units=3, scale=1.0)
V1_JOB = in_graphs(JOB)
ROWS = "1,2,0\n3,4,1\n5,6,2\n7,8,1\n"


LINE = JOB.count("\n") + 3
# A file -> the message.
FILES = {
    "def custom_model(:\n": "'job.py', line 1, raised SyntaxError",
    "import os\nimport nothing_there\nmodel_fn = 1\n": "'job.py', line 2, raised",
    "": "neither `custom_model` nor `model_fn`",
    JOB.replace("def loss", "def los"): "nothing uses `los`; did you mean `loss`?",
    JOB.replace("def loss", "def _loss"): "Received `loss=None`; expected a function",
    JOB.replace("def optimizer", "def opt"): "`optimizer=None`",
    JOB.replace("def dataset_fn", "def rows"): "nothing about its data",
    f"{JOB}\n\ndef callback():\n    return []\n": "`callback`; did you mean `callbac",
    f"{JOB}\n\ndef hook():\n    return []\n": "uses `hook`; did you mean `hooks`?",
    f"{JOB}\n\nguest = []\n": f"line {LINE}: nothing uses `guest`; did you mean",
    f"{JOB}\n\nmatch 1:\n    case 1:\n        guest = []\n": "uses `guest`; did",
    f"{JOB}\n\nmodel = custom_model()\nmodel.fit([[1.0]], [1.0])\n": (
        f"job.py, line {LINE + 1}: importing the file would run `model.fit(...)`; exp"
    ),
    "hooks = []\nraise SystemExit('it was run')\n": (
        "has no `custom_model` or `model_fn`, so it was not run; it has `hooks`."
    ),
}
# A function that replaces one of the good file, or is added -> the message.
FUNCTIONS = {
    "loss(labels): return 0": "`loss(labels)`; expected one that can be called as ",
    "custom_model(): return 3": f"job.py, line {LINE}: `custom_model` returned 3 of ",
    "optimizer(): pass": f"line {LINE}: `optimizer` returned None of type `NoneType`",
    "dataset_fn(dataset, mode): return [1]": "returned [1] of type `list`; expected a",
    "eval_metrics_fn(): return []": "`eval_metrics_fn` returned [] of type `list`; exp",
    "callbacks(): return [3]": f"line {LINE}: `callbacks`: Received 3 of type `int`",
    "hooks(mode): raise ValueError(mode)": f"line {LINE}, raised ValueError: train; e",
    "hooks(mode, more): return []": "`hooks(mode, more)`; expected one that can",
    "train_input_fn(): pass": "Received --train_files, and",
    "model_fn(features, labels, mode): pass": "has a `model_fn`",
}
# Flags -> the message.
FLAGS = {
    "--epoch=2": "unrecognized arguments: --epoch=2; did you mean `--epochs`",
    "--model_dir=": "no --model_dir",
    "--sync": "--sync with --loop=fit",
    "--num_workers=2": "--num_workers=2 and --num_ps=0",
    "--num_ps=1": "--num_ps=1 and --num_workers=0",
    "--num_towers=3 --train_batch_size=3": "CPU:1; expected /device:CPU:0, /device:C",
    "--num_towers=2 --train_batch_size=3": "--train_batch_size=3 and --num_towers=2",
    "--train_files=no.csv": "'no.csv', which does not exist",
    "--train_files=empty.csv": "'empty.csv', which is empty",
    "--header_lines=4": "no rows after the header (header_lines=4)",
}
WITH_RATES = """

def callbacks():
    return [keras2.callbacks.ReduceLROnPlateau("loss")]
"""
WITH_INPUT_FN = JOB.replace("dataset_fn(dataset, mode)", "input_fn(files)")
WITHOUT_LENGTH = JOB.replace("dataset_fn(dataset, mode)", "train_input_fn()")
USAGE = [
    *((text, "", message) for text, message in FILES.items()),
    *((f"{JOB}\n\ndef {code}\n", "", told) for code, told in FUNCTIONS.items()),
    *((JOB, flags, message) for flags, message in FLAGS.items()),
    (V1_JOB, "--loop=estimator --train_files=", "Received no --train_files, and"),
    (V1_JOB, "--loop=session --train_files=", "Received no --train_files, and"),
    (f"{V1_JOB}{WITH_RATES}", "", "`ReduceLROnPlateau` sets the learning rate, and"),
    (WITH_INPUT_FN, "--header_lines=1", "--header_lines=1, and"),
    (WITH_INPUT_FN, "--bad_rows=skip", "or an `input_fn` that takes it"),
    (
        WITHOUT_LENGTH,
        "--train_files= --train_steps=3 --epochs=1",
        "--epochs=1 without --steps_per",
    ),
    (WITHOUT_LENGTH, "--train_files=", "Received neither --steps_per_epoch nor"),
]


@pytest.mark.usefixtures("working_folder")
def test_usage(subtests: pytest.Subtests, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.csv").write_text(ROWS)
    Path("empty.csv").touch()
    job = ["--model_def=job.py", "--loop=fit", "--model_dir=m"]
    for text, flags, message in USAGE:
        with subtests.test(str(text)):
            Path("job.py").write_text(text)
            words = ["train", *job, "--train_files=rows.csv", *flags.split()]
            assert main(words) == 2, (text, flags)
            assert message in one_line_of_error(capsys), (text, flags)


PREDICTIONS = """
import hookbridge as hb
import tensorflow as tf

v1 = tf.compat.v1


def model_fn(features, labels, mode):
    values = features * v1.get_variable("weight", [1, 3])
    loss = tf.reduce_mean(values)
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(
        loss, v1.train.get_global_step())
    return hb.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, predictions={})


def train_input_fn():
    return tf.data.Dataset.from_tensors(tf.ones([4, 1]))


predict_input_fn = train_input_fn
"""


def test_towers_of_fit_in_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = LocalCluster(num_workers=2, num_ps=1).configs()[0]
    monkeypatch.setenv("TF_CONFIG", cluster.to_json())
    (tmp_path / "job.py").write_text(JOB)
    job = [str(tmp_path / "job.py"), f"--model_dir={tmp_path}/m", "--loop=fit"]
    assert main(["train", *job, "--num_towers=2"]) == 2
    assert "--num_towers=2 with --loop=fit in a cluster" in capsys.readouterr().err


@pytest.mark.usefixtures("working_folder")
def test_predictions_of_any_structure_are_counted(
    subtests: pytest.Subtests, capsys: pytest.CaptureFixture[str]
) -> None:
    job = ["--model_def=job.py", "--model_dir=m"]
    Path("job.py").write_text(PREDICTIONS)
    assert main(["train", *job, "--train_steps=1", "--no_progress"]) == 0
    for predictions, code, message in (
        ("values", 0, "examples=4\n"),
        ("{'a': values}", 0, "examples=4\n"),
        ("{}", 2, "`model_fn` returned {} of type `dict`; expected predictions, a"),
    ):
        with subtests.test(str(predictions)):
            text = PREDICTIONS.replace("predictions={}", f"predictions={predictions}")
            Path("job.py").write_text(text)
            capsys.readouterr()
            assert main(["predict", *job]) == code
            out, err = capsys.readouterr()
            assert message in out + err


def test_optimizers_that_no_graph_has(keras: Any) -> None:
    kinds: Any = keras.optimizers
    cases = [(lambda: kinds.Adam(0.1), "is a Keras 3 optimizer, which cannot update")]
    if not compat.is_keras3(keras):
        cases = [
            (
                lambda: kinds.Adam(0.1, weight_decay=0.5),
                "is `Adam` with weight_decay=0.5",
            ),
            (lambda: kinds.Adafactor(), "is `Adafactor`, which cannot"),
        ]
    for make, message in cases:
        module = ModuleType("job")
        vars(module).update(__file__="job.py", custom_model=lambda: None)
        vars(module).update(loss=lambda labels, predictions: None, optimizer=make)
        vars(module).update(train_input_fn=lambda: None)
        with pytest.raises(errors.RefusedError, match=message):
            GraphOptimizer(ModelDefinition(module))


@pytest.fixture
def train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Trains in a loop; gives the exit code, what is printed, and the one message."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, rows: str, loop: str, *flags: str) -> tuple[int, str, str]:
        Path("job.py").write_text(text if loop == "fit" else in_graphs(text))
        Path("rows.csv").write_text(rows)
        words = ["job.py", f"--loop={loop}", "--train_files=rows.csv", "--model_dir=m"]
        code = main(["train", *words, "--train_batch_size=2", "--epochs=2", *flags])
        out, err = capsys.readouterr()
        lines = [x for x in err.splitlines() if x.startswith("hookbridge: ")]
        assert len(lines) == 1, err
        return code, out, lines[0]

    return run


BROKEN = ROWS + "9,nine,0\n" + ROWS
NAN = GOOD.format(units=3, scale="float('nan')")
# Loops, the file, its rows -> the message.
FAILED_RUNS = {
    "broken": (("estimator",), JOB, BROKEN,
               "rows.csv, line 5: Field 1 in record 0 is not a valid float: nine"),
    "header": (("fit",), JOB, "a,b,label\n" + ROWS,
               "header, --header_lines=1 leaves it out; --bad_rows"),
    "label": (("session",), JOB, ROWS + "1,1,7\n",
              "train: rows.csv, line 5: Received a label value of 7"),
    "nan": (("fit", "session"), NAN, ROWS, "job.py, line 9: `loss` became NaN."),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILED_RUNS)
def test_a_run_that_fails(case: str, train: Any) -> None:
    loops, text, rows, message = FAILED_RUNS[case]
    for loop in loops:
        code, _, line = train(text, rows, loop, f"--model_dir={loop}")
        assert code == 1 and message in line
        if case == "nan":
            assert weights(Path(loop))["global_step"] == 0  # saved before it


def test_bad_rows_are_skipped(train: Any) -> None:
    code, out, line = train(JOB, BROKEN, "estimator", "--bad_rows=skip")
    assert code == 0
    assert "skipped rows.csv, line 5" in line
    assert "skipped      1 row " in out
    assert "global_step=8" in out  # 8 rows, 2 in a batch, 2 epochs


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[bool]:
    """Mounts a file system of the given size on `folder`; gives False if it cannot."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    with contextlib.suppress(OSError):
        if subprocess.run(mount, capture_output=True).returncode == 0:
            try:
                yield True
            finally:
                subprocess.run(["umount", "-l", str(folder)], check=True)
            return
    yield False


@pytest.mark.slow
def test_a_full_disk(train: Any) -> None:
    # One checkpoint is 3.6 MB: weights and two slots of each.
    with small_disk(Path("m"), "5m") as is_mounted:
        if not is_mounted:
            pytest.skip("no file system can be mounted here")
        code, _, line = train(GOOD.format(units=100_000, scale=1.0), ROWS, "session")
        assert code == 1
        assert "--model_dir=m cannot be written: no space is left there" in line
        assert "The last whole checkpoint is m/model.ckpt-0." in line
        assert tf.train.latest_checkpoint("m").endswith("ckpt-0")
        assert weights(Path("m"))["global_step"] == 0  # it can be read

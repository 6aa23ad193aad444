"""Programs of several files: what one file means follows from the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_server import ForkServer

from hookbridge import migrate
from hookbridge.migrate import guest_sites
from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.programs import read_programs
from hookbridge.migrate.rewriting import files
from hookbridge.run import doctor

ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
# Program -> its files, and what it prints on TensorFlow 1.15.
PROGRAMS: dict[str, tuple[dict[str, str], list[str]]] = {
    # `tf.estimator.LinearRegressor` of TensorFlow 1 sums its loss; the truth of its
    # variables is not their value.
    "estimators": (
        {
            "main.py": """\
import tensorflow as tf
import model
from averages import getter

def data():
    x = {"x": [[1.0], [2.0], [3.0], [4.0]]}
    y = [[2.0], [4.0], [6.0], [8.0]]
    return tf.data.Dataset.from_tensors((x, y)).repeat()

def model_fn(features, labels, mode):
    with tf.variable_scope("g"):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    averages = tf.train.ExponentialMovingAverage(0.9)
    update = averages.apply([w])
    with tf.variable_scope("g", reuse=True, custom_getter=getter(averages)):
        mean = tf.get_variable("w", [])
    loss = tf.square(w - 1.0) + 0 * mean
    step = tf.train.get_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(train, update))

estimator = model.build()
estimator.train(data, steps=1)
print("loss %.2f" % estimator.evaluate(data, steps=1)["loss"])
data = lambda: tf.data.Dataset.from_tensors((1.0, 1.0)).repeat()
estimator = tf.estimator.Estimator(model_fn).train(data, steps=3)
print("w %.3f" % estimator.get_variable_value("g/w"))
""",
            "model.py": """\
import tensorflow as tf

def build():
    return tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
""",
            "averages.py": """\
def getter(averages):
    def get(getter, name, *args, **named):
        variable = getter(name, *args, **named)
        average = averages.average(variable)
        return average if average else variable
    return get
""",
        },
        ["loss 90.16", "w 0.488"],
    ),
    # The file with the dataset has no name that only TensorFlow 1 had, names of
    # TensorFlow come through two starred imports, and HParams from a package.
    "parts_of_a_session": (
        {
            "main.py": """\
import tensorflow as tf
import models
from pipeline import batch
from pkg import settings
params = settings.default()
params.override_from_dict({"layers": 2})
print("layers", params.layers)
x = batch()
with tf.Session() as session:
    print("x", session.run(x))
    print("sum", session.run(tf.reduce_sum(models.x), {models.x: [[1, 2, 3]]}))
""",
            "pipeline.py": """\
import tensorflow as tf

def batch():
    data = tf.data.Dataset.range(3).map(lambda n: n + 5)
    return tf.data.make_one_shot_iterator(data).get_next()
""",
            "layers.py": "import tensorflow as tf\nflags = tf.app.flags\n",
            "metrics.py": """\
import tensorflow as tf

def mean(x):
    return tf.reduce_mean(x)
""",
            "models.py": """\
from layers import *
from metrics import *
flags = tf.app.flags
x = tf.placeholder(tf.float32, [None, 3])
y = mean(x)
""",
            "pkg/__init__.py": "",
            "pkg/settings.py": """\
from tensorflow.contrib.training import HParams

def default():
    return HParams(layers=12)
""",
        },
        ["layers 2", "x 5", "sum 6.0"],
    ),
    # The main file has no session; a module makes a placeholder when it is imported.
    "session_elsewhere": (
        {
            "main.py": """\
import net
from training import train

if __name__ == "__main__":
    train(net.x, net.loss)
""",
            "net.py": """\
import tensorflow as tf
x = tf.placeholder(tf.float32, [])
w = tf.get_variable("w", [], initializer=tf.ones_initializer())
loss = (w * x - 3.0) ** 2
""",
            "training.py": """\
import tensorflow as tf

def train(x, loss):
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            _, value = session.run([step, loss], {x: 1.0})
        print("loss %.3f" % value)
""",
        },
        ["loss 1.638"],
    ),
    # A graph of the program's own does not make the rest a program of TensorFlow 2.
    "writer_outside_of_the_graph": (
        {
            "main.py": """\
import tensorflow as tf
from hooks import Writes

if __name__ == "__main__":
    hooks = [Writes(tf.Graph())]
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        up = tf.assign_add(step, 1)
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            print("step", session.run(up))
""",
            "hooks.py": """\
import tensorflow as tf

class Writes(tf.train.SessionRunHook):
    def __init__(self, graph):
        self.writer = tf.summary.FileWriter("out", graph=graph)
""",
        },
        ["step 1"],
    ),
}


def write(folder: Path, name: str) -> Path:
    for file, text in PROGRAMS[name][0].items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_rewritten_files_run_as_one_program(
    name: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    folder = write(tmp_path, name)
    for done in files.rewrite_files([folder]):
        assert isinstance(done, files.FileRewrite)
        assert not done.result.todos
        if done.result.changed:
            list(files.write_all([done]))
    ended = fork_server.run("main.py", folder=folder, **ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert set(PROGRAMS[name][1]) <= set(ended.stdout.splitlines())
    again = list(files.rewrite_files([folder]))
    assert not any(d.result.edits for d in again if isinstance(d, files.FileRewrite))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_main_file_alone_tells_doctor_all(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path, name)
    alone = doctor.diagnose([folder / "main.py"], "2.21")
    whole = doctor.diagnose([folder], "2.21")
    assert alone.left == whole.left == 0
    assert {d.name for d in alone.found} == {d.name for d in whole.found}
    assert alone.files == len(PROGRAMS[name][0])


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
    assert not any(programs.place(module).means_old for module in programs.given)
    (tmp_path / "old.py").write_text(
        "import tensorflow as tf\nimport shared\ntf.placeholder\n"
    )
    programs, _ = read_programs([tmp_path])
    old = {Path(m.file).stem for m in programs.given if programs.place(m).means_old}
    assert old == {"old", "shared"}


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
        assert not doctor.diagnose([file], "2.21").left, line
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
    for changed in (True, False):
        done = list(files.rewrite_files([tmp_path]))
        found = [d for d in done if isinstance(d, files.FileRewrite) and d.result.edits]
        assert bool(found) is changed
        list(files.write_all(found))
    assert "TF_USE_LEGACY_KERAS" in (tmp_path / "part.py").read_text()


def test_lists_that_come_from_us_are_no_places() -> None:
    text = """\
import hookbridge as hb
hooks = hb.as_hooks([a], steps_per_epoch=3)
estimator.train(f, hooks=hooks)
estimator.train(f, hooks=hb.as_hooks([b]))
model.fit(x, callbacks=hb.as_callbacks([b]))
"""
    assert not list(guest_sites.find(Module(text)))


def test_flags_are_one_row(tmp_path: Path) -> None:
    file = tmp_path / "main.py"
    file.write_text(
        "import tensorflow as tf\nFLAGS = tf.app.flags.FLAGS\n"
        "print(FLAGS.rate, FLAGS.size)\nprint(FLAGS.rate)\n"
    )
    found = [f for f in migrate.scan([file]).findings if f.code == "V1_NAME"]
    assert [f.line for f in found] == [2]

"""`hookbridge record` on whole programs, and what the recordings say of them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import CLUSTER_FLAGS, PROGRAMS, ROOT
from program_table import WHOLE

from hookbridge.cli import main
from hookbridge.reference.comparison import compare
from hookbridge.reference.recordings.recording_files import Recording

pytestmark = pytest.mark.slow

# Recorded on TF 2.15.1 by the commands of the first test; without the checkpoint.
DATA = ROOT / "tests" / "data"
IRIS = DATA / "iris_reference"
RECORDED = {
    "iris": ("--steps=12", "--then_stop"),
    "keras_fit": ("--steps=6",),
    "queue_fed": ("--steps=3", "--then_stop"),
}


@pytest.mark.parametrize(
    "name",
    ["keras_fit", "queue_fed", pytest.param("iris", marks=pytest.mark.exhaustive)],
)
def test_a_whole_program_is_the_same_on_each_tensorflow(
    name: str, tmp_path: Path, launcher: ForkServer
) -> None:
    program = WHOLE[name].command()
    words = [*RECORDED[name], "--to=run", *program]
    done = launcher.run("-m", "hookbridge", "record", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    reference, ours = Recording(DATA / f"{name}_reference"), Recording(tmp_path / "run")
    assert reference.header["versions"]["tensorflow"] == "2.15.1"
    result = compare(reference.folder, ours.folder)
    assert result.is_same, str(result)
    assert all(layer.measures for layer in result.layers), str(result)
    assert len(ours.steps) == len(reference.steps)
    if name == "iris":
        assert {"labels", "features/PetalWidth"} <= set(ours.steps[0].line["batch"])


TWICE = """
import tensorflow as tf

def train():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2])
        w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        with tf.train.MonitoredTrainingSession() as session:
            for _ in range(5):
                session.run(train_op, {x: [[1.0, 2.0]]})
            print("w", session.run(w).tolist())

train()
train()
"""


def test_each_training_has_a_folder(tmp_path: Path, launcher: ForkServer) -> None:
    """The program prints what it prints without a recorder."""
    (tmp_path / "twice.py").write_text(TWICE)
    words = ["--steps=3", "--to=run", "twice.py"]
    done = launcher.run("-m", "hookbridge", "record", *words, folder=tmp_path)
    plain = launcher.run("-m", "hookbridge", "run", "twice.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == plain.stdout and done.stdout.count("w ") == 2
    again = tmp_path / "run" / "training-2"
    assert len(Recording(again).steps) == 3
    assert compare(tmp_path / "run", again).is_same


PLAIN = """
import os
import sys
import tensorflow as tf

tf.set_random_seed(3)
x = tf.placeholder(tf.float32, [None, 4], name="x")
w = tf.get_variable("w", [4, 1])
never = tf.get_variable("never", [2])
loss = tf.reduce_mean(tf.square(tf.nn.dropout(x, keep_prob=0.5) @ w - 1.0))
train_op = tf.train.AdamOptimizer(0.1).minimize(loss, var_list=[w])
have_values = [v for v in tf.global_variables() if v is not never]
for session in [tf.Session(), tf.InteractiveSession()]:
    session.run(tf.variables_initializer(have_values))
    for n in range(6):
        session.run([train_op, loss], {x: [[n, 1.0, 2.0, 3.0]] * 3})
        drawn = session.run(tf.random_normal([]))  # an op more in each step
    print("w", session.run(w).tolist(), drawn)
os.chdir("/")
"""


def test_plain_sessions(tmp_path: Path, launcher: ForkServer) -> None:
    """Each by itself; they do what they do without a recorder."""
    (tmp_path / "plain.py").write_text(PLAIN)
    words = ["--steps=4", "--to=run", "--then_stop", "plain.py"]
    done = launcher.run("-m", "hookbridge", "record", *words, folder=tmp_path)
    plain = launcher.run("-m", "hookbridge", "run", "plain.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == plain.stdout and done.stdout.count("w ") == 2
    assert "no guest joined" not in done.stderr
    assert done.stderr.count("plain session to stop (--then_stop), so") == 2
    for folder in (tmp_path / "run", tmp_path / "run" / "training-2"):
        recording = Recording(folder)
        assert len(recording.steps) == 4 and "never" not in recording.variables
        last = recording.steps[-1]
        assert last.arrays("batch")["x"][0, 0] == 3 and last.loss
        assert last.line["gradient_norms"].keys() == {"w"}
        assert last.arrays("variables").keys() == {"w"}


EVALUATED = """
import sys
import numpy as np
import tensorflow as tf

def model_fn(features, labels, mode):
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], w) - labels))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def data():
    x = np.arange(8, dtype="float32").reshape(4, 2)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).repeat().batch(2)

estimator = tf.estimator.Estimator(model_fn, sys.argv[1])
train = tf.estimator.TrainSpec(data, max_steps=4)
evaluate = tf.estimator.EvalSpec(data, steps=2, throttle_secs=0)
tf.estimator.train_and_evaluate(estimator, train, evaluate)
estimator.train(data, max_steps=6)
print("w", estimator.get_variable_value("w").tolist())
"""
GUESTS = """
import tensorflow as tf

class Counting(tf.compat.v1.train.SessionRunHook):
    count = 0
    def after_run(self, run_context, run_values):
        self.count += 1
    def end(self, session):
        print("counted", self.count)

def guests():
    return [Counting()]
"""
RECORDER = """
import itertools
import hookbridge as hb

numbers = itertools.count(1)

def guests():
    return [hb.recorder(f"guest-{next(numbers)}")]
"""


@pytest.mark.both_tensorflows
def test_train_and_evaluate_with_guests(tmp_path: Path, launcher: ForkServer) -> None:
    """Trainings are recorded, evaluations are not; guests join both."""
    files = {"evaluated.py": EVALUATED, "guests.py": GUESTS, "recorder.py": RECORDER}
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def ran(model: str, *words: str) -> str:
        program = ("evaluated.py", model)
        done = launcher.run("-m", "hookbridge", *words, *program, folder=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        if words[0] == "record":
            assert ": 4 steps" in done.stderr and "hookbridge compare" in done.stderr
        return done.stdout

    plain = ran("plain", "run")
    assert ran("recorded", "record", "--to=run") == plain
    # Of the training with 4 steps, its evaluation, and the training with 2 more.
    counted = ran("counted", "record", "--to=again", "--guests=guests.py")
    numbers = [line for line in counted.splitlines() if line.startswith("counted")]
    assert sorted(numbers) == ["counted 2", "counted 2", "counted 4"]
    assert plain.splitlines()[-1] == counted.splitlines()[-1]
    # A recorder in a file of guests is of trainings alone.
    assert ran("by_guest", "run", "--guests=recorder.py") == plain
    recorded = {f.parent for f in tmp_path.glob("guest-*/steps.jsonl")}
    folders = [*recorded, *(tmp_path / n / "training-2" for n in ("run", "again"))]
    lengths = sorted(len(Recording(folder).steps) for folder in folders)
    assert lengths == [2, 2, 2, 4]
    assert compare(tmp_path / "run", tmp_path / "again").is_same
    batch = Recording(tmp_path / "run").steps[0].line["batch"]
    assert set(batch) == {"features/x", "labels"}


OF_CLUSTER = """
def main(_):
    workers = F.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": F.ps_hosts.split(","), "worker": workers})
    server = tf.train.Server(cluster, job_name=F.job_name, task_index=F.task_index)
    if F.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    is_chief, own = F.task_index == 0, 0
    with tf.train.MonitoredTrainingSession(server.target, is_chief) as session:
        while not session.should_stop():
            _, count = session.run([train_op, step], {x: [[1.0, 2.0]]})
            own += 1
            # The chief ends after the worker has made a step too.
            if is_chief and own >= 5 and count > own:
                break

tf.app.run()
"""


@pytest.mark.one_tensorflow
def test_cluster_of_flags(tmp_path: Path, launcher: ForkServer) -> None:
    """The chief records; a worker and a parameter server say that they do not."""
    (tmp_path / "cluster.py").write_text(CLUSTER_FLAGS + OF_CLUSTER)
    own = (launcher.python, "-m", "hookbridge", "record", "--steps=3", "--to=run")
    done = launcher.run(
        *("-m", "hookbridge", "cluster", "--tf1_flags", "--num_workers=1", "--"),
        *(*own, "cluster.py"),
        folder=tmp_path,
        PYTHONPATH=str(ROOT),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [x for x in done.stderr.splitlines() if "hookbridge record:" in x]
    assert any(x.startswith("[chief 0]") and "run: 3 steps" in x for x in lines)
    (of_worker,) = (x for x in lines if x.startswith("[worker 0]"))
    assert "has the task 'worker' in a cluster and records nothing" in of_worker
    steps = Recording(tmp_path / "run").steps
    assert len(steps) == 3 and steps[0].line["batch"] == {"x": [[1, 2], "float32"]}


def test_plain_sessions_of_other_tasks(tmp_path: Path, launcher: ForkServer) -> None:
    """They run as without a recorder, and leave the folder to the chief."""
    (tmp_path / "plain.py").write_text(PLAIN)
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"]}
    for task in ("worker", "evaluator"):
        config = {"cluster": cluster, "task": {"type": task, "index": 0}}
        done = launcher.run(
            *("-m", "hookbridge", "record", "--to=run", "plain.py"),
            folder=tmp_path,
            TF_CONFIG=json.dumps(config),
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("w ") == 2
        assert f"has the task {task!r} in a cluster and records nothing" in done.stderr
        assert not (tmp_path / "run").exists()


NOTHING = """
import sys
import tensorflow as tf

with tf.Session() as session:
    print(session.run(tf.constant(1)))
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
model.compile("sgd", "mse")
model.train_on_batch([[1.0]], [[1.0]])
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("own_code", [0, 3])
def test_nothing_recorded_is_no_success(
    own_code: int, tmp_path: Path, launcher: ForkServer
) -> None:
    """A failure of the program itself comes first."""
    (tmp_path / "nothing.py").write_text(NOTHING)
    words = ["--to=run", "nothing.py", str(own_code)]
    done = launcher.run("-m", "hookbridge", "record", *words, folder=tmp_path)
    assert done.returncode == (own_code or 1), done.stderr[-3000:]
    told = f"nothing was recorded in '{tmp_path / 'run'}'" in done.stderr
    assert told == ("`hb.loops.OwnLoop`" in done.stderr) == (own_code == 0)


def test_fit_with_parameter_servers(tmp_path: Path, launcher: ForkServer) -> None:
    words = ["--steps=3", "--to=run", str(PROGRAMS / "ps_fit.py")]
    done = launcher.run("-m", "hookbridge", "record", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    recording = Recording(tmp_path / "run")
    assert len(recording.steps) == 3
    line = recording.steps[0].line
    assert line["batch"] and "dense/kernel" in line["gradient_norms"]
    assert line["loss"] > 0 and line["learning_rate"] > 0


def test_bad_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "program.py"]) == 2
    assert "Received no --to" in capsys.readouterr().err
    assert main(["record", f"--to={IRIS}", "program.py"]) == 2
    assert "has a recording already" in capsys.readouterr().err


@pytest.mark.parametrize("framework", ["numpy", "pytorch"])
def test_ports_of_the_examples(
    framework: str, tmp_path: Path, launcher: ForkServer
) -> None:
    """The port to PyTorch says so where PyTorch is not installed."""
    examples = ROOT / "examples"
    words = ["--to=run", str(examples / "old_program.py")]
    done = launcher.run("-m", "hookbridge", "record", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    port = str(examples / f"port_to_{framework}.py")
    done = launcher.run(port, "run", "port", folder=tmp_path)
    if framework == "pytorch" and importlib.util.find_spec("torch") is None:
        assert done.returncode == 1 and "needs PyTorch" in done.stderr
        return
    assert done.returncode == 0, done.stderr[-3000:]
    result = compare(tmp_path / "run", tmp_path / "port")
    assert result.is_same, str(result)
    compared = [each.name for each in result.layers if each.measures]
    assert compared[-4:] == ["initial weights", "forward", "gradients", "update"]

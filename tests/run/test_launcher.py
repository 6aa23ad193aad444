"""`hookbridge run` runs a program as Python does, in the world that it needs."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import IS_215, ON_NEWEST, PROGRAMS, launch, launch_fork, output_of
from one_line import is_one_line
from written_files import write_files

from hookbridge.old_programs.reading.one_file.modules import Module, read_module

TF1 = PROGRAMS / "tf1"


def traceback_files(stderr: str) -> list[str]:
    """The files that a traceback names."""
    return [
        line.split('"')[1]
        for line in stderr.splitlines()
        if line.startswith('  File "')
    ]


@pytest.mark.slow
@pytest.mark.both_tensorflows
def test_a_tf1_program_runs_unedited() -> None:
    # The other ways of starting a process see the same message of the parent.
    methods = ["spawn"] if IS_215 else ["spawn", "fork", "forkserver"]
    words = ["session.py", "--steps=3", "--end=error", *methods]
    session = launch(*words, cwd=TF1, stdin="some input")
    seen = json.loads(session.stdout)
    assert seen["losses"] == [9.0, 0.5625, 0.03515625]
    assert (seen["count"], seen["width"], seen["mode"]) == (3, 2, "train")
    assert seen["helper"]  # the program's own modules get TensorFlow 1 too
    assert seen["library"] == [False, False]  # other packages get TensorFlow 2
    (told,) = [x for x in session.stderr.splitlines() if "hookbridge run:" in x]
    assert "session.py: `import tensorflow` is tensorflow.compat.v1" in told
    assert "v1 behaviour" in told
    # Keras is Keras 2 by every name.
    assert "keras3" not in seen["keras"] and seen["keras_version"] == "2"
    assert seen["same_keras"] == [True, "keras" if IS_215 else "tf_keras", True]
    # The program and its children see what Python shows them.
    assert seen["argv"] == words
    assert (seen["file"], seen["name"]) == ("session.py", "__main__")
    assert seen["path"] == str(TF1)
    assert seen["main"] and seen["spec"] and seen["pickled"] == 3
    assert seen["stdin"] == "some input"
    for method in methods:
        assert seen[method] == [method, True, False, True]
    # An error shows no frame of ours.
    assert session.returncode == 1
    assert session.stderr.rstrip().endswith("ValueError: of the program")
    files = traceback_files(session.stderr)
    assert files[0] == "session.py"
    assert files[-1].endswith("shared/helper.py")
    assert not [f for f in files if "/old_programs/run/" in f or "/cli/" in f]


def test_a_module_runs_as_python_m_does() -> None:
    done = launch("-m", "plain", "-m", "--keras=2")
    assert done.stdout.split("\n")[0] == (
        f"__main__ plain plain.__main__ ['-m', '--keras=2'] plain.part {PROGRAMS}"
    )
    assert (done.returncode, done.stderr) == (0, "")


@ON_NEWEST
def test_packages_above_a_module_are_imported_in_its_world(
    tmp_path: Path, launcher: ForkServer
) -> None:
    files = {
        "pkg/__init__.py": "from pkg.train import LAYERS\n",
        "pkg/train.py": "import tensorflow as tf\n"
        "from tensorflow.python.estimator import estimator\n"
        "LAYERS = tf.layers\n"
        "print(__name__, tf.placeholder.__name__, tf.keras.__name__)\n",
    }
    write_files(tmp_path, files)
    done = launch_fork(launcher, "-m", "pkg.train", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [
        ["pkg.train", "placeholder"],
        ["__main__", "placeholder"],
    ]


def test_a_summary_hook_without_a_place_writes_nothing(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """Alone, it is an error since TensorFlow 2.22."""
    program = (
        "import tensorflow as tf\n"
        "step = tf.train.get_or_create_global_step()\n"
        "tf.summary.scalar('step', step)\n"
        "summaries = tf.summary.merge_all()\n"
        "hook = tf.train.SummarySaverHook(1, summary_op=summaries)\n"
        "stop = tf.train.StopAtStepHook(3)\n"
        "count = step.assign_add(1)\n"
        "with tf.train.MonitoredTrainingSession(hooks=[hook, stop]) as session:\n"
        "    while not session.should_stop():\n"
        "        print(session.run(count))\n"
    )
    assert output_of(launcher, tmp_path, program).split() == ["1", "2", "3"]
    assert [path.name for path in tmp_path.iterdir()] == ["old.py"]


def test_layers_of_a_module_that_only_a_run_can_name(
    tmp_path: Path, launcher: ForkServer
) -> None:
    layers = (
        "import tensorflow as tf\n"
        "def build():\n    return tf.layers.flatten(tf.zeros([1, 2, 3]))\n"
    )
    write_files(tmp_path, {"has_layers.py": layers})
    program = (
        "import importlib\nimport tensorflow as tf\n"
        "tf.placeholder('float32')\n"
        "found = importlib.import_module('_'.join(['has', 'layers']))\n"
        "print(found.build().shape)\n"
    )
    assert output_of(launcher, tmp_path, program) == "(1, 6)\n"


def test_a_tpu_without_a_name_is_this_process(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """As `TPUEstimator` programs ask for the CPU: `--use_tpu=False --tpu=`."""
    program = (
        "import tensorflow as tf\n"
        "of_contrib = tf.contrib.cluster_resolver.TPUClusterResolver('')\n"
        "public = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')\n"
        "config = tf.contrib.tpu.RunConfig(cluster=of_contrib)\n"
        "print([of_contrib.master(), public.master(), config.master])\n"
        "try:\n"
        "    tf.contrib.cluster_resolver.TPUClusterResolver()\n"
        "except ValueError as error:\n"
        "    print('TPU' in str(error))\n"
    )
    output = output_of(launcher, tmp_path, program)
    assert output.splitlines() == ["['', '', '']", "True"]


@ON_NEWEST
def test_tests_under_pytest_are_the_program(
    tmp_path: Path, launcher: ForkServer
) -> None:
    (tmp_path / "test_old.py").write_text(
        "import sys\n"
        "from collections import Sequence\n"
        "import numpy as np\n"
        "def test_old_names():\n"
        "    import tensorflow as tf\n"
        "    assert tf.__version__ == tf.VERSION == tf.version.VERSION == '1.15.5'\n"
        "    assert isinstance([], Sequence) and np.Inf == np.inf\n"
        "    assert np.zeros(1, np.object).dtype == object and np.bool(1)\n"
        "    assert np.float is float and not hasattr(np, 'no_such_name')\n"
        "    assert np.asscalar(np.array([3.0])) == 3.0\n"
        "    import inspect\n"
        "    def f(a, b=1, *rest, **more): pass\n"
        "    found = inspect.getargspec(f)\n"
        "    assert found.args == ['a', 'b'] and found.keywords == 'more'\n"
        "    assert found == (['a', 'b'], 'rest', 'more', (1,))\n"
        "    assert sys.argv[1:] == ['-q', '-pno:cacheprovider', 'test_old.py']\n"
        "    tf.placeholder\n"
        "    assert not tf.executing_eagerly()\n"
        "    module = tf.keras.Model.__module__\n"
        "    from importlib.metadata import version\n"
        "    assert 'tf_keras' in module or version('tensorflow') < '2.16'\n"
        "    tf.layers.dense\n"
    )
    words = ("-m", "pytest", "-q", "-pno:cacheprovider")
    done = launch_fork(launcher, *words, "test_old.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pytest: `import tensorflow` is tensorflow.compat.v1" in done.stderr


def test_flags_act_before_the_program_begins(
    tmp_path: Path, launcher: ForkServer
) -> None:
    (tmp_path / "plain.py").write_text(
        "import importlib, os, sys\n"
        "tf = importlib.import_module('tensor' + 'flow')\n"
        "print(os.environ.get('TF_USE_LEGACY_KERAS'), tf.executing_eagerly())\n"
        "print(*sys.argv[1:])\n"
        "raise ValueError('its own')\n"
    )
    # Flags after the program are its own; so is its error.
    words = ("--keras=2", "--v1", "plain.py", "--v2", "--help")
    done = launch_fork(launcher, *words, cwd=tmp_path)
    keras = "None" if IS_215 else "1"
    assert done.stdout.split() == [keras, "False", "--v2", "--help"]
    assert done.returncode == 1
    assert traceback_files(done.stderr) == ["plain.py"]


@pytest.mark.parametrize(
    ("source", "code", "stderr"),
    [
        ("import sys; sys.exit('said')", 1, "said\n"),
        ("import os; os._exit(3)", 3, ""),
        ("exit(input())", 1, "yes\n"),
        ("import os; pid = os.fork(); exit(pid and os.wait()[1])", 0, ""),
    ],
)
def test_a_program_ends_as_it_wants(
    source: str, code: int, stderr: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(source)
    done = launch("program.py", cwd=tmp_path, stdin="yes\n")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


def test_a_link_and_a_folder_run_as_python_runs_them(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "__main__.py").write_text("import part; print(__file__, part.X)")
    (folder / "part.py").write_text("X = 3")
    (tmp_path / "link.py").symlink_to(folder / "__main__.py")
    assert launch("link.py", cwd=tmp_path).stdout == "link.py 3\n"
    assert launch("real", cwd=tmp_path).stdout == "real/__main__.py 3\n"


def test_an_interrupt_ends_the_process_as_a_signal_does(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal\n"
        # The parent of the tests may ignore the signal, and children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = launch("program.py", cwd=tmp_path)
    assert done.returncode == -signal.SIGINT
    assert traceback_files(done.stderr) == ["program.py"]
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


BAD = {
    "no_program": (["--v1"], "no program"),
    "missing": (["nowhere.py"], "'nowhere.py', which does not exist"),
    "missing_module": (["-m", "nowhere"], "the module 'nowhere'"),
    "no_module": (["-m"], "no program"),
    "no_python": (["binary.py"], "expected Python source"),
    "no_notebook": (["text.ipynb"], "expected a notebook: invalid JSON in line 1"),
    "syntax": (["syntax.py"], "syntax error in line 1"),
    "python_2": (["python2.py"], "fissix"),
    "standard_input": (["-"], "expected a Python file"),
    "epochs_of_nobody": (
        ["--steps_per_epoch=3", "fine.py"],
        "--steps_per_epoch=3 without --guests; expected both",
    ),
    "two_behaviours": (["--v1", "--v2", "fine.py"], "--v1 and --v2"),
    "keras_4": (["--keras=4", "fine.py"], "--keras: invalid choice: '4'"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_one_line_and_exit_code_2(
    case: str, tmp_path: Path, launcher: ForkServer
) -> None:
    (tmp_path / "binary.py").write_bytes(b"\x7fELF\x00\x01\xff")
    (tmp_path / "syntax.py").write_text("x = = 1\n")
    (tmp_path / "python2.py").write_text("print 'hello'\n")
    (tmp_path / "text.ipynb").write_text("import tensorflow\n")
    (tmp_path / "fine.py").write_text("import tensorflow\n")
    words, message = BAD[case]
    done = launch_fork(launcher, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hookbridge: run: ")
    assert is_one_line(done.stderr) and message in done.stderr


def test_tensorflow_that_is_there_before_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\nsys.modules['tensorflow'] = types.ModuleType('tensorflow')"
    )
    (tmp_path / "fine.py").write_text("import tensorflow\n")
    paths = f"{tmp_path}:{Path(__file__).resolve().parents[2]}"
    done = launch("fine.py", cwd=tmp_path, PYTHONPATH=paths)
    assert done.returncode == 2
    assert "TensorFlow was imported before" in done.stderr
    assert is_one_line(done.stderr)


OF_COMPAT_V1 = """\
import tensorflow.compat.v1 as tf
class ScanTest(tf.test.TestCase):
    def test_gradient(self):
        x = tf.placeholder(tf.float32, [])
        with self.test_session() as session:
            (gradient,) = session.run(tf.gradients(x * x, x), {x: 3.0})
        self.assertEqual(gradient, 6.0)
if __name__ == "__main__":
    tf.test.main()
"""


def test_tests_that_use_a_session_get_one(
    tmp_path: Path, bare_launcher: ForkServer
) -> None:
    """A test of `tensorflow.compat.v1` need not switch v1 behaviour on itself."""
    (tmp_path / "scan_test.py").write_text(OF_COMPAT_V1)
    ended = launch_fork(bare_launcher, "-m", "scan_test", cwd=tmp_path)
    assert ended.returncode == 0 and "OK" in ended.stderr, ended.stderr


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("with self.test_session() as s: s.run(x)", True),
        ("with self.test_session(): x.eval()", False),
        ("with self.cached_session() as s: s.run(x)", False),
        ("x = tf.placeholder(tf.float32)", True),
        ("with tf.Graph().as_default(): tf.placeholder(tf.float32)", False),
    ],
)
def test_what_a_test_needs(body: str, needs: bool, tmp_path: Path) -> None:
    (tmp_path / "a_test.py").write_text(
        "import tensorflow.compat.v1 as tf\n"
        f"class ATest(tf.test.TestCase):\n    def test_a(self):\n        {body}\n"
    )
    module = read_module(str(tmp_path / "a_test.py"))
    assert isinstance(module, Module)
    assert (module.evidence.needs_v1 is not None) is needs

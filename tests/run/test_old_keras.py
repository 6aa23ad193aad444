"""Keras as a package of its own, of 2016 to 2019: run, told and rewritten.

The record has the public names of Keras 2.2.4 and 2.3.1, with the arguments of each
function and class, and the names that they had no more of Keras 1.2.2.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from launching import IS_215, ROOT, output_of

from hookbridge.old_programs.rewriting.file_rewrites import FileRewrite, rewrite_files
from hookbridge.old_programs.scanning.diagnosis import diagnose
from hookbridge.old_programs.scanning.scan import scan
from hookbridge.tf1_names import keras_arguments, old_keras
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target, table

# `{module: {name: its arguments}}`, with `class.method` too; None for a constant.
RECORD: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).with_name("data") / "keras_2_3.json").read_text("utf-8")
)
NAMES = [
    (module, name)
    for module, names in RECORD.items()
    for name in names
    # The function `merge` of Keras 1 has the name of a module of Keras 2.
    if "." not in name and f"{module}.{name}" not in RECORD
]
# What a program does with each name that it gets.
LOOKING_UP = """
import inspect, json, operator, sys
import tensorflow as tf

found = {}

def arguments(value):
    try:
        made = value.__init__ if inspect.isclass(value) else value
        return inspect.signature(made).parameters
    except (TypeError, ValueError):
        return {}

def look_up(name, value, place, old):
    is_removed, public = type(value).__name__ == "Removed", value
    if place.startswith("tf."):
        public = operator.attrgetter(place[3:].replace("compat.v1.", ""))(tf)
    today = {} if is_removed else arguments(value)
    is_open = any(one.kind is one.VAR_KEYWORD for one in today.values())
    lost = [] if is_open or not today else sorted(set(old or ()) - set(today))
    found[name] = [is_removed, value is public, lost]

"""
# Arguments that hardly a program names, or of functions that no program calls.
OF_NO_USE = {
    *("Node", "_compute_fans", "batch_get_value", "ctc_decode", "is_all_none"),
    *("load_weights_from_hdf5_group", "load_weights_from_hdf5_group_by_name"),
    *("prepare_loss_weights", "preprocess_weights_for_loading", "set_epsilon"),
    *("save_weights_to_hdf5_group", "serialize_keras_object", "set_floatx", "to_list"),
    *("GeneratorEnqueuer", "one_hot", "text_to_word_sequence", "TensorBoard"),
}


@pytest.fixture(scope="module")
def looked_up(
    tmp_path_factory: pytest.TempPathFactory, launcher: ForkServer
) -> dict[str, Any]:
    """What a program gets for each name: whether removed, the public one, and less."""
    folder = tmp_path_factory.mktemp("looked_up")
    lines = [LOOKING_UP]
    for module, name in NAMES:
        full, place = f"{module}.{name}", table("keras-2.3")[module][name][0]
        lines.append(f"from {module} import {name} as one")
        lines.append(f"look_up({full!r}, one, {place!r}, {RECORD[module][name]})")
    lines.append("print(json.dumps(found))\n")
    output = output_of(launcher, folder, "\n".join(lines))
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def test_every_name_is_known() -> None:
    rows = table("keras-2.3")
    assert {(m, n) for m, n in NAMES} <= {(m, n) for m in rows for n in rows[m]}
    assert len(NAMES) > 1300


def test_a_program_gets_each_name_as_the_table_says(looked_up: dict[str, Any]) -> None:
    """What has a public name is the same object; what is removed raises when used."""
    wrong = []
    for module, name in NAMES:
        is_removed, is_public, _ = looked_up[f"{module}.{name}"]
        place = table("keras-2.3")[module][name][0]
        if is_removed != (not place) or not is_public:
            wrong.append(f"{module}.{name}")
    assert wrong == [old_keras.OPTIMIZER]


def test_an_optimizer_of_the_programs_own_trains(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """Its base class is the one with `get_updates`, which `tf.keras` never had."""
    program = (
        "import keras, keras.backend as K\nimport numpy as np\n"
        "from keras.optimizers import Optimizer\n"
        "class Halved(Optimizer):\n"
        "    def __init__(self, lr=0.5, **kwargs):\n"
        "        super(Halved, self).__init__(**kwargs)\n"
        "        self.lr = K.variable(lr)\n"
        "    def get_updates(self, loss, params):\n"
        "        pairs = zip(params, self.get_gradients(loss, params))\n"
        "        self.updates = [K.update_sub(p, self.lr / 2 * g) for p, g in pairs]\n"
        "        return self.updates\n"
        "x = keras.layers.Input([1])\n"
        "y = keras.layers.Dense(1, init='one')(x)\n"
        "model = keras.models.Model(input=x, output=y)\n"
        "model.compile(Halved(), 'mse')\n"
        "model.fit(np.ones([1, 1]), np.zeros([1, 1]), nb_epoch=1, verbose=0)\n"
        "print([w.tolist() for w in model.get_weights()])\n"
    )
    assert output_of(launcher, tmp_path, program) == "[[[0.5]], [-0.5]]\n"
    found = diagnose([tmp_path / "old.py"], NEWEST).report.findings
    (optimizer,) = [finding for finding in found if finding.name == old_keras.OPTIMIZER]
    assert optimizer.code == "KERAS_BY_RUN"


def test_every_argument_that_is_lost_is_told(looked_up: dict[str, Any]) -> None:
    untold = {}
    for full, (_, _, lost) in looked_up.items():
        name = full.rpartition(".")[2]
        known = keras_arguments.of_class(name).keys() | {"args", "kwargs"}
        if left := set(lost) - known:
            untold[name] = sorted(left)
    assert set(untold) <= OF_NO_USE, untold


@pytest.mark.parametrize("version", ["2.15", "2.21"])
def test_a_name_has_one_answer(version: str) -> None:
    target = Target(version)
    for module, name in NAMES:
        place, last = table("keras-2.3")[module][name]
        outcome = resolve(f"{module}.{name}", target)
        assert outcome is not None and outcome.way_out
        assert bool(outcome.replacement) == place.startswith("tf.")
        if outcome.replacement:
            assert resolve(outcome.replacement, target) is None, (name, outcome)
            newest = 2.15 if version == "2.15" else 3
            assert (outcome.code == "KERAS2_NAME") == (last >= newest)


def programs() -> dict[str, str]:
    """Ways of writing of their time, and what each prints."""
    text = Path(__file__).with_name("old_keras_programs.txt").read_text("utf-8")
    parts = [part.partition("\n") for part in text.split("=== ")[1:]]
    return {name: program for name, _, program in parts}


@pytest.mark.parametrize("name", programs())
def test_a_program_runs_and_is_rewritten(
    name: str, tmp_path: Path, launcher: ForkServer, fork_server: ForkServer
) -> None:
    """It prints what it did on Keras 2.2.4 or 2.3.1."""
    program, _, printed = programs()[name].partition("---\n")
    assert output_of(launcher, tmp_path, program) == printed
    target = "2.15" if IS_215 else NEWEST
    assert not diagnose([tmp_path / "old.py"], target).left
    (one,) = rewrite_files([tmp_path / "old.py"], target=target)
    assert isinstance(one, FileRewrite)
    if "# by `run` alone" in program:
        assert "# TODO(hookbridge)" in one.content
        return
    assert "TODO(hookbridge)" not in one.content
    (tmp_path / "new.py").write_text(one.content)
    plain = fork_server.run("new.py", folder=tmp_path)
    assert (plain.stdout, plain.returncode) == (printed, 0), plain.stderr[-2000:]
    (again,) = rewrite_files([tmp_path / "new.py"], target=target)
    assert isinstance(again, FileRewrite) and not again.result.changed


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("from keras.utils import multi_gpu_model\nmulti_gpu_model(1)", "KERAS_GONE"),
        ("from keras.layers import Highway\nHighway()", "KERAS_GONE"),
        ("import keras\nkeras.wrappers.scikit_learn.KerasClassifier()", "KERAS_GONE"),
        ("import keras\nm.fit_generator(g, samples_per_epoch=9)", "KERAS1_COUNT"),
        (
            "from keras.engine.topology import Layer\n"
            "Layer, m.compile('sgd', metrics=['accuracy'])\n"
            "m.fit(x).history['accuracy']",
            "KERAS_LOG",
        ),
    ],
)
def test_what_is_gone_is_left_to_a_person(line: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(line + "\n")
    left = [
        one.code
        for one in diagnose([tmp_path / "old.py"], NEWEST).report.findings
        if one.person
    ]
    assert set(left) == {code}


def test_what_keras_3_has_is_left_to_it(tmp_path: Path) -> None:
    """A program that shows no other Keras gets the one that is installed."""
    (tmp_path / "new.py").write_text(
        "import keras\nfrom keras.layers import Dense\n"
        "keras.Sequential([Dense(1)]).compile('adam', metrics=['accuracy'])\n"
    )
    assert not diagnose([tmp_path / "new.py"], NEWEST).report.findings
    assert old_keras.last_keras("keras.layers.Dense") == 3


@pytest.mark.parametrize(
    ("statement", "is_old"),
    [
        ("LSTM(2, batch_input_shape=(1, 2, 3))", True),
        ("Dense(2, batch_size=3, input_shape=(2,))", True),
        ("Dense(2, weights=[w])", True),
        ("Embedding(2, 3, weights=[w]), Input((2,), batch_size=3)", False),
        ("model.fit(x, y, workers=2)", True),
        ("model.compile('sgd', 'mse', sample_weight_mode='temporal')", True),
        ("model._make_predict_function()", True),
        ("model.get_layer('a').output_shape, model.output_shape", True),
        ("model.layers[0].get_output_at(0)", True),
        ("model.layers[1:], model.output_shape, model.input_shape", False),
        ("print(model.optimizer.lr)", True),
        ("layer.add_weight('w', (1, 2)), model.reset_states()", True),
        ("layer.add_weight((1, 2)), environment.reset_states()", False),
        ("f = 'w' + str(n) + '.hdf5'\nModelCheckpoint(f)", True),
        ("ModelCheckpoint(os.path.join(d, 'w-{}.h5'.format(n)))", True),
        ("ModelCheckpoint('m.keras'), ModelCheckpoint(f)", False),
        ("ModelCheckpoint('w.weights.h5', save_weights_only=True)", False),
        ("ModelCheckpoint('m.keras', period=2)", True),
        ("model.save_weights('w.h5'), model.load_weights('w.h5')", True),
        ("model.save_weights('w.weights.h5'), net.save_weights('w.npy')", False),
        ("model.save('m.h5')", True),
        ("keras.ops.add(1, 2), model.save('m.h5')", False),
    ],
)
def test_what_keras_3_refuses_means_keras_2(
    statement: str, is_old: bool, tmp_path: Path
) -> None:
    (tmp_path / "old.py").write_text(
        "import keras\nfrom keras.callbacks import ModelCheckpoint\n"
        f"from keras.layers import LSTM, Dense, Embedding, Input\n{statement}\n"
    )
    found = {
        one.code for one in diagnose([tmp_path / "old.py"], NEWEST).report.findings
    }
    assert ("KERAS2_NAME" in found) == is_old


VERSIONED = """import tensorflow as tf
from tensorflow import keras
import tensorflow.keras as K
x = tf.placeholder(tf.float32)
print(tf.keras.__version__, keras.__version__, K.__version__)
print(issubclass(K.layers.Dense, tf.keras.layers.Layer))
"""


@pytest.mark.slow
@pytest.mark.both_tensorflows
def test_tf_keras_has_a_version(tmp_path: Path, launcher: ForkServer) -> None:
    """That of Keras 2 has none, of itself."""
    output = output_of(launcher, tmp_path, VERSIONED)
    assert output.split() == ["2.2.4-tf"] * 3 + ["True"]
    assert not diagnose([tmp_path / "old.py"], NEWEST).left
    (done_file,) = rewrite_files([tmp_path / "old.py"])
    assert isinstance(done_file, FileRewrite) and not done_file.result.todos
    assert done_file.content.count("tf_keras.__version__") == 3
    (in_2_15,) = rewrite_files([tmp_path / "old.py"], target="2.15")
    assert isinstance(in_2_15, FileRewrite)
    assert {todo.code for todo in in_2_15.result.todos} == {"KERAS_BY_RUN"}
    new = tmp_path / "new.py"  # of TensorFlow 2, with Keras 3
    new.write_text("import tensorflow as tf\nprint(tf.keras.__version__)\n")
    assert not diagnose([new], NEWEST).report.findings


THREADS = """import threading
import numpy as np
import tensorflow as tf
from {keras} import backend as K
from {keras}.layers import Dense
from {keras}.models import Sequential
graph, session = tf.get_default_graph(), tf.Session()
if {is_set}:
    K.set_session(session)
model = Sequential([Dense(1, input_shape=(2,))])
model.set_weights([np.ones((2, 1)), np.zeros(1)])
model.predict(np.ones((1, 2)))
def predict():
    with graph.as_default():
        print(K.get_session() is session)
        try:
            print(model.predict(np.ones((1, 2))).tolist())
        except tf.errors.FailedPreconditionError:
            print("not initialized")
def predict_without_graph():
    print(K.get_session() is session)
    try:
        print(model.predict(np.ones((1, 2))).tolist())
    except tf.errors.InvalidArgumentError:
        print("not in the graph")
for target in (predict, predict_without_graph):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
print(model.predict(np.ones((1, 2))).tolist())
"""
NOT_SHARED = ["False", "not initialized", "False", "not in the graph", "[[2.0]]"]
# The package, whether a session is set -> what TensorFlow 1.15.5 with Keras 2.2.4
# prints.
OF_THREADS = {
    ("keras", True): ["True", "[[2.0]]", "True", "[[2.0]]", "[[2.0]]"],
    ("keras", False): ["False", "[[2.0]]", "False", "[[2.0]]", "[[2.0]]"],
    ("tensorflow.keras", True): NOT_SHARED,
    ("tensorflow.keras", False): NOT_SHARED,
}


@pytest.mark.slow
@pytest.mark.both_tensorflows
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case[1] else [pytest.mark.exhaustive])
        for case in OF_THREADS
    ],
    ids=str,
)
def test_threads_share_the_session_of_keras_as_a_package(
    case: tuple[str, bool], tmp_path: Path, launcher: ForkServer
) -> None:
    """Under `run`, and rewritten."""
    keras, is_set = case
    program = THREADS.format(keras=keras, is_set=is_set)
    assert output_of(launcher, tmp_path, program).splitlines() == OF_THREADS[case]
    found = [f for f in scan([tmp_path]).findings if f.code == "KERAS_SESSION"]
    assert bool(found) is (keras == "keras")
    assert not diagnose([tmp_path / "old.py"], NEWEST).left
    target = "2.15" if IS_215 else NEWEST
    (rewritten,) = rewrite_files([tmp_path / "old.py"], target=target)
    assert isinstance(rewritten, FileRewrite) and not rewritten.result.todos
    new = tmp_path / "new.py"
    new.write_text(rewritten.content)
    done = launcher.run(str(new), folder=tmp_path, PYTHONPATH=str(ROOT))
    assert done.stdout.splitlines() == OF_THREADS[case], done.stderr

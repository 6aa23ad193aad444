"""tf.contrib under `hookbridge run`: living names act as on TensorFlow 1.15."""

from __future__ import annotations

import ast
import json
import math
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from fork_server import ForkServer
from launching import ON_NEWEST, PROGRAMS, launch_fork, output_of

import hookbridge
from hookbridge.contrib import namespace
from hookbridge.contrib.areas import learn

CONTRIB = PROGRAMS / "contrib"
# Written by `python3.7 tests/run/programs/contrib/areas.py FILE FILE` on TF 1.15.5.
RECORDED = Path(__file__).with_name("data") / "contrib_areas_1_15.json"
SEQ2SEQ = RECORDED.with_name("contrib_seq2seq_1_15.json")
# Name of tf.contrib -> its arguments on TensorFlow 1.15.5.
SIGNATURES = RECORDED.with_name("contrib_signatures_1_15.json")
# Name of a class of tf.contrib -> its public members on TensorFlow 1.15.5.
MEMBERS = RECORDED.with_name("contrib_members_1_15.json")
# Name -> how the arguments that follow the first ones differ from 1.15.
DIFFERENT: dict[str, str] = {
    "autograph.set_loop_options": "TensorFlow has no `back_prop` any more",
    "eager.Variable": "TensorFlow 2 has no `collections`",
    "eager.defun": "rare options of `tf.function` have another place",
    "eager.function": "rare options of `tf.function` have another place",
    "lookup.string_to_index_table_from_file": "`name` is the last argument today",
    "opt.LazyAdamOptimizer": "TensorFlow's Adam has one more",
    "quantization.dequantize": "the op has more options before `name`",
    "quantization.quantize_v2": "the op has more options before `name`",
    "quantization.quantized_depthwise_conv2d_with_bias_and_relu": (
        "the op has more options before `name`"
    ),
    "quantization.quantized_depthwise_conv2d_with_bias_and_relu_and_requantize": (
        "the op has more options before `name`"
    ),
    "rnn.GRUBlockCellV2": "`cell_size`, which had been given up, is gone",
    "tensorboard.plugins.projector.visualize_embeddings": "a writer is `logdir`",
    "tpu.InfeedQueue": "it has one more option before `name`",
    "util.loader.load_op_library": "`path` is `library_filename`",
}
# Class -> the members that it lacks today, and why.
LACKING: dict[str, str | None] = {
    "data.Optional": "none_from_structure value_structure",  # renamed by TensorFlow
    # Functions that make TensorFlow's own.
    "distribute.CollectiveAllReduceStrategy": None,
    "distribute.MirroredStrategy": None,
    "distribute.ParameterServerStrategy": None,
    # A function: towers take the optimizer itself.
    "estimator.TowerOptimizer": None,
    # TensorFlow has the message no more.
    "training.HParams": ("from_proto get_model_structure set_model_structure to_proto"),
    "learn.Experiment": (  # schedules with few uses; the error names the others
        "continuous_eval continuous_eval_on_train_data continuous_train_and_eval "
        "local_run reset_export_strategies run_std_server test"
    ),
    "learn.ModeKeys": "validate",  # TensorFlow's own checks
    # What the session's configuration says today.
    "learn.RunConfig": "environment get_task_id tf_config",
    # Abstract: a class of the program's own has them.
    "seq2seq.Decoder": "batch_size initialize output_dtype output_size step",
    "seq2seq.Helper": "initialize next_inputs sample",
}


def is_close(a: Any, b: Any) -> bool:
    """Whether two structures are equal, numbers to about the precision of float32."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_close(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=2e-4, abs_tol=2e-4)
    return bool(a == b)


def printed_and_recorded(launcher: ForkServer, name: str) -> tuple[Any, Any]:
    """What a program prints here, and what it prints on TensorFlow 1.15.5."""
    done = launch_fork(launcher, f"{name}.py", cwd=CONTRIB)
    assert done.returncode == 0, done.stderr
    recorded = RECORDED.with_name(f"contrib_{name}_1_15.json").read_text()
    return json.loads(done.stdout.splitlines()[-1]), json.loads(recorded)


@ON_NEWEST
@pytest.mark.slow
def test_small_functions_act_as_on_1_15(launcher: ForkServer) -> None:
    assert is_close(*printed_and_recorded(launcher, "small"))


@pytest.mark.slow
def test_cells_act_as_on_1_15(launcher: ForkServer) -> None:
    found, recorded = printed_and_recorded(launcher, "cells")
    assert (found["names"], found["errors"]) == (recorded["names"], recorded["errors"])
    for cell, values in recorded["values"].items():
        assert is_close(found["values"][cell], values), cell


@pytest.mark.slow
def test_functions_with_other_arguments_today_act_as_on_1_15(
    launcher: ForkServer,
) -> None:
    found, recorded = printed_and_recorded(launcher, "functions")
    differing = {n: found[n] for n in found if not is_close(found[n], recorded[n])}
    assert not differing and found.keys() == recorded.keys()


@ON_NEWEST
def test_fused_cells_name_their_variables_as_on_1_15(
    launcher: ForkServer, tmp_path: Path
) -> None:
    program = (
        "import tensorflow as tf\nfrom tensorflow.contrib import rnn\n"
        "x = tf.zeros([5, 2, 4])\nfor cell in rnn.LSTMBlockFusedCell(3), "
        "rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(3)), "
        "rnn.LSTMBlockFusedCell(3, reuse=True):\n    cell(x, dtype=tf.float32)\n"
        "rnn.LSTMBlockFusedCell(3)(x, dtype=tf.float32, scope='own')\n"
        "print(*(v.op.name for v in tf.global_variables() if 'kernel' in v.name))\n"
    )
    names = "lstm_fused_cell/kernel lstm_fused_cell_1/kernel own/kernel"
    assert output_of(launcher, tmp_path, program).splitlines()[-1] == names


@ON_NEWEST
@pytest.mark.slow
def test_gradients_of_functions_are_those_of_1_15(launcher: ForkServer) -> None:
    printed, recorded = printed_and_recorded(launcher, "eager")
    assert printed == recorded


def test_a_function_that_makes_an_experiment_is_called_by_position() -> None:
    """As TensorFlow 1.15 does: its arguments may have any names."""
    asked: list[Any] = []

    def make(configuration: Any, params: Any) -> Any:
        asked.append((configuration, params))
        return mock.Mock()

    learn.run(make, run_config="config", hparams="params", schedule="train")
    assert asked == [("config", "params")]


# Functions of users -> the names by which TensorFlow calls them too. All others get
# their arguments by position: a program may give these any names.
BY_NAME = {
    "experiment_fn": {"output_dir"},
    "export": {
        *("estimator", "export_path", "checkpoint_path", "eval_result"),
        "is_the_final_export",
    },
    "model_fn": {None},  # those that `Estimator` itself passes
}
# They end in the same way.
OUR_FUNCTIONS = {"replicate_model_fn"}
USERS = re.compile(r"(?:^|_)(?:fn|export|initializer|regularizer|getter|signature)$")


def test_functions_of_users_are_called_as_tensorflow_calls_them() -> None:
    found: dict[str, set[str | None]] = {}
    package = Path(hookbridge.__file__).parent
    for folder in ("contrib", "estimator", "jobs/loops/towers"):
        for path in sorted((package / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not (isinstance(node, ast.Call) and node.keywords):
                    continue
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if USERS.search(name.lstrip("_")) and name not in OUR_FUNCTIONS:
                    found.setdefault(name, set()).update(k.arg for k in node.keywords)
    assert found == BY_NAME


@pytest.fixture(scope="module")
def outs(tmp_path_factory: pytest.TempPathFactory, launcher: ForkServer) -> list[Any]:
    """What the program prints of names, and the records of areas and decoders."""
    folder = tmp_path_factory.mktemp("contrib")
    files = [folder / "areas.json", folder / "seq2seq.json"]
    words = ("names.py", *map(str, (SIGNATURES, MEMBERS, *files)))
    done = launch_fork(launcher, *words, cwd=CONTRIB)
    assert done.returncode == 0, done.stderr
    texts = [done.stdout.splitlines()[0], *(file.read_text() for file in files)]
    return list(map(json.loads, texts))


@pytest.mark.slow
def test_areas_and_decoders_act_as_on_1_15(outs: list[Any]) -> None:
    for found, record in zip(outs[1:], (RECORDED, SEQ2SEQ), strict=True):
        recorded = json.loads(record.read_text())
        assert found.keys() == recorded.keys()
        differing = {n: found[n] for n in found if not is_close(found[n], recorded[n])}
        assert not differing


@pytest.mark.slow
def test_names_take_the_arguments_and_have_the_members_of_1_15(outs: list[Any]) -> None:
    names = outs[0]
    for name, arguments in json.loads(SIGNATURES.read_text()).items():
        found, wanted = names["arguments"][name].split(), arguments.split()
        if found[-1:] == ["..."]:  # the rest is passed on
            found.pop()
            wanted = wanted[: len(found)]
        # TensorFlow's own functions may have got more arguments.
        found = found if name in names["ours"] else found[: len(wanted)]
        assert found == wanted or name in DIFFERENT, name
    for name in json.loads(MEMBERS.read_text()):
        assert names["lacking"][name] == LACKING.get(name, ""), name


@pytest.mark.parametrize(
    "named",
    [{"devices": ["/device:GPU:0", "/gpu:1"]}, {"num_gpus": 2}],
    ids=["devices", "num_gpus"],
)
def test_a_mirrored_strategy_over_gpus_that_are_not_there_trains(
    named: dict[str, Any],
) -> None:
    """TensorFlow's own waits for NCCL between them, for ever."""
    distribute = namespace.root().distribute
    with tf.Graph().as_default():
        strategy = distribute.MirroredStrategy(**named)
        assert strategy.num_replicas_in_sync == 2
        with strategy.scope():
            weight = tf.compat.v1.get_variable("w", initializer=1.0)

            def replica() -> Any:
                optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.25)
                return optimizer.minimize(weight * 1.0)

            step = strategy.unwrap(strategy.run(replica))
        config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
        with tf.compat.v1.Session(config=config) as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(step)
            assert session.run(strategy.unwrap(weight)) == (0.5, 0.5)


def test_private_ops_and_switches_of_contrib_are_given_back() -> None:
    contrib: Any = namespace.root()
    assert contrib.autograph.convert()(lambda x: x + 1)(1) == 2
    with contrib.eager.execution_mode(contrib.eager.SYNC):
        quantized = contrib.quantization.quantize_v2([0.0, 1.0], 0.0, 1.0, tf.quint8)
        restored = contrib.quantization.dequantize(*quantized)
    np.testing.assert_allclose(restored, [0.0, 1.0], atol=0.01)
    with tf.Graph().as_default() as graph:
        contrib.tpu.infeed_enqueue_tuple([1.0], shapes=[[]], device_ordinal=0)
        contrib.tpu.outfeed_dequeue(tf.float32, [])
    assert [op.type for op in graph.get_operations()][-2:] == [
        "InfeedEnqueueTuple",
        "OutfeedDequeue",
    ]


def test_heads_of_estimator_have_the_losses_of_1_15() -> None:
    heads = namespace.root().estimator
    logits = [[0.5], [-1.0]]
    for head, values, labels, wanted in (  # the losses are those of 1.15.5
        (heads.binary_classification_head(), logits, [[1], [0]], 0.39366934),
        (
            heads.multi_class_head(3),
            [[0.5, 1.0, 2.0], [-1.0, 0.0, 0.0]],
            [[1], [2]],
            1.16318178,
        ),
        (heads.regression_head(), logits, [[1.0], [0.0]], 0.625),
        (heads.poisson_regression_head(), logits, [[1.0], [2.0]], 2.08420348),
        (heads.logistic_regression_head(), logits, [[1.0], [0.3]], 0.54366934),
    ):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            found = head.create_loss({}, "eval", tf.constant(values), labels)
            assert session.run(found.training_loss) == pytest.approx(wanted)


GRU_BLOCK = """
import numpy as np
import tensorflow as tf

x, before = np.array([[1.0, -0.5]], "f"), np.array([[0.3, 0.1, -0.2]], "f")
tf.set_random_seed(1)
cell = tf.contrib.rnn.GRUBlockCell(3)
results = cell(tf.constant(x), tf.constant(before))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    names = [variable.op.name for variable in cell.variables]
    w_ru, b_ru, w_c, b_c = session.run(cell.variables)
    output, after = session.run(results)
assert names == ["gru_cell/" + n for n in ("w_ru", "b_ru", "w_c", "b_c")], names
gates = 1 / (1 + np.exp(-(np.hstack([x, before]) @ w_ru + b_ru)))
reset, update = np.split(gates, 2, 1)
candidate = np.tanh(np.hstack([x, before * reset]) @ w_c + b_c)
wanted = (1 - update) * candidate + update * before
np.testing.assert_allclose([output, after], [wanted, wanted], atol=1e-6)
assert (b_ru == 1).all() and (b_c == 0).all()
"""


@pytest.mark.slow
def test_a_gru_block_cell_computes_what_1_15_documents(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """It has the variables of 1.15."""
    output_of(launcher, tmp_path, GRU_BLOCK)


def test_private_names_that_contrib_handed_on_are_given_back() -> None:
    """Their values are those of formulas."""
    contrib = namespace.root()
    distributions = contrib.distributions
    scale = np.log1p(np.e)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        normal = distributions.NormalWithSoftplusScale(0.0, 1.0)
        assert contrib.framework.strip_name_scope("a/b/c", "a") == "b/c"
        text = session.run(contrib.deprecated.scalar_summary("loss", 2.0))
        summary = tf.compat.v1.Summary.FromString(text).value[0]
        assert (summary.tag, summary.simple_value) == ("loss", 2.0)
        density = session.run(normal.prob(0.5))
        triangle = session.run(distributions.fill_triangular([1.0, 2.0, 3.0]))
        hot = session.run(contrib.seq2seq.hardmax([[1.0, 3.0], [2.0, 0.0]]))
    wanted = np.exp(-0.5 * (0.5 / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(density, wanted, rtol=1e-5)
    assert triangle.tolist() == [[3.0, 0.0], [2.0, 1.0]]
    assert hot.tolist() == [[0.0, 1.0], [1.0, 0.0]]


@ON_NEWEST
@pytest.mark.slow
def test_an_estimator_of_a_saved_model_trains_as_on_1_15(
    tmp_path: Path, launcher: ForkServer
) -> None:
    done = launch_fork(launcher, str(CONTRIB / "saved_models.py"), cwd=tmp_path)
    # What TensorFlow 1.15.5 prints.
    assert done.stdout.split("\n") == ["3 0.340341", "6 0.312831", "0.086347", ""]

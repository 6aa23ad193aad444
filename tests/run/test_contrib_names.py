"""Each name of tf.contrib is found, or raises with a way out."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import tensorflow as tf
from fork_server import ForkServer
from launching import IS_215, ON_NEWEST, PROGRAMS, launch_fork, output_of

import hookbridge as hb
from hookbridge.contrib import namespace, private_modules
from hookbridge.ground.compat import installed_tf_version
from hookbridge.old_programs.reading.names.import_statements import canonical
from hookbridge.tf1_names.contrib_names import AREAS, NAMES, Source, is_available
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import DATA, NEWEST, Target, table

CONTRIB = PROGRAMS / "contrib"


@ON_NEWEST
@pytest.mark.slow
def test_what_is_gone_raises_when_it_is_used(launcher: ForkServer) -> None:
    done = launch_fork(launcher, "gone.py", cwd=CONTRIB)
    converted, said = map(json.loads, done.stdout.splitlines())
    # A function that AutoGraph converts keeps its imports.
    assert converted == [[2.0, 2.0], "outer/layer", "flatten", None]
    assert said[:2] == ["placeholder", None]
    # If the program catches the ImportError of an import, that import fails.
    assert said[2] == "No module named 'tensorflow.contrib.image'"
    assert said[3] is False
    for text, name, line in zip(
        said[4:],
        ("gan.GANModel", "opt.AdamWOptimizer", "learn.DNNClassifier", "timeseries."),
        (49, 40, 51, 52),
        strict=True,
    ):
        assert text.startswith(f"tf.contrib.{name}"), text
        assert f"gone.py:{line}" in text
        assert "Instead: " in text
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("hookbridge.errors.GoneNameError: tf.contrib.gan.gan_train")
    assert "/hookbridge/" not in done.stderr


@pytest.mark.slow
def test_every_name_of_1_15_lives_or_is_told_to_be_gone(
    subtests: pytest.Subtests, launcher: ForkServer
) -> None:
    flags = () if IS_215 else ("--keras=2",)
    words = ("public_names.py", str(DATA / "public-1.15.json"))
    done = launch_fork(launcher, *flags, *words, cwd=CONTRIB)
    assert done.returncode == 0, done.stderr
    other, dead = map(json.loads, done.stdout.splitlines()[-2:])
    # Names of the newest TensorFlow may be other objects on an older one.
    assert not other or IS_215
    target = Target(".".join(map(str, installed_tf_version())))
    for kind, top in (("tf", "tf"), ("contrib", "tf.contrib")):
        with subtests.test(str(kind)):
            for module, names in table("public-1.15")[kind].items():
                for name in names:
                    full = ".".join(part for part in (top, module, name) if part)
                    found = resolve(full, target)
                    is_gone = found is not None and not found.replacement
                    # The list of living names of tf.contrib is that of the newest.
                    assert (full in dead) is is_gone or (IS_215 and is_gone), full
                    if full in dead and kind == "contrib" and found is not None:
                        assert "Instead: " + found.hint in dead[full], full


@ON_NEWEST
@pytest.mark.slow
def test_contrib_is_below_compat_v1_in_a_file_of_tensorflow_1(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """A rewritten file has TensorFlow's own modules: copies, and without `contrib`."""
    program = (
        "import tensorflow as tf\ntf.placeholder(tf.float32)\n"
        "import tensorflow.compat.v1 as tf1\nfrom tensorflow.compat import v1\n"
        "assert tf1.contrib.rnn is tf.contrib.rnn\n"
        "assert v1 is tf1 is tf.compat.v1 and tf1.keras is tf.compat.v1.keras\n"
        "assert not hasattr(tf1, 'contrib') and hasattr(tf, 'contrib')\n"
        "assert 'contrib' in vars(tf)\n"
    )
    output_of(launcher, tmp_path, program)


def test_a_source_of_the_table_is_read_as_it_is_written() -> None:
    listed = [source for sources in AREAS.values() for source in sources]
    for source in (*listed, *NAMES.values()):
        assert Source.parse(source.dotted) == source
    assert all(source.file.is_file() for source in listed if source.root == "ours")
    with pytest.raises(ValueError, match="unknown source"):
        Source.parse("numpy.array")


def test_what_a_program_sets_in_a_private_module_tensorflow_uses() -> None:
    name = "tensorflow.python.training.device_setter"
    view, real = private_modules.find(name), importlib.import_module(name)
    own = real._RoundRobinStrategy
    with mock.patch.object(view, "_RoundRobinStrategy", "outer"):
        with mock.patch.object(view, "_RoundRobinStrategy", "inner"):
            assert real._RoundRobinStrategy == "inner"
        assert real._RoundRobinStrategy == "outer"
        with mock.patch.object(view, "Session", "no name of this module"):
            assert not hasattr(real, "Session")
        assert view.Session is tf.compat.v1.Session
    assert real._RoundRobinStrategy is own


def test_a_private_module_that_estimator_needs_is_there() -> None:
    found = private_modules.find("tensorflow.python.distribute.estimator_training")
    assert callable(found.train_and_evaluate)
    assert private_modules.find("tensorflow.python.util.nest").is_sequence([1])
    variables = private_modules.find("tensorflow.python.ops.variables")
    assert variables.VariableV1 is tf.compat.v1.Variable
    exports = private_modules.find("tensorflow.python.util.tf_export")
    assert callable(exports.estimator_export("estimator.Mine"))


def test_a_program_that_asks_for_a_name_gets_the_answer_of_1_15() -> None:
    for area in table("public-1.15")["contrib"]:
        module: Any = namespace.root()
        for part in filter(None, area.split(".")):
            assert hasattr(module, part), area
            module = getattr(module, part)
        assert not hasattr(module, "no_such_name"), area
        assert getattr(module, "NoSuchName", None) is None, area
    for name in ("estimator.read_eval_metrics", "lite", "layers.array_ops"):
        owner, _, last = f"tf.contrib.{name}".rpartition(".")
        owner = owner.removeprefix("tf.contrib").lstrip(".")
        module = getattr(namespace.root(), owner) if owner else namespace.root()
        with pytest.raises(AttributeError, match="Instead: "):
            getattr(module, last)


def test_every_name_that_does_not_come_back_has_a_way_out() -> None:
    earlier = dict.fromkeys(table("names")["earlier modules of contrib"], ("",))
    modules = table("public-1.15")
    for area, names in (
        *modules["contrib"].items(),
        *modules["imports of contrib"].items(),
        *earlier.items(),
    ):
        for name in ("", *names):
            dotted = ".".join(filter(None, ("tf.contrib", area, name)))
            outcome = resolve(dotted, Target(NEWEST))
            if outcome is not None and outcome.code == "GONE":
                assert "no current name is known" not in outcome.hint, dotted


def test_names_that_a_way_out_gives_are_there() -> None:
    target = Target(NEWEST)
    for old, way_out in table("names")["hints"].items():
        for name in re.findall(r"`((?:tf|hb)\.[\w.]+)`", way_out):
            if old.startswith("tf.contrib"):
                whole = name.replace("hb.", "hookbridge.", 1)
                outcome = resolve(whole, target)
                assert outcome is None or outcome.replacement, (old, name)


def test_what_files_of_contrib_had_is_found_in_the_files_of_tf_slim() -> None:
    parts_of_utils = ("collect_named_outputs", "get_variable_collections")
    files: dict[str, tuple[str, str | tuple[str, ...]]] = {
        "layers.python.layers.rev_block_lib": ("layers.rev_block_lib", "_rev_layer"),
        "layers.python.layers.utils": ("layers.utils", parts_of_utils),
        "layers.python.ops.sparse_ops": ("layers.sparse_ops", "dense_to_sparse_t"),
        "losses.python.losses.loss_ops": ("losses.loss_ops", "_safe_mean"),
        "slim.python.slim.data.parallel_reader": ("data.parallel_reader", "get_data"),
        "slim.python.slim.learning": ("learning", "_wait_for_step"),
    }
    for file, (place, names) in files.items():
        module = importlib.import_module(f"tf_slim.{place}")
        value: Any = namespace.root()
        for part in file.split("."):
            value = getattr(value, part)
        for name in [each for each in vars(module) if each.startswith(names)]:
            found = resolve(f"tf.contrib.{file}.{name}", Target("2.21"))
            there = f"{module.__name__}.{name}"
            assert found is not None and found.replacement == there
            assert resolve(there, Target("2.21")) is None
            assert getattr(value, name) is vars(module)[name]


def test_names_of_contrib_that_no_area_of_today_has() -> None:
    contrib = namespace.root()
    hooks = [tf.compat.v1.train.StopAtStepHook(1)]
    assert contrib.learn.monitors.replace_monitors_with_hooks(hooks, None) == hooks

    marked = contrib.framework.deprecated("2018-09-15", "Use another.")(lambda: 3)
    assert marked() == 3

    with tf.Graph().as_default() as graph:
        tf.compat.v1.get_variable("w", [3], use_resource=False)
        found = contrib.tfprof.model_analyzer.print_model_analysis(graph)
    assert found.total_parameters == 3


def test_names_whose_only_place_is_a_private_module_are_living() -> None:
    """`doctor` knows them, too: they are in the list of living names."""
    contrib = namespace.root()
    assert contrib.hooks.ProfilerHook is tf.compat.v1.train.ProfilerHook
    assert contrib.eager.num_gpus() == len(tf.config.list_logical_devices("GPU"))
    modes = contrib.eager.SYNC, contrib.eager.ASYNC
    assert modes == (0, 1)
    policies = [
        getattr(contrib.eager, f"DEVICE_PLACEMENT_{kind}")
        for kind in ("EXPLICIT", "WARN", "SILENT")
    ]
    assert len(set(policies)) == 3
    with contrib.eager.execution_mode(contrib.eager.SYNC):
        contrib.eager.async_wait()
    server = contrib.distribute.run_standard_tensorflow_server
    assert server.__module__.startswith("tensorflow.python.distribute")
    for name in ("hooks.ProfilerHook", "eager.num_gpus", "eager.ASYNC"):
        assert is_available(f"tf.contrib.{name}"), name


def test_names_that_only_files_had_are_told_from_those_that_are_gone() -> None:
    learn = "tf.contrib.learn.python.learn"
    for name, is_there in {
        f"{learn}.monitored_session.Scaffold": True,
        f"{learn}.monitored_session.Other": False,
        f"{learn}.datasets.mnist.read_data_sets": True,
        f"{learn}.datasets.base.load_iris": False,
        "tf.contrib.learn.datasets.base.Dataset": True,
        "tf.contrib.learn.datasets.base.load_iris": False,
        "tf.contrib.framework.python.ops.audio_ops.mfcc": True,
    }.items():
        assert is_available(name) is is_there, name


# A file of tf.contrib, and names of it that only a private module of TensorFlow has.
HANDED_ON = {
    "all_reduce.python.all_reduce": ("build_ring_all_reduce", "_padded_split"),
    "distributions.python.ops.distribution_util": ("gen_new_seed", "AppendDocstring"),
    "estimator.python.estimator.early_stopping": ("_summaries", "read_eval_metrics"),
    "factorization.python.ops.clustering_ops": ("KMeans", "nearest_neighbors"),
    "framework.python.ops.audio_ops": ("AudioSpectrogram",),
    "framework.python.framework.graph_util": ("_node_name",),
    "quantization.python.array_ops": ("Bitcast", "broadcast_args"),
    "quantization.python.math_ops": ("Abs", "add_n"),
    "quantization.python.nn_ops": ("AvgPool", "bias_add_grad"),
    "tpu.python.ops.tpu_ops": ("AllToAll",),
    "tpu.python.tpu._tpu_estimator_embedding": ("EmbeddingConfigSpec",),
    "tpu.python.tpu.bfloat16": ("_get_custom_getter",),
    "tpu.python.tpu.datasets": ("StreamingFilesDataset",),
    "tpu.python.tpu.device_assignment": ("SINGLE_CORE_ASSIGNMENT",),
    "tpu.python.tpu.error_handling": ("ErrorRendezvous",),
    "tpu.python.tpu.feature_column": ("embedding_column",),
    "tpu.python.tpu.functional": ("TPUPartitionedCall",),
    "tpu.python.tpu.tensor_tracer": ("TensorTracer",),
    "tpu.python.tpu.topology": ("_tpu_device_name",),
    "tpu.python.tpu.tpu": ("rewrite_for_inference",),
    "tpu.python.tpu.tpu_config": ("_get_tpu_job_name_from_tf_config",),
    "tpu.python.tpu.tpu_context": ("_get_tpu_context", "TPUContext"),
    "tpu.python.tpu.tpu_estimator": ("_export_output_to_tensors", "_TPU_ESTIMATOR"),
    "tpu.python.tpu.tpu_feed": ("_PartitionedInfeedQueue",),
    "tpu.python.tpu.tpu_function": ("get_tpu_context", "TpuContext"),
    "tpu.python.tpu.tpu_sharding": ("ShardingPolicy",),
    "tpu.python.tpu.tpu_system_metadata": ("master_job",),
    "tpu.python.tpu.util": ("parse_iterations_per_loop",),
    "training.python.training.bucket_ops": ("_validate_keep_input",),
    "training.python.training.sequence_queueing_state_saver": ("_restore_sparse",),
}


@pytest.mark.both_tensorflows
def test_what_files_of_contrib_handed_on_is_found_in_private_modules() -> None:
    rows = table("names")["files of contrib in private modules"]
    tested = {(file.partition(".")[0], file.rpartition(".")[2]) for file in HANDED_ON}
    assert tested == {tuple(file.split(".")) for file in rows}
    for file, names in HANDED_ON.items():
        area, last = file.partition(".")[0], file.rpartition(".")[2]
        module = namespace.resolve_source(Source.parse(rows[f"{area}.{last}"]))
        value: Any = namespace.root()
        for part in file.split("."):
            value = getattr(value, part)
        for name in names:
            whole = canonical(f"tensorflow.contrib.{file}.{name}")
            outcome = resolve(whole, Target(NEWEST))
            assert outcome is not None and outcome.replacement, whole
            assert getattr(value, name) is getattr(module, name)
        gone = resolve(f"tf.contrib.{file}.no_such_name", Target(NEWEST))
        assert gone is not None and gone.is_removed


def test_private_names_of_contrib_with_the_same_object_today() -> None:
    """Programs of 1.15 take them from any file of their area."""
    contrib = namespace.root()
    identity = contrib.distributions.bijectors.Identity()
    assert identity.forward(3.0) == 3.0
    assert contrib.distributions.python.ops.bijectors.identity.Identity is type(
        identity
    )
    with pytest.raises(hb.errors.GoneNameError, match="TensorFlow Probability"):
        contrib.distributions.bijectors.Affine()
    for file in ("decoder", "helper", "basic_decoder"):
        turned = getattr(contrib.seq2seq.python.ops, file)._transpose_batch_time
        assert turned(tf.zeros([2, 3, 4])).shape == [3, 2, 4]
    assert contrib.distribute.python.mirrored_strategy.all_local_devices()
    assert contrib.summary.summary.scalar is contrib.summary.scalar


def test_a_rewritten_program_can_read_a_module_that_is_gone() -> None:
    """Its other parts run, as under `hookbridge run`."""
    editor = hb.contrib.removed.graph_editor
    with pytest.raises(hb.errors.GoneNameError, match=r"graph_editor\.sgv"):
        editor.sgv(1)
    assert not hasattr(editor, "no_such_name")
    assert not hasattr(hb.contrib, "graph_editor")  # as a program asks under `run`
    removed = hb.contrib.removed
    with pytest.raises(AttributeError, match="the package TensorFlow GAN"):
        removed.gan.GANModel  # noqa: B018
    with pytest.raises(hb.errors.GoneNameError, match=r"ffmpeg\.python\.ops\.decode"):
        removed.ffmpeg.python.ops.decode()

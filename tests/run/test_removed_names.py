"""Names of TensorFlow 1 outside of its public ones: imports go on, uses raise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import output_of

from hookbridge.old_programs.reading.names.import_statements import canonical
from hookbridge.old_programs.scanning import diagnosis
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target, table

# What a program imports -> the name that an error and `doctor` have for it.
GONE = {
    "from tensorflow.tools.graph_transforms import TransformGraph": (
        "tf.tools.graph_transforms.TransformGraph"
    ),
    "import tensorflow.core.kernels.boosted_trees.boosted_trees_pb2 as trees": (
        "tensorflow.core.kernels.boosted_trees.boosted_trees_pb2"
    ),
    "from tensorflow.examples.tutorials.mnist import input_data, mnist": (
        "tf.examples.tutorials.mnist.mnist"
    ),
    "import tensorflow.examples.tutorials.mnist.fully_connected_feed as feed": (
        "tf.examples.tutorials.mnist.fully_connected_feed"
    ),
    "from tensorflow.contrib.rnn.python.ops.core_rnn_cell import _private": (
        "tf.contrib.rnn.python.ops.core_rnn_cell._private"
    ),
    "from tensorflow.contrib.layers.python.layers.utils import no_such": (
        "tf.contrib.layers.python.layers.utils.no_such"
    ),
    "from tensorflow.contrib.quantize.python.quantize import gone_function": (
        "tf.contrib.quantize.python.quantize.gone_function"
    ),
}
USED = """\
import json
import tensorflow as tf

said = []
for name in {names}:
    try:
        globals()[name]([tf.ones([1, 2])], 3, True)
    except NotImplementedError as e:
        said.append(str(e))
print(json.dumps(said))
"""


def test_what_is_gone_is_imported_and_raises_when_it_is_used(
    tmp_path: Path, launcher: ForkServer
) -> None:
    bound = [line.split()[-1] for line in GONE]
    lines = [*GONE, USED.format(names=bound), *bound, "tf.Session"]
    output = output_of(launcher, tmp_path, "\n".join(lines) + "\n")
    said = json.loads(output.splitlines()[-1])
    assert len(said) == len(GONE)
    for name, text in zip(GONE.values(), said, strict=True):
        assert name.rpartition(".")[2] in text and "Instead: " in text
    found = diagnosis.diagnose([tmp_path / "old.py"], NEWEST).report.findings
    assert {one.name for one in found if one.person} == {*GONE.values()}


def test_what_is_gone_and_not_used_needs_no_person(
    tmp_path: Path, launcher: ForkServer
) -> None:
    program = "\n".join([*GONE, "import tensorflow as tf", "tf.Session()"])
    output_of(launcher, tmp_path, program)
    assert diagnosis.diagnose([tmp_path / "old.py"], NEWEST).left == 0


def test_modules_that_the_newest_tensorflow_has_are_not_gone() -> None:
    target = Target(NEWEST)
    for name in table("names")["removed modules"]:
        found = resolve(name, target)
        assert found is not None and found.code == "GONE" and found.hint, name
    for name in (
        "tensorflow.tools.docs.doc_controls",
        "tensorflow.lite.python.lite.TFLiteConverter",
        "tensorflow.core.framework.graph_pb2.GraphDef",
        "tensorflow.core.protobuf.config_pb2",
    ):
        assert resolve(canonical(name), target) is None, name


@pytest.mark.parametrize("name", ["__name__", "__file__", "__doc__"])
def test_each_module_has_the_attributes_of_modules(name: str) -> None:
    found = resolve(f"tf.contrib.crf.{name}", Target(NEWEST))
    assert found is not None and found.replacement == f"hookbridge.contrib.crf.{name}"

"""A second rewrite changes nothing, whatever stands together in a file.

The examples are the same each time. With HOOKBRIDGE_EXAMPLES=2000 each test takes as
many others by chance.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from migrate_command import in_place
from program_table import PROGRAMS_DIR, SMALL_DIR
from source_trees import is_python
from test_rewrites import HEADER, cases

from hookbridge import old_programs as migrate

ONE_TENSORFLOW = True
TEXTS = sorted({case.before.removeprefix(HEADER) for case in cases()})
CHANCE = int(os.environ.get("HOOKBRIDGE_EXAMPLES", "0"))
FAST = settings(
    deadline=None,
    derandomize=not CHANCE,
    database=None,
    phases=[Phase.generate],  # a failing file is short enough
    suppress_health_check=[HealthCheck.too_slow],  # the machine may be busy
)
IMPORTS = [
    HEADER,
    "import tensorflow\n",
    "import tensorflow.compat.v1 as tf\n",
    "from tensorflow import keras, estimator\nimport tensorflow as tf\n",
    "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n"
    "    import tensorflow as tf\n",
    "import tensorflow as tf\nimport tensorflow.contrib.slim as slim\n",
    "import tensorflow as tf  # kept\nimport hookbridge as hb\n",
    '"""Text."""\nfrom __future__ import print_function\nimport tensorflow as tf\n',
]
FRAMES = [
    "{}",
    "def main(_):\n    pass\n\n{}\nif __name__ == '__main__':\n    main(0)\n",
    "{}\ntf.app.run()\n",
]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A file of imports and the texts of some cases."""
    texts = draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4))
    body = "\n".join(draw(st.permutations([draw(st.sampled_from(IMPORTS)), *texts])))
    lines = body.split("\n")
    # Imports of `__future__` come first, as Python asks.
    late = [line for line in lines if line.startswith("from __future__")]
    body = "\n".join([*late, *(line for line in lines if line not in late)])
    return draw(st.sampled_from(FRAMES)).format(body.replace("{", "").replace("}", ""))


@settings(FAST, max_examples=CHANCE or 80)
@given(programs().filter(is_python))
def test_a_second_rewrite_changes_nothing(text: str) -> None:
    first = migrate.rewrite(text)
    ast.parse(first.source)
    second = migrate.rewrite(first.source)
    assert second.source == first.source
    assert second.todos == first.todos
    assert not second.edits


@settings(FAST, max_examples=CHANCE or 25)
@given(data=st.data())
def test_a_second_rewrite_of_several_files_changes_nothing(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    text = programs().filter(is_python)
    (folder / "main.py").write_text("from a import *\nimport b\n" + data.draw(text))
    (folder / "a.py").write_text(data.draw(text))
    (folder / "b.py").write_text("from a import tf\n" + data.draw(text))
    is_changed_once(folder)


TF = "import tensorflow as tf\n"
V1 = "import tensorflow.compat.v1 as tf\n"


@pytest.mark.parametrize(
    ("main", "other"),
    [
        # The comment names what `estimator` is after the rewrite of the other file.
        (
            f"{V1}from other import *\nestimator.train()\n",
            f"{TF}from tensorflow import estimator\ntf.placeholder(tf.int32)\n",
        ),
        # The rewrite removes each `tf.compat.v1` from the other file.
        (
            f"import other\n{TF}data.make_one_shot_iterator()\n",
            f"{TF}tf.compat.v1.estimator.DNNClassifier(4)\ntf.contrib.slim.conv2d\n",
        ),
    ],
    ids=["comment", "evidence"],
)
def test_what_the_first_rewrite_changes_decides_nothing(
    main: str, other: str, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text(main)
    (tmp_path / "other.py").write_text(other)
    assert is_changed_once(tmp_path)


def is_changed_once(folder: Path) -> bool:
    """Rewrites a folder twice; whether the first time has changed anything."""
    is_changed = any(done.result.changed for done in in_place(folder))
    before = {path: path.read_text() for path in folder.iterdir()}
    assert not any(done.result.changed for done in in_place(folder))
    assert {path: path.read_text() for path in folder.iterdir()} == before
    return is_changed


def test_a_second_rewrite_of_a_program_changes_nothing(
    subtests: pytest.Subtests,
) -> None:
    for path in (*SMALL_DIR.glob("*.py"), *PROGRAMS_DIR.rglob("*.py")):
        with subtests.test(str(path)):
            first = migrate.rewrite(path.read_text("utf-8"))
            second = migrate.rewrite(first.source)
            assert second.source == first.source and not second.edits, path

"""A rewrite loses nothing: no comment, no import that works, no other line.

The examples are the same each time. With HOOKBRIDGE_EXAMPLES=100000 each test takes as
many others by chance, for an hour or so.
"""

from __future__ import annotations

import ast
import functools
import os
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lost_parts import bound_in, imported, lost_comments, working
from source_trees import is_python

from hookbridge import old_programs as migrate

ONE_TENSORFLOW = True
CHANCE = int(os.environ.get("HOOKBRIDGE_EXAMPLES", "0"))
NAMES = {
    "tensorflow": ["constant", "estimator", "app", "losses", "layers", "no_such"],
    "tensorflow.contrib": ["layers", "rnn", "slim", "image", "ffmpeg", "framework"],
    "tensorflow.contrib.image": ["rotate", "translate"],
    "tensorflow.python.ops": ["array_ops", "control_flow_grad", "check_ops"],
    "tensorflow.python.framework": ["ops", "tensor_conversion_registry"],
    "tensorflow.python.training": ["training_util", "basic_session_run_hooks"],
    "tensorflow.python.estimator.model_fn": ["ModeKeys", "EstimatorSpec"],
    "tensorflow.python.distribute": ["all_reduce", "values"],
    "numpy": ["product", "zeros", "float"],
    "collections": ["OrderedDict", "Mapping"],
    "time": ["clock", "sleep"],
}
MARKS = ["# noqa", "# type: ignore", "# pylint: disable=unused-import", "# noqa: F401"]
# Lines that no rule changes.
OTHERS = [
    "x = 1   # trailing  \n",
    "\n",
    "def f( a ):\n\treturn  a\n",
    'text = """\n# no comment\n\n"""  # a comment\n',
    "y = [1,\n    # two\n   2]\n",
    "# pylint: disable=unused-import\n",
    "# pylint: enable=unused-import\n",
    "\x0c\n",
    "if x: pass; y = 2  # both\n",
]
# Statements that rules change, with comments between what they change.
CHANGED = [
    "z = (tf.contrib.data\n     # lines\n     .TextLineDataset(x))\n",
    "z = (tf.contrib  # the\n     .layers  # layer\n     .conv2d(x))\n",
    "z = d.map(x,  # what\n          output_buffer_size=8)  # eight\n",
    "z = d.map(x,\n    output_buffer_size=8,  # eight\n    num_threads=4)\n",
    "z = d.map(x, num_threads=4, # own\n # line\n    output_buffer_size=(8  # in\n))",
    "z = tf.placeholder(tf.float32)  # a feed\n",
    "z = tf.get_variable('z', [x / 2,  # half\n   3])\n",
    "from numpy import *  # noqa\nz = product(x)\n",
    "import tensorflow.contrib.slim as sl, os.path as p  # two\nz = sl.conv2d\n",
    "import tensorflow.contrib.ffmpeg  # side effects\n",
    "z = tf.estimator.Estimator(  # made\n    f)\n",
]
FRAMES = ["", "def g{}():\n", "if x:\n", "try:\n", "class C{}:\n"]


@st.composite
def import_of(draw: st.DrawFn, number: int) -> tuple[str, list[str]]:
    """An import with comments, and the names that it binds."""
    module = draw(st.sampled_from(sorted(NAMES)))
    names = draw(
        st.lists(st.sampled_from(NAMES[module]), min_size=1, max_size=4, unique=True)
    )
    comments = iter(f"# comment {number} {place}" for place in range(99))

    def comment() -> str:
        kind = draw(st.integers(0, 5))
        if kind == 5:
            return "  " + draw(st.sampled_from(MARKS))
        return f"  {next(comments)}" if kind < 2 else ""

    bound = [f"{n}_{number}" if draw(st.booleans()) else n for n in names]
    items = [n if n == b else f"{n} as {b}" for n, b in zip(names, bound, strict=True)]
    layout = draw(st.sampled_from(["plain", "one", "many", "ragged", "backslash"]))
    start = f"from {module} import "
    if layout == "plain":
        return f"{start}{', '.join(items)}{comment()}\n", bound
    if layout == "one":
        return f"{start}({', '.join(items)}){comment()}\n", bound
    if layout == "backslash":
        lines = ", \\\n    ".join(items)
        return f"{start}{lines}{comment()}\n", bound
    text = f"{start}({comment()}\n" if layout == "many" else f"{start}("
    for place, item in enumerate(items):
        above = f"    # above {number} {place}\n" if draw(st.booleans()) else ""
        is_last = place == len(items) - 1
        comma = "" if is_last and draw(st.booleans()) else ","
        end = f"{comment()}\n" if layout == "many" or draw(st.booleans()) else " "
        starts_line = text.endswith("\n")
        text += f"{above if starts_line else ''}    {item}{comma}{end}"
    return f"{text}){comment()}\n", bound


@st.composite
def files(draw: st.DrawFn) -> str:
    """A file of imports, of uses of some of the names, and of other lines."""
    parts, used = ["import tensorflow as tf\n"], []
    for number in range(draw(st.integers(1, 4))):
        text, bound = draw(import_of(number))
        used += [name for name in bound if draw(st.booleans())]
        frame = draw(st.sampled_from(FRAMES)).format(number)
        if frame:
            lines = text.splitlines(keepends=True)
            text = frame + "".join(f"    {line}" for line in lines)
        if frame == "try:\n":
            text += "except ImportError:\n    x = 0\n"
        parts.append(text)
    parts += draw(st.lists(st.sampled_from([*OTHERS, *CHANGED]), max_size=4))
    text = "".join([parts[0], *draw(st.permutations(parts[1:]))])
    for name in used:
        text += f"print({name}{draw(st.sampled_from(['', '.conv2d(x)']))})\n"
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))
    return text.rstrip() if draw(st.booleans()) else text


@functools.cache
def working_names() -> frozenset[tuple[str, str]]:
    """The names of NAMES that Python can import from their modules."""
    return frozenset(
        working((module, name) for module, names in NAMES.items() for name in names)
    )


def is_in_order(lines: Iterable[str], text: str) -> bool:
    """Whether a text has all of some lines, to the byte, in their order."""
    there = iter(text.splitlines(keepends=True))
    return all(line in there for line in lines)


@settings(
    deadline=None,
    derandomize=not CHANCE,
    database=None,
    max_examples=CHANCE or 60,
    phases=[Phase.generate] if not CHANCE else list(Phase),
    suppress_health_check=list(HealthCheck),
)
@given(files().filter(is_python))
def test_a_rewrite_loses_nothing(before: str) -> None:
    done = migrate.rewrite(before)
    after = done.source
    ast.parse(after)
    assert not lost_comments(before, after)
    here = bound_in(after)
    works = Counter(b for m, n, b in imported(before) if (m, n) in working_names())
    assert not works - here
    same = [line for text in OTHERS for line in text.splitlines(keepends=True)]
    ends = before.splitlines(keepends=True)
    kept = [line for line in ends if line.replace("\r\n", "\n") in same]
    assert is_in_order(kept, after)
    assert before.endswith("\n") == after.endswith("\n")
    again = migrate.rewrite(after)
    assert again.source == after and not again.edits


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_end_of_the_last_line_stays(end: str) -> None:
    for text in (
        "import tensorflow as tf\nx = tf.placeholder(tf.float32)",
        "import tensorflow as tf; tf.app.run()",
        "from tensorflow import app, constant",
        "import tensorflow.contrib.slim, os",
        "import tensorflow as tf\nfrom tensorflow.contrib import image",
    ):
        assert migrate.rewrite(text + end).source.endswith("\n") == bool(end), text

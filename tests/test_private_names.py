"""Canaries: every private TensorFlow or Keras name that we use is where we say.

After an upgrade, a failure here names what moved. Users get no promise from this.
"""

from __future__ import annotations

import ast
import re

import pytest
from source_trees import Nodes, nodes_of, sources

from hookbridge.ground import compat
from hookbridge.tf1_names import contrib_names

PRIVATE_PACKAGE = re.compile(r"^(tensorflow\.python|keras\.src|tf_keras\.src)\b")

# Files in which strings may be private names -> why.
NAMED_NOT_USED = {
    "hookbridge/estimator/places.py": "modules that come back in their old place",
    "hookbridge/estimator/stand_ins.py": (
        "modules that tensorflow-estimator imports and that are replaced for it"
    ),
    "hookbridge/ground/processes/exit_codes.py": "a module of error classes, as text",
    "hookbridge/tf1_names/private_names.py": "what programs may use",
    "hookbridge/tf1_names/resolution.py": "what programs may use",
    "hookbridge/old_programs/reading/one_file/evidence.py": "what programs may use",
    "hookbridge/old_programs/reading/names/starred.py": "what programs may use",
    "hookbridge/contrib/private_modules.py": "what programs that are run may import",
}


def needed_here(row: compat.PrivateName) -> bool:
    # Collecting tests must not import TensorFlow.
    version = compat.installed_tf_version()
    return row.min_tf <= version and (row.max_tf is None or version <= row.max_tf)


@pytest.mark.parametrize(
    "key", [key for key, row in compat.PRIVATE.items() if needed_here(row)]
)
def test_private_name_is_where_the_table_says(key: str) -> None:
    assert compat.private(key) is not None


def test_every_private_name_says_why() -> None:
    assert all(len(row.why) > 10 for row in compat.PRIVATE.values())


def test_moved_name_says_what_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    row = compat.PrivateName("tensorflow.python.nowhere:thing", "test this message")
    monkeypatch.setitem(compat.PRIVATE, "test_only", row)
    with pytest.raises(
        compat.PrivateNameMovedError,
        match=r"needs `tensorflow.python.nowhere:thing` \(test this message\)",
    ):
        compat.private("test_only")


def private_uses(nodes: Nodes, *, strings_are_names: bool = False) -> list[str]:
    """Private modules that a file imports, names in a string or reaches by dots.

    With `strings_are_names` a string does not count as a use.
    """
    found = []
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [] if strings_are_names else [node.value]
        elif isinstance(node, ast.Attribute):
            names = [re.sub(r"^tf\.", "tensorflow.", ast.unparse(node))]
        found += [
            f"{getattr(node, 'lineno', 0)}: {name.splitlines()[0]}"
            for name in names
            if PRIVATE_PACKAGE.match(name)
        ]
    return found


@pytest.mark.one_tensorflow
def test_only_compat_uses_private_packages() -> None:
    found = {
        file: uses
        for file, nodes in sources().items()
        if not file.startswith("hookbridge/ground/compat/")
        and (uses := private_uses(nodes, strings_are_names=file in NAMED_NOT_USED))
    }
    assert found == {}
    # Each exception is still needed.
    assert all(private_uses(sources()[file]) for file in NAMED_NOT_USED)


@pytest.mark.parametrize(
    "line",
    [
        "from tensorflow.python.eager import context",
        "import keras.src.backend",
        "importlib.import_module('tf_keras.src.utils')",
        "tf.python.eager.context.eager_mode()",
    ],
)
def test_the_search_finds_what_it_looks_for(line: str) -> None:
    assert private_uses(nodes_of(line))


@pytest.mark.one_tensorflow
def test_no_row_is_unused() -> None:
    strings = {
        node.value
        for file, nodes in sources().items()
        for node in nodes
        if isinstance(node, ast.Constant)
        if not file.startswith("hookbridge/ground/compat/")
    }
    of_contrib = [*contrib_names.NAMES.values(), *sum(contrib_names.AREAS.values(), ())]
    of_contrib += contrib_names.FILES_IN_PRIVATE_MODULES.values()
    strings |= {source.name.partition(".")[0] for source in of_contrib}
    assert set(compat.PRIVATE) <= strings

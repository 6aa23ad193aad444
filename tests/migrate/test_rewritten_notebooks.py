"""The code of a notebook is rewritten as one program; the rest of it stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from migrate_command import in_place

from hookbridge import old_programs as migrate
from hookbridge.old_programs.reading.modules import Unread
from hookbridge.old_programs.rewriting import files
from hookbridge.old_programs.scanning import doctor

ONE_TENSORFLOW = True
IMPORTS = "%matplotlib inline\nimport tensorflow as tf\n!pip install tf_slim"
USE = "config = tf.estimator.RunConfig()"


def cell(source: Any, kind: str = "code") -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": ["é\n", "1"]}]
    if isinstance(source, str):
        source = source.splitlines(keepends=True)
    found = {"cell_type": kind, "metadata": {"tags": ["x"]}, "source": source}
    return {**found, "execution_count": 3, "outputs": outputs}


def notebook(path: Path, *cells: dict[str, Any], indent: Any = 1) -> Path:
    document = {"cells": cells, "metadata": {"name": "x"}, "nbformat": 4}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    path.write_text(f"{text}\n", "utf-8")
    return path


def sources(path: Path) -> list[str]:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(one["source"]) for one in cells]


def test_names_are_known_across_cells_and_the_rest_stays(tmp_path: Path) -> None:
    bash, broken = "%%bash\necho tf.estimator", "tf.estimator.RunConfig( ="
    magic = "if True:\n    %time train()\n    x = tf.estimator.RunConfig()\n"
    path = notebook(
        tmp_path / "a.ipynb",
        *(cell("# Title", "markdown"), cell(IMPORTS), cell(bash), cell(USE)),
        *(cell(broken), cell(""), cell(magic)),
    )
    before = json.loads(path.read_text("utf-8"))
    in_place(path)
    new = [
        *("# Title", IMPORTS.replace("as tf", "as tf\nimport hookbridge as hb"), bash),
        *(USE.replace("tf.", "hb."), broken, "", magic.replace("tf.", "hb.")),
    ]
    assert sources(path) == new
    after = json.loads(path.read_text("utf-8"))
    for one in (*before["cells"], *after["cells"]):
        one.pop("source")
    assert after == before
    assert not in_place(path)[0].result.changed
    assert [p.name for p in tmp_path.iterdir()] == ["a.ipynb"]


@pytest.mark.parametrize("indent", [" ", "  ", "\t", None])
def test_other_lines_of_the_file_stay_as_they_are(
    tmp_path: Path, indent: str | None
) -> None:
    one_text = {**cell(""), "source": USE}
    path = notebook(tmp_path / "a.ipynb", cell(IMPORTS), one_text, indent=indent)
    before = path.read_text("utf-8")
    (done,) = in_place(path)
    assert done.result.diff("a.ipynb") == (
        "--- a/a.ipynb\n+++ b/a.ipynb\n@@ -1,6 +1,7 @@\n # cell 1\n"
        " %matplotlib inline\n import tensorflow as tf\n+import hookbridge as hb\n"
        " !pip install tf_slim\n # cell 2\n"
        "-config = tf.estimator.RunConfig()\n+config = hb.estimator.RunConfig()\n"
    )
    assert done.module.notebook is not None
    assert done.module.notebook.with_code(done.result.before) == before
    with pytest.raises(ValueError, match="cannot be distinguished"):
        done.module.notebook.with_code("# cell 1\nx = 1\n")
    added = json.dumps("import hookbridge as hb\n")
    lines = path.read_text("utf-8").replace("hb.estimator", "tf.estimator")
    between = ", " if indent is None else ",\n" + 4 * indent
    assert lines.replace(f"{added}{between}", "") == before


@pytest.mark.parametrize(
    "code",
    [
        *("x = 1", "%%time\nimport tensorflow as tf\ntf.estimator.RunConfig()"),
        "# cell 7\nimport tensorflow as tf\nx = tf.estimator.RunConfig()",
        "import tensorflow as tf\r\nx = tf.estimator.RunConfig()",
        "import __hookbridge_cell_1__",
    ],
)
def test_what_is_left_alone(tmp_path: Path, code: str) -> None:
    path = notebook(tmp_path / "a.ipynb", cell(code))
    before = path.read_bytes()
    (done,) = files.rewrite_files([path])
    assert isinstance(done, files.FileRewrite) and not done.result.changed
    list(files.write_all([done]))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b'{"cells": {}}', b'{"worksheets": []}', b"\xff\xfe{}"),
        b'{"cells": [{"cell_type": "code", "source": 3}]}',
        b"[" * 200_000,
    ],
)
def test_bad_notebooks_are_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    good = notebook(tmp_path / "b.ipynb", cell(IMPORTS), cell(USE))
    bad, done = files.rewrite_files([tmp_path])
    assert isinstance(bad, Unread) and bad.reason
    assert isinstance(done, files.FileRewrite) and done.path == good
    assert path.read_bytes() == content


def test_a_notebook_without_cells_of_code_has_nothing_to_do(tmp_path: Path) -> None:
    empty = notebook(tmp_path / "a.ipynb")
    text = notebook(tmp_path / "b.ipynb", cell("# tf.placeholder", "markdown"))
    for path in (empty, text):
        assert not in_place(path)[0].result.changed
        assert not migrate.scan([path]).findings
        assert not doctor.diagnose([path], "2.21").found

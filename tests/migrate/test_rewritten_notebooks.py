"""The code of a notebook is rewritten as one program; the rest of it stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from migrate_command import command, in_place

from hookbridge import old_programs as migrate
from hookbridge.cli import main
from hookbridge.old_programs.reading.one_file.modules import Unread
from hookbridge.old_programs.rewriting import file_rewrites
from hookbridge.old_programs.scanning import diagnosis

ONE_TENSORFLOW = True
IMPORTS = "%matplotlib inline\nimport tensorflow as tf\n!pip install tf_slim"
USE = "config = tf.estimator.RunConfig()"
NEW = USE.replace("tf.", "hb.")
NEW_IMPORTS = IMPORTS.replace("as tf", "as tf\nimport hookbridge as hb")


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
    bash, timed = "%%bash\necho tf.estimator", f"%%time\nnames = !ls\n{USE}"
    magic = "if True:\n    %time train()\n    x = tf.estimator.RunConfig()\n"
    path = notebook(
        tmp_path / "a.ipynb",
        *(cell("# Title", "markdown"), cell(IMPORTS), cell(bash), cell(USE)),
        *(cell(timed), cell(""), cell(magic)),
    )
    before = json.loads(path.read_text("utf-8"))
    in_place(path)
    new = [
        *("# Title", NEW_IMPORTS, bash),
        *(NEW, timed.replace("tf.", "hb."), "", magic.replace("tf.", "hb.")),
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
    assert done.module.notebook.with_code(done.module.text) == before
    with pytest.raises(ValueError, match="cannot be distinguished"):
        done.module.notebook.with_code("__hookbridge_cell_1__\nx = 1\n")
    added = json.dumps("import hookbridge as hb\n")
    lines = path.read_text("utf-8").replace("hb.estimator", "tf.estimator")
    between = ", " if indent is None else ",\n" + 4 * indent
    assert lines.replace(f"{added}{between}", "") == before


@pytest.mark.parametrize(
    ("code", "new"),
    [
        ("x = 1", "x = 1"),
        ("%%writefile a.py\nimport tensorflow as tf\ntf.estimator.RunConfig()", None),
        (f"{IMPORTS}\n# cell 7\n{USE}", f"{NEW_IMPORTS}\n# cell 7\n{NEW}"),
        (f"{IMPORTS}\r\n{USE}\r\n", f"{NEW_IMPORTS}\r\n{NEW}\r\n"),
        (f"  {IMPORTS}\n  {USE}", f"{NEW_IMPORTS}\n{NEW}"),
        (
            f"{IMPORTS}\n!ls -l \\\n    a\n{USE}",
            f"{NEW_IMPORTS}\n!ls -l \\\n    a\n{NEW}",
        ),
        (
            f"{IMPORTS}\n?tf\n{USE}\nx = (3\n% 2)",
            f"{NEW_IMPORTS}\n?tf\n{NEW}\nx = (3\n% 2)",
        ),
    ],
)
def test_the_forms_of_a_cell(tmp_path: Path, code: str, new: str | None) -> None:
    code, new = (code, new or code)
    if "\r\n" in new:
        code, new = (re.sub("\r?\n", "\r\n", text) for text in (code, new))
    path = notebook(tmp_path / "a.ipynb", cell(code))
    in_place(path)
    assert sources(path) == [new]


def test_lines_for_the_top_are_a_cell_of_their_own(tmp_path: Path) -> None:
    later = "from __future__ import division\ny = tf.layers.dense(tf.zeros([1, 2]), 3)"
    cells = cell("# Title", "markdown"), {**cell("import tensorflow as tf"), "id": "a"}
    path = notebook(tmp_path / "a.ipynb", *cells, cell(later))
    in_place(path)
    new = [
        "# Title",
        'import os\nos.environ.setdefault("TF_USE_LEGACY_KERAS", "1")',
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()",
        later,
    ]
    assert sources(path) == new
    first = json.loads(path.read_text("utf-8"))["cells"][1]
    assert first.pop("source") and first == {
        "cell_type": "code",
        "execution_count": None,
        "id": "hookbridge",
        "metadata": {},
        "outputs": [],
    }
    assert not in_place(path)[0].result.changed


def test_future_imports_of_the_first_cell_stay_first(tmp_path: Path) -> None:
    future = "from __future__ import division"
    use = "y = tf.layers.dense(tf.zeros([1, 2]), 3)"
    both = cell(f"{future}\n\nimport tensorflow as tf"), cell(use)
    path = notebook(tmp_path / "a.ipynb", cell("# Title", "markdown"), *both)
    in_place(path)
    lines = [
        *(future, "", "import os", 'os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")'),
        *("", "import tensorflow.compat.v1 as tf", "tf.disable_v2_behavior()"),
    ]
    assert sources(path) == ["# Title", "\n".join(lines), use]
    compile("\n".join(sources(path)), "a.py", "exec")
    assert not in_place(path)[0].result.changed


@pytest.mark.parametrize(
    "line",
    [
        "%tensorflow_version 1.x",
        "!pip install -q tensorflow-gpu==1.15.2 h5py",
        "%pip install 'tensorflow<2'",
        "!python -m pip install tensorflow~=1.14",
        "%load_ext hookbridge",
    ],
)
def test_a_line_that_asks_for_tensorflow_1_becomes_a_comment(
    subtests: pytest.Subtests, line: str, tmp_path: Path
) -> None:
    code = f"{line}\nif True:\n    {line}\nimport tensorflow as tf\nx = tf.zeros(3)"
    path = notebook(tmp_path / "a.ipynb", cell(code))
    named = {one.name for one in diagnosis.diagnose([path], "2.21").report.findings}
    assert line in named and not any("hookbridge_" in name for name in named)
    in_place(path)
    assert sources(path) == [
        f"# {line}\nif True:\n    pass  # {line}\n"
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n\nx = tf.zeros(3)"
    ]
    for other in ("!pip install tensorflow", "!pip install 'tensorflow>=2.1'"):
        with subtests.test(str(other)):
            path = notebook(tmp_path / "b.ipynb", cell(code.replace(line, other)))
            assert not in_place(path)[0].result.changed


def test_what_cannot_be_done_is_said_and_no_success(
    subtests: pytest.Subtests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = notebook(
        *(tmp_path / "a.ipynb", cell(IMPORTS), cell("print 'x'"), cell(USE)),
        *(cell("x = 1\ry"), cell("__hookbridge_cell_1__")),
    )
    done = command(capsys, "rewrite", "--write", path)
    assert done.code == 1
    for said in ("cell 2: Python 2 (line 1: print 'x')", "cell 4: ", "cell 5: "):
        with subtests.test(str(said)):
            assert f"{path}: {said}" in done.out
    assert sources(path)[:3] == [NEW_IMPORTS, "print 'x'", NEW]
    assert diagnosis.diagnose([path], "2.21").left == 3
    # `%matplotlib inline` needs that package, and nothing else is imported in vain.
    assert set(diagnosis.diagnose([path], "2.21").absent) <= {"matplotlib"}
    in_r = {"cells": [], "metadata": {"language_info": {"name": "R"}}}
    path.write_text(json.dumps(in_r))
    (bad,) = file_rewrites.rewrite_files([path])
    assert isinstance(bad, Unread) and "a notebook of R, not of Python" in bad.reason


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
    bad, done = file_rewrites.rewrite_files([tmp_path])
    assert isinstance(bad, Unread) and bad.reason
    assert isinstance(done, file_rewrites.FileRewrite) and done.path == good
    assert path.read_bytes() == content


def test_a_notebook_without_cells_of_code_has_nothing_to_do(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    empty = notebook(tmp_path / "a.ipynb")
    text = notebook(tmp_path / "b.ipynb", cell("# tf.placeholder", "markdown"))
    for path in (empty, text):
        with subtests.test(str(path)):
            assert not in_place(path)[0].result.changed
            assert not migrate.scan([path]).findings
            assert not diagnosis.diagnose([path], "2.21").report.findings


def test_what_is_printed_shows_the_lines_of_ipython(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No name of hookbridge's own for such a line is seen, in whatever form."""
    code = "%tensorflow_version 1.x\nif True:\n    !pip install tensorflow==1.15\n"
    code += "import tensorflow as tf\nfiles = !ls\n%time x = tf.contrib.gan\n"
    path = notebook(tmp_path / "a.ipynb", cell(code + "tf.contrib.gan.x, tf.Session\n"))
    said = command(capsys, "rewrite", path).out
    assert "%tensorflow_version 1.x -> # %tensorflow_version 1.x" in said
    assert "!pip install tensorflow==1.15 -> pass # !pip install" in said
    said += command(capsys, "rewrite", "--diff", path).out
    said += command(capsys, "scan", path).out
    assert main(["doctor", "--details", str(path)]) == 1
    said += capsys.readouterr().out
    assert "__hookbridge" not in said

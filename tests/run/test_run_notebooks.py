"""`hookbridge run a.ipynb` runs the cells; `%load_ext hookbridge` makes their world."""

from __future__ import annotations

import importlib.util
import json
import types
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from launching import launch_fork
from written_files import write_files

from hookbridge import errors
from hookbridge.cli import main
from hookbridge.old_programs.reading.one_file.notebooks import Cell, parse
from hookbridge.old_programs.reading.whole_programs.program_files import read_program
from hookbridge.old_programs.run import notebook_cells
from hookbridge.old_programs.scanning import diagnosis

IMPORT = "import tensorflow as tf\nx = tf.placeholder(tf.float32, [])"
# Runs the cells of a file as a Jupyter kernel does.
KERNEL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for source in json.loads(open("cells.json").read()):
    done = shell.run_cell(source)
    error = done.error_before_exec or done.error_in_exec
    if error is not None:
        sys.exit(f"{type(error).__name__}: {error}")
"""
CODE = {"cell_type": "code", "metadata": {}, "source": "import tensorflow"}
# What is in a file, and what is said of it.
BAD: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "invalid JSON in line 1, column 1 (Expecting value)"),
    "text": (b"import tensorflow as tf\n", "invalid JSON in line 1, column 1"),
    "a half": (b'{"cells": [', "invalid JSON in line 1, column 12"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "invalid JSON in line 1, column 1"),
    "UTF-16": ('{"cells": []}'.encode("utf-16"), "not text in its encoding (utf-8)"),
    "a deep list": (b"[" * 100_000, "its JSON is nested too deeply"),
    "a list": ([], "it has no list `cells`"),
    "no cells": ({"worksheets": []}, "it has no list `cells`"),
    "cells": ({"cells": {}}, "it has no list `cells`"),
    "a cell": ({"cells": [CODE, None]}, "its cell 2 is None, and not an object"),
    "a source": ({"cells": [{**CODE, "source": 3}]}, "cell 1 is not text"),
    "metadata of a cell": (
        {"cells": [{**CODE, "metadata": "x"}]},
        "`metadata` of its cell 1 is 'x', and not an object",
    ),
    "tags": (
        {"cells": [{**CODE, "metadata": {"tags": 3}}]},
        "`tags` of its cell 1 is 3, and not a list",
    ),
    "metadata": (
        {"cells": [], "metadata": [1]},
        "`metadata` of the document is [1], and not an object",
    ),
    "a kernel": (
        {"cells": [], "metadata": {"kernelspec": "python3"}},
        "`kernelspec` of its metadata is 'python3', and not an object",
    ),
    "a language": (
        {"cells": [], "metadata": {"language_info": ["python"]}},
        "`language_info` of its metadata is ['python'], and not an object",
    ),
    "R": (
        {"cells": [], "metadata": {"language_info": {"name": "R"}}},
        "a notebook of R, not of Python",
    ),
}
LATE = ["import sys, types\nsys.modules['tensorflow'] = types.ModuleType('tensorflow')"]
LATE += ["%load_ext hookbridge"]


def write(path: Path, *sources: str, tags: tuple[str, ...] = ()) -> Path:
    found: list[dict[str, Any]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
        for source in sources
    ]
    found[-1]["metadata"] = {"tags": list(tags)}
    found.insert(0, {"cell_type": "markdown", "metadata": {}, "source": "# Title"})
    path.write_text(json.dumps({"cells": found, "metadata": {}, "nbformat": 4}))
    return path


def test_cells_run_in_order_and_the_one_that_fails_is_named(
    tmp_path: Path, launcher: ForkServer
) -> None:
    folder = tmp_path / "book"
    files = {
        "part.py": "import tensorflow as tf\nW = tf.get_variable\n",
        "more.py": "import tensorflow as tf\nnames = tf.Session\n",
    }
    write_files(folder, files)
    write(
        folder / "a.ipynb",
        "!pip install tensorflow==1.15\n%tensorflow_version 1.x\n" + IMPORT,
        "%%time\nimport sys, part\n%run more.py\nw = part.W('w', [])",
        "with tf.Session() as session:\n    y = session.run(2 * x, {x: 3})\nprint(y)",
        "%%bash\necho of bash",
        "files = !ls\nfiles, sys.argv[1:], __name__, names is tf.Session",
        "def f(a):\n    return 1 / a",
        "f(0)",
        "print('never')",
    )
    done = launch_fork(launcher, "book/a.ipynb", "--steps=3", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    shown = (
        "Out[5]: (['a.ipynb', 'more.py', 'part.py'], ['--steps=3'], '__main__', True)"
    )
    assert lines[-3:] == ["6.0", "of bash", shown]
    said = done.stderr.splitlines()
    assert "TensorFlow 1: tf.placeholder in a.ipynb, cell 2, line 4" in done.stderr
    assert "hookbridge: `pip install tensorflow==1.15` is skipped" in done.stderr
    where = [line for line in said if line.startswith('  File "')]
    assert where == [
        f'  File "{folder}/a.ipynb, cell 8", line 1, in <module>',
        f'  File "{folder}/a.ipynb, cell 7", line 2, in f',
    ]
    assert "    return 1 / a" in said
    assert "ZeroDivisionError: division by zero" in said
    last = "hookbridge run: a.ipynb: cell 8 failed; the 1 after it did not run"
    assert said[-1] == last


@pytest.mark.one_tensorflow
@pytest.mark.parametrize(
    ("sources", "code", "out", "err"),
    [
        (
            ["1", "import sys; sys.exit(3)", "2"],
            3,
            "Out[1]: 1\n",
            "ended the program; ",
        ),
        (["1", "import sys; sys.exit(0)"], 0, "Out[1]: 1\n", None),
        (["%no_such_magic", "1"], 1, "", "cell 2 failed; the 1 after"),
        (["%%capture\n1 / 0", "1"], 1, "", 'ipynb, cell 2", line 1'),
        (["await_ = 3\nawait_;", "!echo $await_"], 0, "3\n", None),
    ],
)
def test_a_notebook_ends_as_it_wants(
    sources: list[str],
    code: int,
    out: str,
    err: str | None,
    tmp_path: Path,
    launcher: ForkServer,
) -> None:
    write(tmp_path / "a.ipynb", *sources)
    done = launch_fork(launcher, "a.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert (err in done.stderr) if err else not done.stderr


@pytest.mark.one_tensorflow
def test_an_error_that_is_meant_ends_nothing(
    tmp_path: Path, launcher: ForkServer
) -> None:
    write(tmp_path / "a.ipynb", "print('first')", "1 / 0", tags=("raises-exception",))
    done = launch_fork(launcher, "a.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "first\n")
    assert done.stderr == "ZeroDivisionError: division by zero\n"


@pytest.mark.one_tensorflow
def test_cells_of_python_2_are_refused_before_the_first_one_runs(
    tmp_path: Path, launcher: ForkServer
) -> None:
    write(tmp_path / "a.ipynb", "print('never')", "print 'x'")
    done = launch_fork(launcher, "a.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "'a.ipynb'; expected cells of Python 3: its cell 3 has a Python 2 (line 1"
        in (done.stderr)
    )


def test_without_ipython_magics_are_refused_and_the_rest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "IPython" else find(name),
    )
    path = write(tmp_path / "a.ipynb", "x = 1", "%time x")
    with pytest.raises(errors.MissingExtraError) as refused:
        notebook_cells.check(parse(path.read_text()), "a.ipynb")
    assert str(refused.value) == (
        "Cell 3 of a.ipynb, which has magics of IPython, needs IPython, which is not "
        'installed. Install it with `pip install "tf-hookbridge[notebooks]"`. '
        "Notebooks without magics (`%...`, `!...`) run without it."
    )
    assert diagnosis.diagnose([path], "2.21").absent == ("IPython",)
    plain = write(tmp_path / "b.ipynb", "x = 1")
    notebook_cells.check(parse(plain.read_text()), "b.ipynb")
    assert diagnosis.diagnose([plain], "2.21").absent == ()
    main = types.ModuleType("main")
    shell = notebook_cells.PlainShell(main, "b.ipynb", targets_tf1=None)
    assert shell.run(Cell(1, "def f(a): return 1 / a\nf(4)", False)) is None
    assert capsys.readouterr().out == "0.25\n"
    error = shell.run(Cell(2, "f(0)", False))
    assert isinstance(error, ZeroDivisionError)


def test_load_ext_makes_the_world_of_tensorflow_1(
    tmp_path: Path, launcher: ForkServer
) -> None:
    (tmp_path / "part.py").write_text("import tensorflow as tf\nW = tf.get_variable\n")
    (tmp_path / "old.py").write_text("import tensorflow as tf\nnames = tf.Session\n")
    sources = [
        "%load_ext hookbridge",
        f"{IMPORT}\nfrom tensorflow.contrib.layers import xavier_initializer as make\n"
        "import keras, part\nw = part.W('w', [1, 2], initializer=make())",
        "print(keras.__version__[0], tf.executing_eagerly(), tf.__version__)",
        "%%time\nimport tensorflow as again\nprint(again.Session().run(x, {x: 3}))",
        "%reload_ext hookbridge",
        "%run old.py",
        "print(names is again.Session)",
    ]
    (tmp_path / "cells.json").write_text(json.dumps(sources))
    home = {"HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    done = launcher.run("-c", KERNEL, folder=tmp_path, **home)
    assert done.returncode == 0, done.stdout + done.stderr
    said, *others = done.stdout.splitlines()
    # TensorFlow's warnings go to standard output too, where IPython is.
    versions, value = (one for one in others if one.startswith(("2 ", "3.0")))
    assert said.startswith(
        "hookbridge: `import tensorflow` is tensorflow.compat.v1, v1"
    )
    assert "TensorFlow 1: `%load_ext hookbridge` in this notebook" in said
    assert versions.split() == ["2", "False", "1.15.5"]
    assert value == "3.0"
    (tmp_path / "cells.json").write_text(json.dumps(LATE))
    done = launcher.run("-c", KERNEL, folder=tmp_path, **home)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportOrderError: TensorFlow was imported before `%load_ext hookbridge`; "
        "expected that line in the first cell, in front of every import of TensorFlow "
        "or Keras. Put it there, restart the kernel and run the cells from the first "
        "one on."
    )


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_no_notebook_is_said_to_be_none(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each command says the same of it."""
    monkeypatch.chdir(tmp_path)
    content, reason = BAD[case]
    as_bytes = content if isinstance(content, bytes) else json.dumps(content).encode()
    Path("a.ipynb").write_bytes(as_bytes)
    for words in ("doctor", "migrate scan --check", "migrate rewrite"):
        assert main([*words.split(), "a.ipynb"]) == 1
        assert reason in capsys.readouterr().out
    with pytest.raises(errors.InvalidArgumentError) as caught:
        read_program(["a.ipynb"], [])
    assert str(caught.value).startswith("Received the program 'a.ipynb'; expected a n")
    assert reason in str(caught.value)


def test_a_cell_that_no_file_can_hold_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ipynb", "x = 1", "x = '\ud800'")
    with pytest.raises(errors.InvalidArgumentError, match="its cell 3 has a"):
        notebook_cells.check(parse(path.read_text()), "a.ipynb")


def test_doctor_names_what_magics_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        tmp_path / "a.ipynb",
        "%matplotlib inline\n%load_ext autoreload\n%load_ext no_such_extension",
    )
    main(["doctor", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert "imports no_such_extension, which is not installed" in said
    assert "autoreload" not in said
    is_there = importlib.util.find_spec("matplotlib") is not None
    assert ("imports matplotlib, which is not" in said) is not is_there

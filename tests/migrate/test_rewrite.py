"""`migrate.rewrite` and the command: texts, options, files, bad input."""

from __future__ import annotations

import ast
import stat
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from migrate_command import Output, command, in_place

from hookbridge import errors
from hookbridge import old_programs as migrate
from hookbridge.old_programs.reading.one_file.modules import Unread
from hookbridge.old_programs.rewriting import file_rewrites
from hookbridge.old_programs.rewriting.engine.context import Context

ONE_TENSORFLOW = True
OLD = "import tensorflow as tf\nx = tf.estimator.RunConfig()\n"
NEW = "import tensorflow as tf\nimport hookbridge as hb\nx = hb.estimator.RunConfig()\n"


def test_a_result_tells_what_was_done_and_what_is_left() -> None:
    done = migrate.rewrite(f"{OLD}y = tf.contrib.gan.gan_train(x)\n")
    first, edit = done.edits
    assert (first.rule, first.after) == ("v1-imports", "tensorflow.compat.v1 as tf")
    assert (edit.rule, edit.line) == ("dead-names", 2)
    assert (edit.before, edit.after) == (
        "tf.estimator.RunConfig",
        "hb.estimator.RunConfig",
    )
    (todo,) = done.todos
    assert (todo.line, todo.code) == (4, "GONE")
    assert done.source.splitlines()[3].startswith("# TODO(hookbridge): GONE tf")
    assert done.diff("a.py").startswith("--- a/a.py\n+++ b/a.py\n")
    assert migrate.rewrite(done.source).source == done.source


def test_a_check_that_the_rewritten_program_fails_gets_a_comment() -> None:
    done = migrate.rewrite(
        'import tensorflow as tf\nassert tf.__version__ < "2"\ntf.placeholder\n'
    )
    (todo,) = done.todos
    assert todo.code == "VERSION_CHECK"
    assert migrate.rewrite(done.source).source == done.source


def test_only_and_skip_choose_the_rules_and_the_target_decides() -> None:
    text = f"{OLD}x = tf.AUTO_REUSE, tf.contrib.crf\n"
    all_but = migrate.rewrite(text, skip=["dead-names", "todos"])
    assert "tf.estimator.RunConfig" in all_but.source
    assert "import tensorflow.compat.v1 as tf" in all_but.source
    assert not all_but.todos
    alone = migrate.rewrite(text, only=["todos"])
    assert not alone.edits and {t.code for t in alone.todos} == {
        *("ESTIMATOR", "V1_NAME", "CONTRIB")
    }
    with pytest.raises(errors.InvalidArgumentError, match=r"'nothing'.*todos"):
        migrate.rewrite(text, only=["nothing"])
    assert migrate.rewrite(OLD, target="2.15").source == OLD


def test_rules_of_ones_own() -> None:
    def shorten(node: ast.Attribute, context: Context) -> None:
        context.replace("shorten", node, node.attr)

    rule = migrate.RewriteRule("shorten", "Names alone.", (ast.Attribute,), shorten)
    done = migrate.rewrite("tf.a.value\n", rules=[rule])
    # Of two changes of one place the first counts.
    assert (done.source, len(done.edits)) == ("a.value\n", 1)

    def apply(node: ast.Name, context: Context) -> None:
        if node.id == "worse":
            context.replace("better", node, "better")

    rule = migrate.RewriteRule("better", "No worse names.", (ast.Name,), apply)
    old = "worse = f'é{worse}' 'ü', worse  # worse\n"
    done = migrate.rewrite(old, rules=[*migrate.REWRITES, rule])
    assert done.source == "better = f'é{better}' 'ü', better  # worse\n"


def test_a_rule_is_prepared_before_each_scan_and_each_walk() -> None:
    """The second walk is about what the first one has left or made."""
    events: list[tuple[str, str, int]] = []

    def note(event: str, text: str) -> None:
        events.append((event, text, threading.get_ident()))

    def apply(node: ast.Name, context: Context) -> None:
        if node.id in ("abc", "ab"):
            context.replace("shorter", node, node.id[:-1])

    rule = migrate.RewriteRule(
        "shorter",
        "Names of one letter.",
        (ast.Name,),
        apply,
        codes=("ESTIMATOR",),  # of a finding that stays, so the rule is asked again
        prepare=lambda context: note("prepare", context.module.text),
        before_scan=lambda module, place: note("scan", module.text),
    )
    end = "tf.estimator.RunConfig\n"
    texts = [f"import tensorflow as tf\n{name} = {end}" for name in ("abc", "ab", "a")]
    done = migrate.rewrite(texts[0], rules=[rule], only=["shorter"])
    assert done.source == texts[-1]
    here = threading.get_ident()
    assert events == [(e, text, here) for text in texts for e in ("scan", "prepare")]


def test_a_rule_that_fails_costs_one_file(tmp_path: Path) -> None:
    def fail(node: ast.Name, context: Context) -> None:
        if node.id == "bad":
            raise IndexError("bad")

    (tmp_path / "a.py").write_text("bad = 1\n")
    (tmp_path / "b.py").write_text("good = 1\n")
    rules = [migrate.RewriteRule("fail", "Fails.", (ast.Name,), fail)]
    failed, done = file_rewrites.rewrite_files([tmp_path], rules=rules)
    assert isinstance(failed, Unread) and isinstance(done, file_rewrites.FileRewrite)
    assert "IndexError" in failed.reason and "report" in failed.reason


@pytest.mark.parametrize(
    "text", ["print 'old'\n", "def f(:\n", "x = '\n", "\0", "x = " + "(" * 300]
)
def test_what_is_no_python_3_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Python 3"):
        migrate.rewrite(text)


def test_encoding_line_ends_and_mode_stay(tmp_path: Path, capsys: Output) -> None:
    tail = "y = 'é'  # \f\ntf.function\n"
    heads = {"utf-8": "", "utf-8-sig": "", "latin-1": "# -*- coding: latin-1 -*-\n"}
    ends = {"unix": "\n", "dos": "\r\n"}
    for name, end in ends.items():
        for encoding, head in heads.items():
            path = tmp_path / f"{name}_{encoding}.py"
            path.write_bytes((head + OLD + tail).replace("\n", end).encode(encoding))
            path.chmod(0o750)
    assert command(capsys, "rewrite", "--write", tmp_path).code == 0
    written = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(written) == 6
    for path, content in written.items():
        name, _, encoding = path.stem.partition("_")
        text = content.decode(encoding)
        assert text.replace(ends[name], "\n").startswith(heads[encoding] + NEW)
        assert "y = 'é'  # \f" in text
        assert "\n" not in text.replace(ends[name], "")
        assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert "0 would change" in command(capsys, "rewrite", "--write", tmp_path).out
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == written


def test_bad_files_are_reported_and_the_rest_is_rewritten(
    subtests: pytest.Subtests, tmp_path: Path, capsys: Output
) -> None:
    (tmp_path / "good.py").write_text(OLD)
    bad = {
        "two.py": b"print 'old'\n",
        "wrong.py": b"def f(:\n",
        "binary.py": b"\x00\x01\xff\xfe",
        "coded.py": b"# -*- coding: no-such -*-\n",
        "latin.py": b"x = '\xe9\xff'\n",
        "book.ipynb": b'{"cells": 3}',
        "huge.py": b"#" * 5_000_001,
        "mac.py": b"x = 1\ry = 2\r",
    }
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    report = migrate.scan([tmp_path, tmp_path])
    assert [f.code for f in report.findings] == ["ESTIMATOR"]
    assert report.files == 2  # `mac.py` is not rewritten, but read
    reasons = {Path(unread.file).name: unread.reason for unread in report.unread}
    assert set(reasons) == {*bad, "gone.py"} - {"mac.py"}
    for name, reason in {
        "two.py": "Python 2 (line 1: print 'old'); `pip install fissix`",
        "wrong.py": "line 1",
        "book.ipynb": "no list `cells`",
        "huge.py": "5000001",
    }.items():
        with subtests.test(str(name)):
            assert reason in reasons[name]
    done = command(capsys, "rewrite", "--write", tmp_path)
    assert done.code == 1  # since some could not be read
    assert "1 file read, 1 rewritten" in done.out
    assert "9 not read" in done.out
    for name in (*bad, "gone.py"):
        with subtests.test(str(name)):
            assert f"{name}: " in done.out
    assert (tmp_path / "good.py").read_text() == NEW
    assert {n: (tmp_path / n).read_bytes() for n in bad} == bad
    assert command(capsys, "rewrite", "--check", tmp_path).code == 1  # nine remain


def test_a_bad_file_that_nothing_imports_is_named_and_fails_nothing(
    tmp_path: Path, capsys: Output
) -> None:
    """The exit code is about what was asked: the programs of a folder, or a file."""
    (tmp_path / "good.py").write_text("import json\n")
    bad = tmp_path / "tools" / "two.py"
    bad.parent.mkdir()
    bad.write_text("print 'old'\n")
    done = command(capsys, "rewrite", tmp_path)
    assert done.code == 0 and "1 not read" in done.out
    assert "two.py: Python 2" in done.out and "no file that was read" in done.out
    assert command(capsys, "rewrite", bad).code == 1
    (tmp_path / "good.py").write_text("from tools import two\n")
    done = command(capsys, "rewrite", tmp_path)
    assert done.code == 1 and "no file that was read" not in done.out


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text(OLD)
    plan = [
        d for d in file_rewrites.rewrite_files([tmp_path]) if not isinstance(d, Unread)
    ]
    (tmp_path / "c.py").write_text("x = 1\n")
    with pytest.raises(errors.UnwritableError, match="no file was changed"):
        list(file_rewrites.write_all(plan))
    texts = {p.name: p.read_text() for p in tmp_path.iterdir()}
    assert texts == {"a.py": OLD, "b.py": OLD, "c.py": "x = 1\n"}
    assert [p.name for p in file_rewrites.write_all(plan[:2])] == ["a.py", "b.py"]


def test_a_rewrite_that_was_interrupted_can_be_run_again(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\nx = tf.placeholder\n")
    (tmp_path / "b.py").write_text(OLD.replace("RunConfig()", "LinearRegressor([])"))
    (tmp_path / "main.py").write_text("import a, b\n")
    plan = [
        d for d in file_rewrites.rewrite_files([tmp_path]) if not isinstance(d, Unread)
    ]
    writing = file_rewrites.write_all([d for d in plan if d.result.changed])
    next(writing)
    assert isinstance(writing, Generator)
    writing.close()
    left = [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert not left
    in_place(tmp_path)
    assert "hb.estimator.v1.LinearRegressor" in (tmp_path / "b.py").read_text()
    assert "compat.v1 as tf" in (tmp_path / "a.py").read_text()


def test_links_stay_and_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    path, folder = tmp_path / "real" / "program.py", tmp_path / "folder"
    for place in (path.parent, folder):
        place.mkdir()
    path.write_text(OLD)
    outside, link = folder / "outside.py", tmp_path / "link.py"
    for one in (outside, link):
        one.symlink_to(path)
    (found,) = file_rewrites.rewrite_files([folder])
    assert isinstance(found, Unread)
    assert str(path) in found.reason and "out of the folder" in found.reason
    assert [done.path for done in in_place(path, tmp_path, link)] == [path]
    path.write_text(OLD)
    in_place(link)
    assert link.is_symlink()
    assert path.read_text() == NEW


def test_the_command_shows_before_it_writes(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "program.py"
    path.write_text(OLD)
    done = command(capsys, "rewrite", tmp_path)
    assert done.code == 0, done.err
    assert "2: dead-names: tf.estimator.RunConfig -> hb" in done.out
    assert "1 would change" in done.out
    done = command(capsys, "rewrite", "--diff", "--check", tmp_path)
    assert done.code == 1
    assert "-x = tf.estimator.RunConfig()\n+import hookbr" in done.out
    assert path.read_text() == OLD
    done = command(
        capsys, "rewrite", "--only=guest-lists", "--diff", "--check", tmp_path
    )
    assert (done.code, done.out) == (0, "")


@pytest.mark.parametrize("name", [".", "main.py"])
def test_a_rewrite_into_another_folder_leaves_the_files(
    name: str, tmp_path: Path, capsys: Output
) -> None:
    old, new = tmp_path / "old", tmp_path / "deep" / "new"
    old.mkdir()
    texts = {
        "main.py": "import lib\nprint(lib.x)\n",
        "lib.py": "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n",
        "data.csv": "1,2\n",
    }
    for file, text in texts.items():
        (old / file).write_text(text)
    done = command(capsys, "rewrite", f"--to={new}", old / name)
    assert done.code == 0, done.err
    assert {file: (old / file).read_text() for file in texts} == texts
    if name == ".":
        assert f"written: {new / 'lib.py'}" in done.out
        assert "import tensorflow.compat.v1 as tf" in (new / "lib.py").read_text()
        assert (new / "data.csv").read_text() == "1,2\n"
    assert (new / "main.py").read_text().endswith(texts["main.py"])
    again = command(capsys, "rewrite", f"--to={new}", old)
    assert again.code == 2 and "exists and is not empty" in again.err
    inside = command(capsys, "rewrite", f"--to={old / 'new'}", old)
    assert inside.code == 2 and "is inside" in inside.err
    both = command(capsys, "rewrite", "--write", f"--to={new}x", old)
    assert both.code == 2 and "expected one of them" in both.err


def test_the_command_lists_the_rules_and_refuses_others(
    subtests: pytest.Subtests, tmp_path: Path, capsys: Output
) -> None:
    done = command(capsys, "rewrite", "--list-rules")
    names = [line.split()[0] for line in done.out.splitlines()]
    assert names == [*(rule.name for rule in migrate.REWRITES), "todos"]
    for words in ([], [tmp_path / "no.py"], ["--only=nothing", tmp_path]):
        with subtests.test(str(words)):
            done = command(capsys, "rewrite", *words)
            assert (done.code, done.err.count("\n")) == (2, 1)


def test_escapes_of_old_code_are_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    text = "import tensorflow as tf\nx = tf.placeholder(tf.string, name='\\d')\n"
    assert "disable_v2_behavior" in migrate.rewrite(text).source
    assert not list(recwarn)

"""The command line before any TensorFlow: help, bad flags, exit codes."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import hookbridge as hb
from hookbridge import compat
from hookbridge.cli import COMMANDS, command, main

BAD = {
    "no_command": ([], "no command given"),
    "unknown_command": (["demmo"], "unknown command 'demmo'; the nearest: demo."),
    "no_migration": (["migrate"], "migrate: no command given; expected one of: scan"),
    "unknown_flag": (["demo", "--epoch=3"], "unknown flag --epoch; the nearest: --ep"),
    "zero_epochs": (["demo", "--epochs=0"], "--epochs: received 0; expected a whole"),
    "no_value": (["demo", "--epochs"], "--epochs: expected one argument"),
    "argument": (["demo", "please"], "'please'; expected flags only"),
    "does_not_divide_among_workers": (
        ["demo", "--batch_size=32", "--num_towers=2", "--num_workers=3"],
        "batch of 32 examples for 6 towers; expected a multiple of 6",
    ),
    "no_workers": (["demo", "--num_workers=0"], "--num_workers: received 0; expected"),
    "local_workers": (
        ["demo", "--local", "--num_workers=7"],
        "--local and --num_workers=7; expected one of them",
    ),
    "no_chief_with_a_value": (["cluster", "--nochief=1"], "cluster: Received --noch"),
    "no_boolean": (
        ["demo", "--open=maybe"],
        "demo: Received --open=maybe; expected --open, --open=true or --open=false.\n",
    ),
    "format": (["demo", "--format=xml"], "received 'xml'; expected one of text, json"),
    "scan_writes": (["migrate", "scan", "--write", "a.py"], "unknown flag --write"),
    "rewrite_has_no_format": (
        ["migrate", "rewrite", "--format=json", "a.py"],
        "migrate rewrite: Received the unknown flag --format",
    ),
    "check_and_write": (
        ["migrate", "rewrite", "--check", "--write", "a.py"],
        "--write and --check; expected one of them",
    ),
    "list_and_write": (
        ["migrate", "rewrite", "--list-rules", "--write"],
        "--list_rules and --write; expected one of them",
    ),
    "too_large": (["demo", "--batch_size=4000"], "expected at most 1445"),
    "no_cluster_command": (["cluster"], "expected one after `--`"),
    "no_program": (["cluster", "--", "no-such-program"], "cannot be found or run"),
    "nobody": (
        ["cluster", "--nochief", "--num_workers=0", "--", "true"],
        "a chief or a worker",
    ),
    "workers": (
        ["cluster", "--num_workers=-1", "--", "true"],
        "--num_workers: received -1",
    ),
    "many_workers": (
        ["cluster", "--num_workers=99999999", "--", "true"],
        "num_workers=99999999",
    ),
    "grace": (["cluster", "--grace_secs=nan"], "grace_secs: received nan"),
    "shell": (["completion", "fish"], "the shell 'fish'; expected bash or zsh"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_gets_one_line_and_exit_code_2(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, message = BAD[case]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hookbridge: ")
    assert err.count("\n") == 1 and err.endswith("\n")
    assert message in err
    assert list(tmp_path.iterdir()) == []  # refused before anything is written


def test_a_bad_directory_gets_one_line_and_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "session").mkdir()
    thesis = tmp_path / "session" / "thesis.txt"
    thesis.write_text("years of work")
    for place, message in (
        (tmp_path, "holds files of something else"),
        (thesis / "run", "cannot be written (not a directory)"),
    ):
        assert main(["demo", f"--model_dir={place}"]) == 2
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1
    assert thesis.read_text() == "years of work"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command and flag; each help fits a screen and shows an example."""
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    with_json = text.partition("is for results: ")[2].partition(".\n")[0].split(", ")
    for name in COMMANDS:
        assert f"  {name} " in text
        assert main([name, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith(f"usage: hookbridge {name}")
        assert len(lines) <= 50 and max(map(len, lines)) <= 92
        assert any(line.startswith(f"example: hookbridge {name} ") for line in lines)
        told = {w.strip("[],") for line in lines for w in line.split()[:1]}
        assert {f"--{flag}" for flag in command.parser_of(name)[1].flags} <= told
        # What has no results of its own is named as such above.
        assert ("--format" in told) == (name in with_json)
    assert main(["migrate", "--help"]) == 0
    assert "migrate rewrite" in capsys.readouterr().out


def test_flags_are_written_with_dashes_or_underscores() -> None:
    _, parser = command.parser_of("migrate rewrite")
    for words in (
        ["--list-rules", "--target=2.15"],
        ["--list_rules=true", "--no-diff", "--nocheck", "--target", "2.15"],
    ):
        values = parser.values(words)
        assert (values.list_rules, values.diff, values.target) == (True, False, "2.15")
        assert not values.check


def test_a_command_line_after_the_flags_stays_as_it_is() -> None:
    _, parser = command.parser_of("run")
    own = ["--v1", "--keras", "2", "--steps-per-epoch=5"]
    rest = ["job.py", "--keras=3", "--v1", "--no-x"]
    values = parser.values([*own, *rest], own_flags_only=True)
    assert (values.v1, values.keras, values.steps_per_epoch) == (True, "2", 5)
    assert values.rest == rest
    values = parser.values(["-m", "job", "-h"], own_flags_only=True)
    assert values.rest == ["-m", "job", "-h"] and not values.help
    values = parser.values(["--", "--odd.py"], own_flags_only=True)
    assert values.rest == ["--odd.py"]


COMPLETED = {
    "": ["demo", "train", "evaluate", "predict", "run", "doctor", "cluster"],
    "tra": ["train"],
    "migrate ": ["scan", "rewrite"],
    "migrate scan --ch": ["--check"],
    "train a.py --loop ": ["towers", "fit", "estimator"],
    "train a.py --num_p": ["--num_ps"],
    "train a.py --report --loop=f": ["fit"],
}
# What the shells do at the key Tab, without a terminal.
TAB = {
    "bash": "COMP_WORDS=({words}); COMP_CWORD={last}; _hookbridge; "
    'printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": "compadd() {{ print -rl -- ${{@:#-(|S)}} }}; words=({words}); "
    "CURRENT=$#words; _bash_complete -F _hookbridge",
}


@pytest.mark.parametrize("typed", COMPLETED)
@pytest.mark.parametrize("shell", TAB)
def test_shells_complete(
    shell: str, typed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    if shell == "bash":
        typed = typed.replace("=", " = ")  # as bash divides a line
    words = ["hookbridge", *typed.split(" ")]
    quoted = " ".join(f"'{word}'" for word in words)
    tab = TAB[shell].format(words=quoted, last=len(words) - 1)
    done = subprocess.run(
        [program, "-c", f"{capsys.readouterr().out}\n{tab}"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    found = [line.rpartition("=")[2] for line in done.stdout.split()]
    expected = COMPLETED[typed.replace(" = ", "=")]
    # zsh itself leaves out what does not begin with the word.
    begun = [word for word in found if word.startswith(words[-1].rpartition("=")[2])]
    assert begun[: len(expected)] == expected, done.stderr


def test_version_tells_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    told = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert told["hookbridge"] == hb.__version__
    assert told["tensorflow"] == metadata.version("tensorflow")
    assert told["python"] == platform.python_version()


@pytest.mark.parametrize("name", ["tensorflow_cpu", "tf_nightly", "tensorflow_intel"])
def test_tensorflow_is_found_under_each_name(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "empty")])
    with pytest.raises(hb.errors.MissingExtraError, match="TensorFlow is not inst"):
        compat.installed_tf_version()
    version = "2.99.0.dev20260101"
    folder = tmp_path / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert compat.installed_tf_version() == (2, 99)
    assert main(["--version"]) == 0
    assert f"{name.replace('_', '-')} {version}\n" in capsys.readouterr().out


@pytest.mark.slow
def test_help_and_bad_flags_do_not_import_tensorflow(repo_root: Path) -> None:
    code = (
        "import sys\n"
        "from hookbridge.cli import COMMANDS, command, main\n"
        "codes = [main(['--help']), *(main([n, '--help']) for n in COMMANDS),\n"
        "         main(['demo', '--epochs=0'])]\n"
        "print('tensorflow' in sys.modules, codes, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo_root, capture_output=True, text=True
    )
    codes = [0] * (1 + len(COMMANDS)) + [2]
    assert done.stderr.splitlines()[-1] == f"False {codes}"


@pytest.mark.slow
def test_python_m_hookbridge_is_the_command(repo_root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hookbridge", "demo", "--epochs=x"],
        cwd=repo_root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1

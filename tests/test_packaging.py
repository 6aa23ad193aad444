"""One package from two folders: link, `package_dir`, wheel and sdist agree."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from plain_python import run_python

import hookbridge as hb
from hookbridge.ground.imports import extras

pytestmark = pytest.mark.slow
ONE_TENSORFLOW = True


# Made beside the sources, some of them by tests that run at the same time.
MADE = shutil.ignore_patterns(
    *(".*cache", ".git", ".hypothesis", ".venv", "__pycache__", "*.egg-info"),
    *("build", "dist", "runs"),
)


@pytest.fixture(scope="module")
def built(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the checkout, its sdist, and the wheel built from it."""
    work = tmp_path_factory.mktemp("package")
    source = work / "source"
    shutil.copytree(repo_root, source, symlinks=True, ignore=MADE)
    # The environment has the build backend, so no isolation and no network is needed.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(work)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return work


def test_wheel_holds_modules_digits_and_pages(
    subtests: pytest.Subtests, built: Path
) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.startswith(f"tf_hookbridge-{hb.__version__}-py3-")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    (metadata,) = (packed.pop(n) for n in list(packed) if n.endswith("/METADATA"))
    for line in (
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "Classifier: Typing :: Typed",
    ):
        with subtests.test(str(line)):
            assert f"\n{line}\n" in metadata.decode()
    needed = re.findall(r"^Requires-Dist: (.*)$", metadata.decode(), re.M)
    # On a package index nothing stands beside the README.
    readme = metadata.decode().partition("\n\n")[2]
    assert not re.findall(r"\]\((?!https?:)", readme)
    assert "([what was tested]" not in readme and "(what was tested)" in readme
    # No second TensorFlow is asked for.
    assert {n for n in needed if "extra ==" not in n} == {"numpy", "absl-py"}
    expected = {}
    for folder, target, pattern in (
        ("hookbridge", "hookbridge", "*.*"),
        ("adapters", "hookbridge/adapters", "*.*"),
        ("examples/data", "hookbridge/jobs/demo/data", "*.*"),
        ("docs", "hookbridge/cli/pages", "*.md"),
        ("examples", "hookbridge/jobs/demo", "digits_in_both_loops.py"),
    ):
        source = built / "source" / folder
        for file in source.rglob(pattern):
            name = file.relative_to(source).as_posix()
            if file.is_file():
                expected[f"{target}/{name}"] = file.read_bytes()
    assert "hookbridge/py.typed" in expected
    assert {n: packed[n] for n in packed if "-info/" not in n} == expected
    # The sdist has what the commands need.
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as sources:
        names = {n.split("/", 1)[1] for n in sources.getnames() if "/" in n}
    commands = {"LICENSE", "Makefile", ".ci/find_python.sh"}
    assert commands | {"adapters/convert.py", "tests/test_packaging.py"} <= names


def install(environment: Path, *words: str) -> str:
    """What pip says when it installs with this environment's packages in sight."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", environment], check=True
    )
    (target,) = environment.glob("lib/python*/site-packages")
    (target / "known.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = str(environment / "bin" / "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index"]
    flags = ["--no-build-isolation", "--no-deps"]
    done = subprocess.run([*command, *flags, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_in(environment: Path, code: str) -> str:
    """What a program prints with the packages of an environment alone."""
    done = subprocess.run(
        [environment / "bin" / "python", "-c", code],
        capture_output=True,
        text=True,
        cwd=environment.parent,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.exhaustive
def test_commands_from_a_wheel_on_the_path(
    repo_root: Path, built: Path, tmp_path: Path
) -> None:
    """A zip has no folders for `open`: what the commands read comes from it."""
    (wheel,) = built.glob("*.whl")
    program = str(repo_root / "examples" / "old_program.py")
    commands = (["migrate", "scan", program], ["doctor", program], ["docs"])
    code = (
        "import sys\n"
        "from hookbridge.cli import main\n"
        f"for words in {commands!r}:\n"
        "    print(words, main(words))\n"
        f"sys.exit(main(['run', {program!r}]))\n"
    )
    done = run_python(code, wheel, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss after 30 steps" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.exhaustive
def test_the_line_of_an_error_is_right_for_a_wheel(built: Path, tmp_path: Path) -> None:
    """pip finds the installed package, and asks no index for it."""
    (wheel,) = built.glob("*.whl")
    install(tmp_path, str(wheel))
    line = shlex.split(extras.install("contrib").strip("`"))
    said = install(tmp_path, *line[2:])
    assert "Requirement already satisfied: tf-hookbridge[contrib]" in said


def sources(root: Path, target: Path) -> Path:
    """A copy of what an installation needs of a checkout."""
    for name in ("hookbridge", "adapters", "docs", "examples"):
        shutil.copytree(root / name, target / name, symlinks=True, ignore=MADE)
    for name in ("setup.py", "README.md", "LICENSE", "pyproject.toml"):
        shutil.copy(root / name, target)
    return target


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "kind", [pytest.param([], id="plain"), pytest.param(["--editable"], id="editable")]
)
def test_a_checkout_without_links(
    repo_root: Path, tmp_path: Path, kind: list[str]
) -> None:
    """Git writes a link as a file with its target, where links are not possible."""
    source = sources(repo_root, tmp_path / "source")
    links = [path for path in source.rglob("*") if path.is_symlink()]
    assert [link.relative_to(source).as_posix() for link in links] == [
        "hookbridge/adapters"
    ]
    target = os.readlink(links[0])
    links[0].unlink()
    links[0].write_text(target)
    install(tmp_path / "env", *kind, str(source))
    code = (
        "from hookbridge.adapters.convert import as_hooks\n"
        "from hookbridge.jobs.demo import settings\n"
        "assert settings.FILE.exists() and settings.DATA.exists()\n"
        "from hookbridge.cli import main\n"
        "main(['docs', 'lifecycle'])"
    )
    assert run_in(tmp_path / "env", code).startswith("# ")


def test_type_checkers_find_an_editable_install(
    repo_root: Path, tmp_path: Path
) -> None:
    source = sources(repo_root, tmp_path / "source")
    install(tmp_path / "env", "--editable", str(source))
    # A line with the path of the sources is what pyright, mypy and editors read.
    files = (tmp_path / "env").glob("lib/python*/site-packages/*hookbridge*.pth")
    assert str(source) in [line for f in files for line in f.read_text().splitlines()]
    code = (
        "from importlib.util import find_spec\n"
        "print(find_spec('hookbridge.adapters.convert').origin)"
    )
    assert run_in(tmp_path / "env", code).startswith(str(source))


def test_bare_name_adapters_is_refused(repo_root: Path) -> None:
    assert os.readlink(repo_root / "hookbridge" / "adapters") == "../adapters"
    done = subprocess.run(
        [sys.executable, "-c", "import adapters"],
        cwd=repo_root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "Import it as `hookbridge.adapters`" in done.stderr

"""Programs that Python 3 cannot parse, as `doctor` names them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hookbridge.cli import main

BEFORE_3_14 = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="Python 3.14 takes `except A, b:`"
)


@pytest.mark.parametrize(
    ("line", "source"),
    [
        (1, 'print "loss", 3'),
        (2, 'if True:\n    print "loss", 3'),
        (1, 'x = 3; print "loss"'),
        (1, 'exec "x = 3"'),
        pytest.param(
            *(3, "try:\n    x = 3\nexcept ValueError, e:\n    pass"), marks=BEFORE_3_14
        ),
        pytest.param(
            *(3, "try:\n    x = 3\nexcept (KeyError, IOError), e:\n    pass"),
            marks=BEFORE_3_14,
        ),
        (1, 'raise ValueError, "no"'),
        (1, "os.chmod(x, 0755)"),
        (1, "x = 10L + 0xFFL"),
        (1, "x = 3 if x <> 4 else 5"),
        (1, "x = `y`"),
        (1, 'x = ur"loss"'),
        (1, "def f(x, (a, b)):\n    pass"),
        (1, "f = lambda (a, b): a"),
    ],
)
def test_a_program_of_python_2_is_one_place_with_the_command_that_mends_it(
    line: int, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.py"
    path.write_text(f"{source}\nimport tensorflow as tf\ntf.placeholder(1)\n")
    assert main(["doctor", str(path)]) == 1
    verdict, said = capsys.readouterr().out.splitlines()
    assert verdict.startswith("1 place needs manual work.")
    text = source.splitlines()[line - 1].strip()
    assert said == (
        f"{path}  could not be read: Python 2 (line {line}: {text}); "
        "`pip install fissix` and `python -m fissix -w FILE` make Python 3 of it"
    )


@pytest.mark.parametrize(
    "source",
    [
        "x = (",
        "print('x'",
        "def f(a, b:\n    pass",
        "x = 3 +",
        "except ValueError:",
        "x y",
    ],
)
def test_a_wrong_program_of_python_3_is_not_called_python_2(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.py").write_text(f"{source}\n")
    assert main(["doctor", str(tmp_path / "wrong.py")]) == 1
    assert "could not be read: syntax error in line" in capsys.readouterr().out

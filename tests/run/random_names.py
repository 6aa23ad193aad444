"""Programs of random names of TensorFlow 1.15, and what is said of each name in them.

Each program has functions `asks_0`, `asks_1` and so on. Each asks for one name.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fork_server import ForkServer
from launching import launch_fork

from hookbridge.old_programs.rewriting import file_rewrites
from hookbridge.old_programs.scanning import diagnosis
from hookbridge.tf1_names.installed_names import missing
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target, table

NUM_NAMES = 150
# File -> the words that run it.
LAYOUTS = {
    "old.py": ["old.py"],
    "test_old.py": ["-m", "pytest", "-sq", "-p", "no:cacheprovider", "test_old.py"],
    "pkg/inside/old.py": ["-m", "pkg.inside.old"],
    "old.ipynb": ["old.ipynb"],
}
# A sample of what private modules of TensorFlow 1.15.5 define: `{module: names}`. Of
# modules in C++ only an import tells what they have today: they are left out.
PRIVATE = json.loads(
    (Path(__file__).with_name("data") / "private_names_1_15.json").read_text("utf-8")
)
# How a program may name what `{0}` has by the name `{1}`; `{2}` is the module `{0}`.
_PUBLIC_FORMS = ("return {0}.{1}", "module = {0}\nreturn module.{1}")
_BY_WHOLE_NAME = "import {2}\nreturn {2}.{1}"
# Packages that take such names away once they are imported.
_HIDING = re.compile(r"tensorflow\.python\.(autograph|data\.experimental|debug)\b")
_FORMS = (
    "import {2} as module\nreturn module.{1}",
    "from {2} import {1} as other\nreturn other",
    "try:\n    from {2} import {1} as other\n"
    "except ImportError:\n    other = None\nreturn other",
)
# These ask a module whether it has the name.
_PUBLIC_QUESTIONS = (
    'return {0}.{1} if hasattr({0}, "{1}") else None',
    "try:\n    return {0}.{1}\nexcept AttributeError:\n    return None",
)
_PRIVATE_QUESTIONS = (
    'import {2} as module\nreturn module.{1} if hasattr(module, "{1}") else None',
    "import {2} as module\n"
    "try:\n    return module.{1}\nexcept AttributeError:\n    return None",
)
# Prints the numbers of the functions whose names are gone.
_ASKING = """
def test_names():
    import json
    gone = []
    for name, function in list(globals().items()):
        if name.startswith("asks_"):
            try:
                is_gone = type(function()).__name__ == "Removed"
            except Exception:
                is_gone = True
            gone += [int(name[5:])] * is_gone
    print("\\nGONE", json.dumps(gone))

if __name__ == "__main__":
    test_names()
"""


def program(seed: int) -> str:
    """A program of random names of TensorFlow 1.15: public, of contrib, and private."""
    chance = random.Random(seed)
    lines = ["import tensorflow as tf", "tf.placeholder"]
    for number in range(NUM_NAMES):
        owner, name = chance.choice(chance.choice(_KINDS))
        is_private = owner.startswith("tensorflow.")
        forms = () if is_private else _PUBLIC_FORMS
        questions = _PRIVATE_QUESTIONS if is_private else _PUBLIC_QUESTIONS
        # `doctor` leaves a removed module to a person, where a program asks it, too.
        asked = () if _is_removed(owner) else questions
        whole = () if _HIDING.match(owner) else (_BY_WHOLE_NAME,)
        form = chance.choice((*forms, *whole, *_FORMS, *asked))
        module = re.sub(r"^tf\b", "tensorflow", owner)
        body = form.format(owner, name, module).replace("\n", "\n    ")
        # Of some modules only an import tells what names they have, see `ModuleNames`.
        if is_private and not missing(f"{owner}.{name}").is_certain:
            body = "pass"
        lines.append(f"def asks_{number}():\n    {body}")
    return "\n".join(lines) + "\n" + _ASKING


def differences(
    seed: int, folder: Path, launcher: ForkServer, plain: ForkServer
) -> dict[str, list[str]]:
    """The functions of a program on which run, doctor and rewrite do not agree.

    `launcher` runs it by `hookbridge run`, `plain` the rewritten one.
    """
    layout, text = list(LAYOUTS)[seed % len(LAYOUTS)], program(seed)
    file, words = folder / layout, LAYOUTS[layout]
    file.parent.mkdir(parents=True, exist_ok=True)
    is_notebook = file.suffix == ".ipynb"
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": text}
    notebook = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4})
    file.write_text(notebook if is_notebook else text)

    gone = _told_gone(launch_fork(launcher, *words, cwd=folder))
    found = diagnosis.diagnose([file], NEWEST).report.findings
    rewrites = list(file_rewrites.rewrite_files([file]))
    (rewrite,) = (r for r in rewrites if isinstance(r, file_rewrites.FileRewrite))
    list(file_rewrites.write_all([rewrite]))
    todos = rewrite.result.todos
    if is_notebook:
        cells = json.loads(file.read_text())["cells"]
        words = ["-c", "\n".join("".join(cell["source"]) for cell in cells)]
    left = _functions(text, [f.line for f in found if f.person])
    # What only `run` knows is left to a person, too, where a program is rewritten.
    by_run = [f.line for f in found if f.verdict == "manual"]
    unwritten = left | _functions(text, by_run)
    comments = _functions(rewrite.result.source, [todo.line for todo in todos])
    after = _told_gone(plain.run(*words, folder=folder))
    sides = {
        "gone in `run`, but nothing for doctor": gone - left,
        "left by doctor, but there in `run`": left - gone,
        "without a comment in a rewrite": unwritten - comments,
        "nothing for doctor, but a comment": comments - unwritten,
        "gone in a rewritten program without a comment": after - comments,
    }
    bodies = text.split("def asks_")
    return {
        side: [bodies[number + 1] for number in sorted(numbers)]
        for side, numbers in sides.items()
        if numbers
    }


def _functions(text: str, lines: Iterable[int]) -> set[int]:
    """The numbers of the functions in which lines are; lines are counted from 1."""
    split = text.splitlines()
    numbers = set()
    for line in lines:
        above = re.findall(r"^def asks_(\d+)", "\n".join(split[:line]), re.M)
        numbers.add(int(above[-1]) if above else -1)
    return numbers


def _told_gone(done: subprocess.CompletedProcess[str]) -> set[int]:
    """The numbers of the functions whose names were gone when a program ran."""
    assert done.returncode == 0, done.stderr[-1500:] + done.stdout[-500:]
    (line,) = re.findall(r"^GONE (.*)$", done.stdout, re.M)
    return set(json.loads(line))


def _is_removed(owner: str) -> bool:
    outcome = resolve(owner, Target(NEWEST))
    return outcome is not None and outcome.code in ("GONE", "PRIVATE_GONE")


def _public(kind: str, top: str) -> list[tuple[str, str]]:
    return [
        (f"{top}.{module}".rstrip("."), name)
        for module, names in table("public-1.15")[kind].items()
        for name in names
    ]


_KINDS = (
    _public("tf", "tf"),
    _public("contrib", "tf.contrib"),
    _public("imports of contrib", "tf.contrib"),
    [(module, name) for module, names in PRIVATE.items() for name in names],
)

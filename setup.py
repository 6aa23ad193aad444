"""What `pyproject.toml` cannot say: from which folders the package is made."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent

# The link `hookbridge/adapters` leads to `adapters/`. Where it is a folder, setuptools
# needs no map, and type checkers find what an editable install has. A checkout without
# symbolic links has a text file there, and needs the map.
MAP = {"hookbridge.adapters": "adapters"}
PACKAGE_DIR = {"": "."} if (HERE / "hookbridge" / "adapters").is_dir() else MAP

# Found below both folders: a search would not follow the link.
PACKAGES = [
    *(p for p in find_packages(include=["hookbridge*"]) if ".adapters" not in p),
    "hookbridge.adapters",
    *(f"hookbridge.adapters.{name}" for name in find_packages("adapters")),
]

# Files of a checkout -> where a wheel has them, and where `of_wheel` finds them.
FILES = {
    ("docs", "**/*.md"): "hookbridge/cli/pages",
    ("examples", "digits_in_both_loops.py"): "hookbridge/jobs/demo",
    ("examples/data", "**/*.*"): "hookbridge/jobs/demo/data",
}


def readme_for_an_index() -> str:
    """Return the README without what leads nowhere on a package index.

    Pictures and links that are relative need the files beside the README: a picture is
    left out, and of a link its text stays.
    """
    text = (HERE / "README.md").read_text("utf-8")
    text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", text)
    return re.sub(r"\[([^\]\n]*)\]\((?!https?:)[^)\s]*\)", r"\1", text)


class BuildWithFiles(build_py):
    """Adds the pages and the demo's files to a wheel; an editable install has them."""

    def run(self) -> None:
        super().run()
        for (folder, pattern), target in FILES.items():
            for file in () if self.editable_mode else (HERE / folder).glob(pattern):
                place = Path(self.build_lib, target, file.relative_to(HERE / folder))
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)


setup(
    packages=PACKAGES,
    package_dir=PACKAGE_DIR,
    cmdclass={"build_py": BuildWithFiles},
    long_description=readme_for_an_index(),
    long_description_content_type="text/markdown",
)

"""`python tests/report/report_pictures.py` makes the pictures of docs/reports.md.

It trains the demo, and opens its report and TensorBoard in Chromium.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from browser import Page, open_page

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
# Older TensorBoards import `pkg_resources`, which newer setuptools no longer have.
_TENSORBOARD = importlib.metadata.version("tensorboard").split(".")
TENSORBOARD_WORKS = importlib.util.find_spec("pkg_resources") is not None or (
    tuple(map(int, _TENSORBOARD[:2])) >= (2, 20)
)
_ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


@contextlib.contextmanager
def tensorboard(directory: Path) -> Iterator[str]:
    """The address of a TensorBoard over a directory, for as long as it is open."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(directory)]
    with subprocess.Popen(
        [*command, "--host=127.0.0.1", "--port=0", "--load_fast=false"],
        env=_ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = []
        try:
            for line in process.stderr:
                said.append(line)
                if found := re.search(r"http://127\S+", line):
                    yield found[0]
                    return
            raise RuntimeError(f"TensorBoard did not start: {''.join(said)}")
        finally:
            process.terminate()


def open_tensorboard(address: str, picture: Path) -> Page:
    """Opens the charts of loss and accuracy, again while they are not drawn yet."""
    for _ in range(10):
        page = open_page(
            f"{address}?runFilter=tensorboard&tagFilter=epoch_(loss|acc)&smoothing=0"
            "&darkMode=false#timeseries",
            picture=picture,
            size=(1400, 640),
            waiting_secs=60,
        )
        if lines_in(page) >= 8:  # two charts: training and validation of both loops
            break
    return page


def lines_in(page: Page) -> int:
    """How many curves TensorBoard has drawn on a page."""
    return len(re.findall(r'<path d="M[-\d.]+,[-\d.]+L', page.dom))


def part_of(report: Path, anchor: str) -> Path:
    """The report from a heading on: the browser pictures only the top of a page."""
    style = f"<style>body > :not(#{anchor}, #{anchor} ~ *) {{ display: none }}</style>"
    path = report.with_name(f"{anchor}.html")
    path.write_text(report.read_text("utf-8") + style, encoding="utf-8")
    return path


def main() -> None:
    """Writes the pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "hookbridge", "demo", "--local"]
        subprocess.run(
            [*command, f"--model_dir={run}"], cwd=ROOT, env=_ENVIRONMENT, check=True
        )
        report = run / "report.html"
        open_page(report.as_uri(), picture=PICTURES / "curves.png", size=(1000, 960))
        open_page(
            part_of(report, "order").as_uri(),
            picture=PICTURES / "events.png",
            size=(1000, 1100),
            dark=True,
        )
        with tensorboard(run) as address:
            open_tensorboard(address, PICTURES / "tensorboard.png")


if __name__ == "__main__":
    main()

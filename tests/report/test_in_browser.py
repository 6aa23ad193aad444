"""What a person sees: the demo's report and TensorBoard, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import NOT_HERE, chromium, open_page
from fork_server import ForkServer
from report_pictures import TENSORBOARD_WORKS, lines_in, open_tensorboard, tensorboard

pytestmark = [
    pytest.mark.slow,
    pytest.mark.exhaustive,
    pytest.mark.skipif(chromium() is None, reason=NOT_HERE),
]
ONE_TENSORFLOW = True
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def demo_dir(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "run"
    words = ("demo", "--local", "--epochs=2", f"--model_dir={folder}")
    done = fork_server.run("-m", "hookbridge", *words)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_browser_of_these_tests_tells_errors_and_requests(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        '<title>Bad</title><img src="http://127.0.0.1:9/x.png"><script>nope()</script>'
    )
    found = open_page(page.as_uri())
    assert found.title == "Bad"
    assert found.requests == ["http://127.0.0.1:9/x.png"]
    assert any("nope is not defined" in line for line in found.console)


def test_the_report_shows_both_loops_and_asks_for_nothing(
    subtests: pytest.Subtests, demo_dir: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "report.png"
    report = (demo_dir / "report.html").as_uri()
    page = open_page(report, picture=picture, size=(1280, 2200), dark=True)
    assert page.title == "One list of guests in both training loops"
    assert (page.console, page.requests) == ([], [])
    assert "<script" not in page.dom and "http" not in page.dom
    charts = re.findall(r"<figure>.*?</figure>", page.dom, re.S)
    names = [re.findall(r'aria-label="([^"]*)"', chart)[0] for chart in charts]
    assert {"loss", "accuracy", "val_loss", "global_step/sec"} <= set(names)
    for name, chart in zip(names, charts, strict=True):
        assert chart.count("<polyline") == 2, name  # one for each loop
    for anchor in ("curves", "order", "timelines", "events", "costs", "versions"):
        with subtests.test(str(anchor)):
            assert f'id="{anchor}"' in page.dom
    for guest in ("ActivityHook", "EpochLines"):
        with subtests.test(str(guest)):
            # Once in the order of events and once over time, for each loop.
            assert page.dom.count(f">{guest}</text>") == 4
    assert "Every guest saw the documented events everywhere." in page.dom
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.skipif(
    not TENSORBOARD_WORKS, reason="this TensorBoard asks for an older setuptools"
)
def test_tensorboard_draws_both_loops_side_by_side(
    subtests: pytest.Subtests, demo_dir: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "tensorboard.png"
    with tensorboard(demo_dir) as address:
        page = open_tensorboard(address, picture)
    assert lines_in(page) >= 8
    for loop in ("session", "fit"):
        with subtests.test(str(loop)):
            for part in ("train", "validation"):
                assert f"{loop}/tensorboard/{part}" in page.dom
    assert "epoch_loss" in page.dom and "epoch_accuracy" in page.dom
    assert picture.read_bytes().startswith(PNG)

"""The page of a run: its curves come from the files that the run wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tensorflow as tf

from hookbridge.insight.report import charts
from hookbridge.insight.report.run_report import Run, RunReport, as_html
from hookbridge.insight.report.scalars import Curve, event_scalars, read_curves


def write_run(directory: Path, losses: list[float]) -> None:
    """A CSV log, and event files of TF1 and of TF2."""
    directory.mkdir(parents=True)
    lines = [f"{epoch},{loss},[1 2]" for epoch, loss in enumerate(losses)]
    text = "\n".join(["epoch,loss,vector", *lines])
    (directory / "log.csv").write_text(text + "\n")
    (directory / "other.csv").write_text("name,value\na,1\n")
    writer = tf.summary.create_file_writer(str(directory / "tensorboard"))
    with writer.as_default():
        for epoch, loss in enumerate(losses):
            tf.summary.scalar("epoch_loss", loss, step=epoch)
        tf.summary.scalar("epoch_loss", float("nan"), step=len(losses))
        tf.summary.text("note", "no number", step=0)
    writer.close()
    with tf.Graph().as_default():
        old = tf.compat.v1.summary.FileWriter(str(directory / "steps"))
        value = tf.compat.v1.Summary.Value(tag="global_step/sec", simple_value=7.0)
        old.add_summary(tf.compat.v1.Summary(value=[value]), 100)
        old.close()


def test_curves_are_read_from_every_kind_of_file(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [3.0, 2.0])
    curves = read_curves(tmp_path / "run")
    assert curves == {
        Curve("log.csv", "loss", "epoch"): [(0, 3), (1, 2)],
        Curve("steps", "global_step/sec", "step"): [(100, 7)],
        Curve("tensorboard", "epoch_loss", "epoch"): [(0, 3), (1, 2)],
    }


def test_an_event_file_that_is_still_written_is_read_up_to_there(
    tmp_path: Path,
) -> None:
    write_run(tmp_path / "run", [3.0, 2.0])
    (file,) = (tmp_path / "run" / "tensorboard").iterdir()
    whole = list(event_scalars(file))
    assert [step for _, step, _ in whole] == [0, 1, 2]
    written = file.read_bytes()
    found = []
    for length in range(len(written)):
        file.write_bytes(written[:length])
        found.append([step for _, step, _ in event_scalars(file)])
    assert found == sorted(found) and found[0] == [] and found[-1] == [0, 1, 2]


def test_the_curves_of_all_runs_lie_over_each_other(tmp_path: Path) -> None:
    write_run(tmp_path / "session", [3.0, 2.0])
    write_run(tmp_path / "fit", [3.5, 2.5])
    runs = [Run(name, f"<{name}>", tmp_path / name) for name in ("session", "fit")]
    page = as_html(RunReport("A & B", "Sums up.", runs))
    assert "<title>A &amp; B</title>" in page and "&lt;session&gt;" in page
    # The loss is drawn once; the page says that it is in the event files too.
    assert page.count("<figure>") == 2
    assert page.count("<polyline") == 4
    assert "last: session 2, fit 2.5; by epoch, in log.csv, also " in page
    assert "also tensorboard/epoch_loss" in page
    assert "<title>fit: 0, 3.5</title>" in page


def test_nothing_of_a_page_is_cut_on_a_narrow_screen(tmp_path: Path) -> None:
    """Tables scroll in a frame of their own."""
    run = Run("r", "r", tmp_path, facts={"stop step": "2"})
    page = as_html(RunReport("t", "s", [run]))
    assert page.count("<table") == page.count('<div class="scroll"><table') > 0
    assert ".scroll { overflow-x: auto; }" in page


def test_what_was_not_measured_has_no_section(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    run = Run("r", "r", tmp_path)
    bare = as_html(RunReport("t", "s", [run]))
    for anchor in ("curves", "order", "timelines", "events", "costs"):
        with subtests.test(str(anchor)):
            assert f'id="{anchor}"' not in bare


def test_a_curve_that_stays_is_drawn_above_zero() -> None:
    drawn = charts.chart("lr", {"fit": [(0, 0.1), (9, 0.1)]})
    assert ">0</text>" in drawn and ">0.1</text>" in drawn
    (path,) = re.findall(r'points="(.*?)"', drawn)
    bottom = charts.chart("lr", {"fit": [(0, 0.0), (9, 0.0)]})
    assert path not in bottom


def test_a_long_curve_is_thinned_and_keeps_its_end() -> None:
    points = [(float(i), 0.0) for i in range(10_001)]
    few = charts.thin_out(points)
    assert len(few) <= 402 and few[0] == points[0] and few[-1] == points[-1]
    assert charts.thin_out(points[:3]) == points[:3]
    assert charts.ticks(0, 22, whole=True) == [0, 10, 20, 30]  # round numbers


def test_a_curve_is_broad_only_below_another_one() -> None:
    points = [(0.0, 1.0), (9.0, 2.0)]
    assert "broad" not in charts.chart("loss", {"fit": points}) + charts.legend(["fit"])
    loops = {"fit": points, "session": points}
    assert charts.chart("loss", loops).count('class="curve a broad"') == 1
    assert charts.legend(list(loops)).count("broad") == 1

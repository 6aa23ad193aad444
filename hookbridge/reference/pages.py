"""A comparison as a page: the curves of both, and the differences of each step."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import not_writable
from hookbridge.insight.report import charts
from hookbridge.insight.report.page import page, table, words
from hookbridge.insight.report.scalars import Points
from hookbridge.reference.comparison import Comparison, difference_in_words
from hookbridge.reference.recordings.measures import Layer, status
from hookbridge.reference.recordings.recording_files import Recording

_DRAWN = ("forward", "gradients", "update", "state")
_LEAST = -6.0  # of the logarithms: a millionth of the tolerance, or no difference


def write_page(result: Comparison, file: str | Path) -> None:
    """Write the page of a comparison, which needs no other file and no network.

    Args:
      result: the comparison.
      file: the path of the page; an existing file is replaced.
    """
    text = page(_title(result), _body(result))
    Path(file).write_text(text, encoding="utf-8")


def check_page(file: str) -> None:
    """Raise `errors.UnwritableError` unless the page can be written there."""
    folder = os.path.dirname(os.path.abspath(file))
    why = ""
    if not file or os.path.isdir(file):
        why = "is a folder" if file else "is empty"
    elif not os.path.isdir(folder):
        why = f"cannot be written: {folder!r} is not a folder"
    elif problem := not_writable(folder):
        why = f"cannot be written ({problem[1]})"
    elif os.path.exists(file) and not os.access(file, os.W_OK):
        why = "cannot be written (permission denied)"
    if why:
        raise errors.UnwritableError(
            f"Received --page={file!r}, which {why}; expected an HTML file in a folder "
            "that exists. Make the folder, or give another file."
        )


def _title(result: Comparison) -> str:
    """Return the names of both folders, or their paths if the names are equal."""
    both = result.port.folder, result.reference.folder
    names = [folder.absolute().name for folder in both]
    if len(set(names)) == 1:
        names = [str(folder) for folder in both]
    return "{} compared with {}".format(*names)


def _body(result: Comparison) -> Iterator[str]:
    """Yield the page: verdict, layers, curves, differences, variables."""
    yield from _verdict(result)
    yield from _layers(result)
    yield from _curves(result)
    yield from _differences(result)
    yield from _variables(result)


def _verdict(result: Comparison) -> Iterator[str]:
    """Yield the first difference, what may have made it, and what was not compared."""
    first = result.first
    verdict = "Nothing that was compared differs."
    if first is not None:
        verdict = f"First difference: {result.layer}, {difference_in_words(first)}."
    yield f"<p><b>{words(verdict)}</b></p>"
    lines = [*(f"cause: {cause}" for cause in result.causes), *result.notes]
    yield "".join(f"<p>{words(line)}</p>" for line in lines)


def _layers(result: Comparison) -> Iterator[str]:
    """Yield a row for each layer with its largest difference."""
    rows = [
        [
            layer.name,
            status(layer),
            layer.why_not or (difference_in_words(layer.first or _worst(layer))),
        ]
        for layer in result.layers
    ]
    yield table(rows, ["layer", "", "largest difference"])


def _curves(result: Comparison) -> Iterator[str]:
    """Yield loss and learning rate of both."""
    yield '<h2 id="curves">Curves</h2>' + charts.legend(["reference", "port"])
    both = {"reference": result.reference, "port": result.port}
    rates = {
        who: _points(recording, "learning_rate") for who, recording in both.items()
    }
    losses = {who: _points(recording, "loss") for who, recording in both.items()}
    changes = any(len({y for _, y in points}) > 1 for points in rates.values())
    yield '<div class="charts">'
    if any(losses.values()):
        yield charts.chart("loss", losses, "by step")
    if changes:
        yield charts.chart("learning_rate", rates, "by step")
    yield "</div>"
    constant = [
        f"{charts.short_number(p[0][1])} in the {w}" for w, p in rates.items() if p
    ]
    if constant and not changes:
        yield f"<p>learning_rate, the same in every step: {', '.join(constant)}</p>"


def _differences(result: Comparison) -> Iterator[str]:
    """Yield the largest difference of each step, layer by layer."""
    yield '<h2 id="differences">Differences</h2>' + charts.legend(_DRAWN)
    yield "<p>Largest difference in each step, in powers of ten of the tolerance; above"
    yield ' 0 means "different".</p>'
    drawn = {layer.name: _logarithms(layer) for layer in result.layers}
    yield '<div class="charts">'
    if any(drawn[name] for name in _DRAWN):
        series = {name: drawn[name] for name in _DRAWN}
        yield charts.chart("log10(difference / tolerance)", series, wide=True)
    yield "</div>"


def _variables(result: Comparison) -> Iterator[str]:
    """Yield which variables were compared with each other, and which with none."""
    pairs = [[name, partner] for name, partner in result.matching.pairs.items()]
    pairs += [[name, "(nothing)"] for name in result.matching.unmatched]
    pairs += [["(nothing)", name] for name in result.matching.unmatched_port]
    yield '<h2 id="variables">Variables</h2>'
    yield table(pairs, ["reference", "port"])


def _worst(layer: Layer) -> Any:
    return max(layer.measures, key=lambda m: m.difference / m.tolerance)


def _points(recording: Recording, key: str) -> Points:
    values = [(step.number, step.numbers.get(key)) for step in recording.steps]
    return [(float(x), y) for x, y in values if y is not None and math.isfinite(y)]


def _logarithms(layer: Layer) -> Points:
    """Return `(step, logarithm)` of the largest difference of each step."""
    worst: dict[int, float] = {}
    for measure in layer.measures:
        part = measure.difference / measure.tolerance
        worst[measure.step] = max(worst.get(measure.step, 0.0), part)
    return [
        (float(step), max(_LEAST, math.log10(part)) if part else _LEAST)
        for step, part in worst.items()
        if math.isfinite(part)
    ]

"""Every refusal names the page that tells more, and the page has that heading."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest
import tensorflow as tf
from source_trees import sources

from hookbridge import errors
from hookbridge.adapters.guests import keras_rows
from hookbridge.adapters.guests.guest_record import record_of
from hookbridge.adapters.hooked_loop import refusals
from hookbridge.adapters.parameter_server import ps_refusals
from hookbridge.cli import main
from hookbridge.docs_pages import PAGES, anchor, pointer

ONE_TENSORFLOW = True
REFUSALS = {
    "EpochsUndefinedError",
    "LiveModelError",
    "LiveSessionError",
    "NeverCalledError",
    "RefusedError",
    "UnknownMetricError",
}


def test_the_pages_have_the_headings(repo_root: Path) -> None:
    for place in sorted(set(PAGES.values())):
        page, _, heading = place.partition("#")
        text = (repo_root / page).read_text("utf-8")
        anchors = [anchor(found) for found in re.findall(r"^#+ (.*)$", text, re.M)]
        assert not heading or heading in anchors, place


def test_the_command_of_a_message_prints_the_section(
    subtests: pytest.Subtests,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for row, place in PAGES.items():
        with subtests.test(str(row)):
            (command,) = re.findall("`hookbridge (.*)`", pointer(row))
            assert main(command.split()) == 0, row
            first, *rest = capsys.readouterr().out.splitlines()
            heading = place.partition("#")[2]
            assert first.startswith("#") and len(rest) > 2, row
            if heading:
                depth = len(first) - len(first.lstrip("#"))
                assert anchor(first) == heading
                assert not [
                    line for line in rest if re.match(rf"#{{1,{depth}}} ", line)
                ]


def test_a_page_is_named_in_any_way(
    subtests: pytest.Subtests, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = set()
    for place in ("towers", "towers.md", "docs/towers.md"):
        with subtests.test(str(place)):
            assert main(["docs", place]) == 0
            texts.add(capsys.readouterr().out)
    assert len(texts) == 1
    assert main(["docs"]) == 0
    assert "reference/errors.md" in capsys.readouterr().out
    for place, said in (("tower", "towers.md"), ("towers#gpu", "gpus")):
        with subtests.test(str(place)):
            assert main(["docs", place]) == 2
            assert said in capsys.readouterr().err


def test_every_refusal_sees_a_page() -> None:
    used = set()
    without = []
    for path, nodes in sources().items():
        for call in nodes:
            if not isinstance(call, ast.Call):
                continue
            rows = [k.value for k in call.keywords if k.arg == "see"]
            used |= {row.value for row in rows if isinstance(row, ast.Constant)}
            name = ast.unparse(call.func).removeprefix("errors.")
            if name in REFUSALS and not rows:
                without.append(f"{path}:{call.lineno}")
    assert not without
    assert used == set(PAGES)


def _section(row: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command in the messages of a row prints, in one line."""
    (command,) = re.findall("`hookbridge (.*)`", pointer(row))
    assert main(command.split()) == 0
    return " ".join(capsys.readouterr().out.split())


def test_where_an_error_says_refused_its_page_says_refused(
    subtests: pytest.Subtests, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {
        keyword.value.value
        for nodes in sources().values()
        for call in nodes
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).removeprefix("errors.") == "RefusedError"
        for keyword in call.keywords
        if keyword.arg == "see" and isinstance(keyword.value, ast.Constant)
    }
    assert len(rows) > 8
    for row in sorted(map(str, rows)):
        with subtests.test(row):
            assert re.search(r"\brefuse[ds]?\b", _section(row, capsys), re.I)


REFUSED_CALLBACKS = {
    name: row.refused_in_session
    for name, row in keras_rows.ROWS.items()
    if row.refused_in_session is not None
}


@pytest.mark.parametrize(
    ("row", "table"),
    [
        ("hook in fit", refusals.REFUSED_HOOKS),
        ("callback in a session", REFUSED_CALLBACKS),
    ],
)
def test_the_page_has_the_reason_and_the_way_out_of_each_refused_guest(
    row: str,
    table: dict[str, tuple[str, str]],
    subtests: pytest.Subtests,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = _section(row, capsys)
    for name, (reason, way_out) in table.items():
        with subtests.test(name):
            assert f"{reason}. Instead, {way_out}." in page


def test_the_page_of_a_refused_hook_says_that_it_is_refused(
    subtests: pytest.Subtests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = tf.compat.v1.train
    with tf.Graph().as_default():
        profiler = train.ProfilerHook(save_steps=1, output_dir=str(tmp_path))
    waiter = record_of(train.GlobalStepWaiterHook(5))
    for name, check, arguments in (
        ("ProfilerHook", ps_refusals.check_hook, (profiler,)),
        ("GlobalStepWaiterHook", refusals.check_start, (waiter, 0)),
    ):
        with subtests.test(str(name)):
            with pytest.raises(errors.RefusedError) as caught:
                check(*arguments)
            (command,) = re.findall("See `hookbridge (.*)`", str(caught.value))
            assert main(command.split()) == 0
            page = " ".join(capsys.readouterr().out.split())
            told = (rf"\brefused\b[^.]*`{name}`", rf"`{name}` is refused")
            assert any(re.search(each, page, re.I) for each in told), name


def test_the_message_names_the_page_once_even_in_another_process() -> None:
    error = errors.RefusedError("It cannot run. Leave it out.", see="towers")
    assert str(error) == f"It cannot run. Leave it out. {pointer('towers')}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

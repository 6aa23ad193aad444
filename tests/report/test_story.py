"""The order of events, in which repetitions are told once, and its pictures."""

from __future__ import annotations

import pytest

from hookbridge.insight.report import event_pictures
from hookbridge.insight.report.account import Account, EventCall, GuestFacts
from hookbridge.insight.report.story import Column, Item, Repeated, story

ONE_TENSORFLOW = True
HOOK, CALLBACK = 0, 1


def events(*names: str) -> list[EventCall]:
    """Events of a hook and a callback, one each millisecond."""
    return [
        EventCall(
            CALLBACK if name.startswith(("on_", "set_")) else HOOK, name, None, i / 1e3
        )
        for i, name in enumerate(names)
    ]


def event_names(items: list[Item]) -> list[object]:
    """The names of the events; `(times, [...])` for a repetition."""
    return [
        item.event
        if isinstance(item, Column)
        else (item.times, event_names([*item.items]))
        for item in items
    ]


STEP = ("before_run", "on_train_batch_begin", "after_run", "on_train_batch_end")
EPOCH = ("on_epoch_begin", *STEP, *STEP, *STEP, "on_epoch_end")


def test_steps_then_epochs_are_told_once() -> None:
    calls = events("begin", *EPOCH, *EPOCH, "end")
    assert event_names(story(calls)) == [
        "begin",
        (2, ["on_epoch_begin", (3, list(STEP)), "on_epoch_end"]),
        "end",
    ]


def test_steps_and_epochs_are_told_from_their_begin() -> None:
    """The first step of a session lacks its begin there; that of `fit` has more."""
    calls = events("on_epoch_begin", *STEP[1:], *STEP * 9)
    assert event_names(story(calls)) == ["on_epoch_begin", *STEP[1:], (9, list(STEP))]
    step = ["on_train_batch_begin", "before_run", "after_run", "on_train_batch_end"]
    first = ["on_epoch_begin", step[0], "begin", *step[1:]]
    epoch = ["on_epoch_begin", *step * 5, "on_epoch_end"]
    calls = events(*first, *step * 4, "on_epoch_end", *epoch * 2, "end")
    assert event_names(story(calls)) == [
        *(*first, (4, step), "on_epoch_end"),
        *((2, ["on_epoch_begin", (5, step), "on_epoch_end"]), "end"),
    ]


def test_late_steps_repeat_too() -> None:
    late = ("on_train_batch_begin", *("on_train_batch_begin", "on_train_batch_end") * 5)
    calls = events(*late, "on_train_batch_end")
    told_once = story(calls)
    assert Repeated in {type(item) for item in told_once}
    assert len(told_once) < 5


def test_the_same_event_of_several_guests_is_one_column() -> None:
    names = ("set_model", "set_params", "set_model", "set_params", "on_train_begin")
    calls = [
        EventCall(guest, name, None, 0.0)
        for guest, name in zip((0, 0, 1, 1, 0), names, strict=True)
    ]
    both, first = frozenset((0, 1)), frozenset((0,))
    assert story(calls) == [
        Column("set_model", both),
        Column("set_params", both),
        Column("on_train_begin", first),
    ]


def account(calls: list[EventCall]) -> Account:
    guests = {
        "H": GuestFacts("hook", "all", True, [], []),
        "C": GuestFacts("callback", "chief", True, [], []),
    }
    return Account("p", True, {}, guests, 5.0, calls, {})


def test_pictures_hold_every_guest_event_and_number(subtests: pytest.Subtests) -> None:
    process = account(events("begin", *EPOCH, *EPOCH, "end"))
    order = event_pictures.order_picture(process)
    for text in ("H", "C", "begin", *EPOCH, "end", "x 3", "x 2"):
        with subtests.test(str(text)):
            assert f">{text}</text>" in order
    assert order.count("<circle") == 2 + len(set(EPOCH))
    over_time = event_pictures.timeline(process, 4.0, 6.0)
    assert over_time.count('class="mark"') == 2  # `begin` and `end`
    assert over_time.count('class="epoch"') == 2
    assert over_time.count('class="band"') == 4  # far apart on this scale
    # A guest without events keeps its row.
    assert ">C</text>" in event_pictures.order_picture(account([]))
    assert ">C</text>" in event_pictures.timeline(account([]), 0, 0)

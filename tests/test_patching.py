"""Methods that are set on single objects and classes, and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from hookbridge.ground.patching import InstanceMethods, patched


class Base:
    def say(self) -> str:
        return "base"


class Tracks(Base):
    def __setattr__(self, name: str, value: Any) -> None:
        raise AssertionError("what is set from outside is not tracked")


class Slots:
    __slots__ = ()


def test_an_object_has_its_own_method_back() -> None:
    tracks = Tracks()
    with patched(tracks, say=lambda: "patched"):
        assert tracks.say() == "patched"
    assert tracks.say() == "base" and not vars(tracks)


def test_what_was_set_before_comes_back() -> None:
    base = Base()
    vars(base)["say"] = first = lambda: None
    with pytest.raises(KeyError), patched(base, say=len, more=len):
        raise KeyError
    assert vars(base) == {"say": first}


def test_what_somebody_sets_on_top_stays() -> None:
    base = Base()
    methods = InstanceMethods(base, {"say": lambda: "ours"})
    methods.install()
    ours = base.say
    vars(base)["say"] = lambda: "theirs, " + ours()
    methods.remove()
    assert base.say() == "theirs, ours"


def test_a_class_is_patched_for_its_objects() -> None:
    class Child(Base):
        pass

    with patched(Child, say=lambda self: "patched"):
        assert Child().say() == "patched" and Base().say() == "base"
    assert Child().say() == "base" and "say" not in vars(Child)


def test_an_object_without_a_dict_takes_none() -> None:
    assert not InstanceMethods(Slots(), {"say": len}).install()

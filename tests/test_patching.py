"""Methods that are set on single objects and classes, and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from hookbridge.ground.patching import Patches, patched, wrap


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
    methods = Patches(base, {"say": lambda: "ours"})
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
    assert not Patches(Slots(), {"say": len}).install()


def test_what_is_called_around_a_method_gets_every_argument_by_name() -> None:
    class Child(Base):
        def add(self, plain: int, call: int) -> int:
            return plain + call

    wrap(Child, add=lambda plain, /, self, **named: 10 * plain(self, **named))
    assert Child().add(plain=1, call=2) == 30
    with pytest.raises(TypeError, match="takes `plain` by name too; put `/` behind it"):
        wrap(Child, add=lambda plain, *args: None)

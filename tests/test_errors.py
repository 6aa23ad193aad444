"""The exception tree: one base, a builtin for each, and readable messages."""

from __future__ import annotations

import builtins
import inspect

import pytest

from hookbridge import errors

ALL = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.HookBridgeError) and cls is not errors.HookBridgeError
]


@pytest.mark.parametrize("cls", ALL)
def test_every_error_is_also_a_builtin(cls: type[Exception]) -> None:
    own = [
        base
        for base in cls.__mro__
        if getattr(builtins, base.__name__, None) is base
        and base not in (Exception, BaseException, object)
    ]
    assert own, f"{cls.__name__} derives from no builtin error"


@pytest.mark.parametrize("cls", ALL)
def test_every_error_says_when_it_is_raised(cls: type[Exception]) -> None:
    assert (cls.__doc__ or "").startswith("Raised ")


@pytest.mark.parametrize("cls", ALL)
def test_message_is_shown_as_given(cls: type[Exception]) -> None:
    assert str(cls("received `x`; expected `y`")) == "received `x`; expected `y`"


def test_package_raises_no_error_class_of_its_own_elsewhere() -> None:
    assert len({cls.__name__ for cls in ALL}) == len(ALL) > 5

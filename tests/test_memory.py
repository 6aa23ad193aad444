"""What is remembered of objects of others lives as long as they do."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from hookbridge.ground import memory
from hookbridge.ground.memory import Fact

ONE_TENSORFLOW = True


class Guest:
    """Counts as equal to all others."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def step() -> Fact[int]:
    return Fact[int]("guest", "last step")


def test_each_object_has_its_own_values(step: Fact[int]) -> None:
    first, second = Guest(), Guest()
    step.put(first, 1)
    assert (step.get(first), step.get(second)) == (1, None)
    step.put(first, 2)
    assert step.get_or_put(first, lambda: 3) == 2
    assert step.get_or_put(second, lambda: 3) == 3
    assert sorted(step.values()) == [2, 3]
    assert step.pop(first) == 2
    assert step.pop(first) is None


def test_a_fact_ends_with_its_object(step: Fact[int]) -> None:
    other = Fact[str]("guest", "folder")
    guest = Guest()
    step.put(guest, 1)
    other.put(guest, "runs")
    assert (step.get(guest), other.get(guest)) == (1, "runs")
    del guest
    gc.collect()
    assert not step.values() and not other.values()


@pytest.mark.parametrize("item", [object(), 3, "text"])
def test_nothing_is_remembered_of_what_cannot_be_referred_to(
    step: Fact[int], item: Any
) -> None:
    step.put(item, 1)
    assert step.get(item) is None
    assert not step.values()


def test_all_can_be_forgotten(step: Fact[int]) -> None:
    guest = Guest()
    step.put(guest, 7)
    memory.forget()
    assert step.get(guest) is None and not step.values()

"""What `random` took until Python 3.10, and takes again."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Set
from typing import Any, TypeAlias

from hookbridge.ground.patching import InstanceMethods

_Method: TypeAlias = Callable[..., Any]
_SEEDS = (type(None), int, float, str, bytes, bytearray)


def bring_back() -> None:
    """Let sets be sampled, lists be shuffled by a function, and anything be a seed."""
    kind = random.Random
    makers = {"sample": _of_sets, "seed": _of_any, "shuffle": _by_a_function}
    methods = {
        name: functools.wraps(getattr(kind, name))(make(getattr(kind, name)))
        for name, make in makers.items()
    }
    InstanceMethods(kind, methods).install()
    # The functions of the module are the methods of one hidden generator.
    owner = getattr(random.random, "__self__", None)
    InstanceMethods(random, {name: getattr(owner, name) for name in makers}).install()


def _of_sets(plain: _Method) -> _Method:
    def sample(self: Any, population: Any, *args: Any, **named: Any) -> Any:
        if isinstance(population, Set):
            population = tuple(population)
        return plain(self, population, *args, **named)

    return sample


def _of_any(plain: _Method) -> _Method:
    def seed(self: Any, a: Any = None, version: int = 2) -> None:
        plain(self, a if isinstance(a, _SEEDS) else hash(a) % 2**64, version)

    return seed


def _by_a_function(plain: _Method) -> _Method:
    def shuffle(self: Any, x: Any, random: Callable[[], float] | None = None) -> None:
        if random is None:
            plain(self, x)
            return
        for index in reversed(range(1, len(x))):
            partner = int(random() * (index + 1))
            x[index], x[partner] = x[partner], x[index]

    return shuffle

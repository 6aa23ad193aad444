"""What `random` took until Python 3.10, and takes again."""

from __future__ import annotations

import random
from collections.abc import Callable, Set
from typing import Any, TypeAlias

_Method: TypeAlias = Callable[..., Any]
_SEEDS = (type(None), int, float, str, bytes, bytearray)


def of_generator(owner: random.Random, name: str) -> Any:
    """Return a method of a generator; those in `MAKERS` take what they took."""
    plain = getattr(owner, name)
    is_plain = getattr(type(owner), name, None) is getattr(random.Random, name)
    return MAKERS[name](plain) if is_plain and name in MAKERS else plain


def _of_sets(plain: _Method) -> _Method:
    def sample(population: Any, *args: Any, **named: Any) -> Any:
        if isinstance(population, Set):
            population = tuple(population)
        return plain(population, *args, **named)

    return sample


def _of_any(plain: _Method) -> _Method:
    def seed(a: Any = None, version: int = 2) -> None:
        plain(a if isinstance(a, _SEEDS) else hash(a) % 2**64, version)

    return seed


def _by_a_function(plain: _Method) -> _Method:
    def shuffle(x: Any, random: Callable[[], float] | None = None) -> None:
        if random is None:
            plain(x)
            return
        for index in reversed(range(1, len(x))):
            partner = int(random() * (index + 1))
            x[index], x[partner] = x[partner], x[index]

    return shuffle


# Method of `random.Random`, and function of `random` -> what makes of it the one that
# lets sets be sampled, lists be shuffled by a function, and anything be a seed.
MAKERS: dict[str, Callable[[_Method], _Method]] = {
    "sample": _of_sets,
    "seed": _of_any,
    "shuffle": _by_a_function,
}

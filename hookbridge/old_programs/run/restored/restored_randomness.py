"""What `random` took until Python 3.10, and takes again."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Set
from typing import Any, TypeAlias

_Method: TypeAlias = Callable[..., Any]
_SEEDS = (type(None), int, float, str, bytes, bytearray)


def of_generator(owner: random.Random, name: str) -> Any:
    """Return a method of a generator; those in `OLD_CALLS` take what they took."""
    plain, old_call = getattr(owner, name), OLD_CALLS.get(name)
    is_plain = getattr(type(owner), name, None) is getattr(random.Random, name)
    return functools.partial(old_call, plain) if is_plain and old_call else plain


def _of_sets(plain: _Method, /, population: Any, *args: Any, **named: Any) -> Any:
    """Call `sample`, which takes sets too."""
    if isinstance(population, Set):
        population = tuple(population)
    return plain(population, *args, **named)


def _of_any(plain: _Method, /, a: Any = None, version: int = 2) -> None:
    """Call `seed`, which takes any object."""
    plain(a if isinstance(a, _SEEDS) else hash(a) % 2**64, version)


def _by_a_function(
    plain: _Method, /, x: Any, random: Callable[[], float] | None = None
) -> None:
    """Call `shuffle`, which takes a function too."""
    if random is None:
        plain(x)
        return
    for index in reversed(range(1, len(x))):
        partner = int(random() * (index + 1))
        x[index], x[partner] = x[partner], x[index]


# Method of `random.Random`, and function of `random` -> what calls it so that sets can
# be sampled, lists be shuffled by a function, and anything be a seed.
OLD_CALLS: dict[str, _Method] = {
    "sample": _of_sets,
    "seed": _of_any,
    "shuffle": _by_a_function,
}

"""Which variable of a port belongs to which recorded one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from hookbridge import errors
from hookbridge.ground.arguments import shown, string_mapping
from hookbridge.ground.groups import grouped
from hookbridge.ground.texts.nearest_names import nearest

Shapes = Mapping[str, tuple[int, ...]]
_NUMBER = re.compile(r"_\d+(?=/|$)")


class Matching(NamedTuple):
    """What `match` returns.

    Attributes:
      pairs: `{recorded name: name in the port}`.
      unmatched: recorded names without a partner.
      unmatched_port: names of the port without a partner.
    """

    pairs: Mapping[str, str]
    unmatched: tuple[str, ...]
    unmatched_port: tuple[str, ...]


def _bare(name: str) -> str:
    return name.partition(":")[0]


def _without_model(name: str) -> str:
    return _bare(name).partition("/")[2] or _bare(name)


def _without_numbers(name: str) -> str:
    return _NUMBER.sub("", _bare(name))


def _short(name: str) -> str:
    return _without_model(_without_numbers(name))


# The rules in their order: what is equal of a recorded name and of one of the port.
# They are those of `checkpoints`: with and without the name of the model, then without
# the numbers by which Keras and TensorFlow keep names apart.
_Rule = tuple[Callable[[str], str], Callable[[str], str]]
_RULES: tuple[_Rule, ...] = (
    (_bare, _bare),
    (_bare, _without_model),
    (_without_model, _bare),
    (_without_numbers, _without_numbers),
    (_without_numbers, _short),
    (_short, _without_numbers),
    (_short, _short),
)


def match(
    reference: Shapes,
    port: Shapes,
    names: Mapping[str, str] | None,
    *,
    any_order: bool = False,
) -> Matching:
    """Match by `names`, then by the rules for names, then by shape and order.

    With `any_order` also by the same sizes of axes in another order, to name them.
    """
    pairs = string_mapping("names", names)
    _check_direction(pairs, reference, port)
    for name, choice in pairs.items():
        _check(name, reference, "recorded variable")
        _check(choice, port, "variable of the port")
        if list(pairs.values()).count(choice) > 1:
            raise errors.InvalidArgumentError(
                f"Received `names` with `{choice}` for several recorded names; "
                "expected a different variable of the port for each."
            )
    for reference_key, port_key in _RULES:
        left = _by_key(reference_key, _left(reference, pairs))
        right = _by_key(port_key, _left(port, pairs.values()))
        pairs.update({left[key]: right[key] for key in left if key in right})
    orders = (True, False) if any_order else (True,)
    for in_order in orders:
        of_reference, of_port = (
            _by_shape(reference, in_order),
            _by_shape(port, in_order),
        )
        for shape, names_of_shape in of_reference.items():
            left_over = _left(names_of_shape, pairs)
            partners = _left(of_port.get(shape, ()), pairs.values())
            if len(left_over) == len(partners):
                pairs.update(zip(left_over, partners, strict=True))
    return Matching(
        {name: pairs[name] for name in reference if name in pairs},
        tuple(_left(reference, pairs)),
        tuple(_left(port, pairs.values())),
    )


def _check_direction(pairs: Mapping[str, str], reference: Shapes, port: Shapes) -> None:
    """Raise where a dict is turned around."""
    for name, choice in pairs.items():
        if name not in reference and name in port and choice in reference:
            raise errors.InvalidArgumentError(
                f"Received `names` with `{name}` for `{choice}`, the wrong way round; "
                f"expected {{recorded name: name in the port}}, such as "
                f'{{"{choice}": "{name}"}}.'
            )


def _by_key(rule: Callable[[str], str], names: Sequence[str]) -> dict[str, str]:
    """Return the names by what a rule makes of them, if that is unique."""
    keys = [rule(name) for name in names]
    return {k: n for k, n in zip(keys, names, strict=True) if keys.count(k) == 1}


def _by_shape(shapes: Shapes, in_order: bool) -> dict[tuple[int, ...], list[str]]:
    """Return the names by their shapes, or by the sizes of their axes in any order."""
    # An average of a variable has its shape, and the other side need not have one.
    return grouped(
        (shape if in_order else tuple(sorted(shape)), name)
        for name, shape in shapes.items()
        if not _is_part(name, shapes)
    )


def _is_part(name: str, names: Collection[str]) -> bool:
    """Return whether a name is below another variable's, as an average's is."""
    above = _bare(name).rpartition("/")[0]
    return above in names or f"{above}:0" in names


def _left(names: Iterable[str], taken: Collection[str]) -> list[str]:
    return [name for name in names if name not in taken]


def _check(name: object, choices: Shapes, what: str) -> None:
    """Raise unless a name is one of the choices, which are of some kind."""
    if not isinstance(name, str):
        raise errors.InvalidArgumentError(
            f"Received `names` with {shown(name)} of type `{type(name).__name__}`; "
            "expected a dict {recorded name: name in the port}, both strings."
        )
    if name not in choices:
        nearest_names = ", ".join(f"`{choice}`" for choice in nearest(name, choices))
        known = (
            f"the nearest: {nearest_names}" if nearest_names else f"there is no {what}"
        )
        raise errors.InvalidArgumentError(
            f"`names` has `{name}`, which is not a {what}; {known}."
        )

"""Which state of a file belongs to which callback."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hookbridge.adapters.state.identity import DECISIVE, Identity


class Matches(NamedTuple):
    """The states of a file that belong to callbacks, by their places in both lists."""

    pairs: dict[int, int]  # `{callback: state}`
    missing: list[int]  # states of callbacks that are not there any more
    # Why callbacks begin anew though these states of their class are left.
    lost: list[tuple[str, list[int]]]


def match(present: Sequence[Identity], saved: Sequence[Identity]) -> Matches:
    """Finds the state of each callback by who it is, not by its place.

    Those of a class are told apart by their keys, then by all values that they were
    constructed with, then by the values that both lists know, then by the texts alone.
    Callbacks that are alike in this get their states in order, if there are as many
    states as callbacks. The only one of its class goes on with another text too, unless
    it tells what the state is about, as `monitor` does.
    """
    matches = Matches({}, [], [])
    callbacks = _places({n: each.kind for n, each in enumerate(present)})
    states = _places({n: each.kind for n, each in enumerate(saved)})
    for kind, theirs in states.items():
        mine = callbacks.get(kind, [])
        for ours, values in _levels(present, saved, mine, theirs):
            _pair(ours, values, matches.pairs)
        used = set(matches.pairs.values())
        rest = [place for place in theirs if place not in used]
        new = [place for place in mine if place not in matches.pairs]
        if rest and new:
            reason = _reason([present[n] for n in new], [saved[n] for n in rest])
            matches.lost.append((reason, rest))
        else:
            matches.missing.extend(rest)
    return matches


_Keys = dict[int, str]


def _places(keys: _Keys) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, key in keys.items():
        places.setdefault(key, []).append(place)
    return places


def _levels(
    present: Sequence[Identity],
    saved: Sequence[Identity],
    mine: list[int],
    theirs: list[int],
) -> Iterator[tuple[_Keys, _Keys]]:
    """What tells the callbacks and the states of a class apart, the surest first."""
    yield (
        {n: key for n in mine if (key := present[n].key) is not None},
        {n: key for n in theirs if (key := saved[n].key) is not None},
    )
    # A state with a key belongs to that key alone.
    theirs = [n for n in theirs if saved[n].key is None]
    ours, values = (
        {n: {k: json.dumps(v) for k, v in each[n].values.items()} for n in places}
        for each, places in ((present, mine), (saved, theirs))
    )
    common = _names(ours) & _names(values)
    texts = common & {k for n in theirs for k in saved[n].texts()}
    shared = {
        name
        for name in common
        if {v.get(name) for v in ours.values()} & {v.get(name) for v in values.values()}
    }
    levels = [common, shared | texts, texts]
    if len(mine) == len(theirs) == 1:
        levels.append(texts & DECISIVE)
    for names in levels:
        yield tuple(  # type: ignore[misc]
            {n: json.dumps([v.get(k) for k in sorted(names)]) for n, v in side.items()}
            for side in (ours, values)
        )


def _names(values: dict[int, dict[str, str]]) -> set[str]:
    return {name for each in values.values() for name in each}


def _pair(ours: _Keys, theirs: _Keys, pairs: dict[int, int]) -> None:
    """Adds the pairs that have the same key, where they are equally many."""
    used = set(pairs.values())
    states = _places({n: key for n, key in theirs.items() if n not in used})
    callbacks = _places({n: key for n, key in ours.items() if n not in pairs})
    for key, places in callbacks.items():
        if len(places) == len(states.get(key, ())):
            pairs.update(zip(places, states[key], strict=True))


def _reason(new: Sequence[Identity], rest: Sequence[Identity]) -> str:
    """Why callbacks of a class begin anew though some of its states are left."""
    callbacks = ", ".join(dict.fromkeys(map(str, new)))
    states = ", ".join(dict.fromkeys(map(str, rest[:5])))
    differences = [_differences(a, b) for a in new for b in rest]
    if all(differences):
        names = ", ".join(f"`{name}`" for name in sorted(set().union(*differences)))
        return f"{callbacks} begins anew: the state of {states} has another {names}"
    return (
        f"{callbacks} begins anew: nothing tells which of {len(rest)} states of "
        f"{states} belongs to which of {len(new)} callbacks"
    )


def _differences(callback: Identity, state: Identity) -> set[str]:
    """The names that show that a state belongs to another callback of the class."""
    if state.key is not None:
        return {"state_key"}
    ours, theirs = callback.texts(), state.texts()
    return {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}

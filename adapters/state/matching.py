"""Which state of a file belongs to which callback."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from hookbridge.adapters.state.identity import DECISIVE, Identity
from hookbridge.ground.groups import grouped

_Keys = dict[int, str]  # by place
_Values = dict[int, dict[str, str]]  # by place, then by name


class Level(NamedTuple):
    """Keys of the callbacks and states of a class: equal ones belong together."""

    callbacks: _Keys
    states: _Keys


class Matches(NamedTuple):
    """The states of a file that belong to callbacks, by their places in both lists."""

    pairs: dict[int, int]  # `{callback: state}`
    missing: list[int]  # states of callbacks that are not there any more
    # Why callbacks start over though these states of their class are left.
    lost: list[tuple[str, list[int]]]


def match(
    present: Sequence[Identity],
    saved: Sequence[Identity],
    decisive: Collection[str] = DECISIVE,
) -> Matches:
    """Find the state of each callback by who it is, not by its place.

    Those of a class are told apart by their keys, then by all values that they were
    constructed with, then by the values that both lists know, then by strings alone.
    Callbacks that are alike in this get their states in order, if there are as many
    states as callbacks. The only one of its class goes on with another string too,
    unless it tells what the state is about, as the `decisive` one `monitor` does.
    """
    matches = Matches({}, [], [])
    callbacks = grouped((callback.kind, n) for n, callback in enumerate(present))
    states = grouped((state.kind, n) for n, state in enumerate(saved))
    for kind, states_there in states.items():
        callbacks_there = callbacks.get(kind, [])
        for level in _levels(present, saved, callbacks_there, states_there, decisive):
            _pair(level, matches.pairs)
        used = set(matches.pairs.values())
        unused = [index for index in states_there if index not in used]
        new = [index for index in callbacks_there if index not in matches.pairs]
        if unused and new:
            reason = _reason([present[n] for n in new], [saved[n] for n in unused])
            matches.lost.append((reason, unused))
        else:
            matches.missing.extend(unused)
    return matches


def _levels(
    present: Sequence[Identity],
    saved: Sequence[Identity],
    mine: list[int],
    theirs: list[int],
    decisive: Collection[str],
) -> list[Level]:
    """Return what tells callbacks and states of a class apart, the surest first."""
    # A state with a key belongs to that key alone.
    without_key = [index for index in theirs if saved[index].key is None]
    callbacks, states = _values(present, mine), _values(saved, without_key)
    common = _names(callbacks) & _names(states)
    strings = common & {name for n in without_key for name in saved[n].strings()}
    equal = _with_equal_values(callbacks, states, common)
    levels = [
        Level(_state_keys(present, mine), _state_keys(saved, theirs)),
        _by_values(callbacks, states, common),
        _by_values(callbacks, states, strings | equal),
        _by_values(callbacks, states, strings),
    ]
    if len(mine) == len(without_key) == 1:
        levels.append(_by_values(callbacks, states, strings & set(decisive)))
    return levels


def _state_keys(identities: Sequence[Identity], places: list[int]) -> _Keys:
    """Return the `state_key` of each that has one."""
    return {
        index: key for index in places if (key := identities[index].key) is not None
    }


def _values(identities: Sequence[Identity], places: list[int]) -> _Values:
    """Return what each was constructed with, as JSON."""
    return {
        index: {
            name: json.dumps(value) for name, value in identities[index].values.items()
        }
        for index in places
    }


def _names(values: _Values) -> set[str]:
    return {name for arguments in values.values() for name in arguments}


def _with_equal_values(
    callbacks: _Values, states: _Values, names: set[str]
) -> set[str]:
    """Return the names of values that some callback and some state have in common."""
    of_callbacks, of_states = callbacks.values(), states.values()
    return {
        name
        for name in names
        if {arguments.get(name) for arguments in of_callbacks}
        & {arguments.get(name) for arguments in of_states}
    }


def _by_values(callbacks: _Values, states: _Values, names: set[str]) -> Level:
    """Return the level that tells them apart by the values of these names."""
    return Level(_keys_of_values(callbacks, names), _keys_of_values(states, names))


def _keys_of_values(values: _Values, names: set[str]) -> _Keys:
    """Return the values of some names as one key for each place."""
    return {
        index: json.dumps([arguments.get(name) for name in sorted(names)])
        for index, arguments in values.items()
    }


def _pair(level: Level, pairs: dict[int, int]) -> None:
    """Add the pairs that have the same key, where they are equally many."""
    used = set(pairs.values())
    states = grouped((key, n) for n, key in level.states.items() if n not in used)
    callbacks = grouped(
        (key, n) for n, key in level.callbacks.items() if n not in pairs
    )
    for key, places in callbacks.items():
        if len(places) == len(states.get(key, ())):
            pairs.update(zip(places, states[key], strict=True))


def _reason(new: Sequence[Identity], rest: Sequence[Identity]) -> str:
    """Say why callbacks of a class start over though some of its states are left."""
    callbacks = ", ".join(dict.fromkeys(map(str, new)))
    states = ", ".join(dict.fromkeys(map(str, rest[:5])))
    differences = [_differences(a, b) for a in new for b in rest]
    if all(differences):
        names = ", ".join(f"`{name}`" for name in sorted(set().union(*differences)))
        return f"{callbacks} starts over: the state of {states} has another {names}"
    return (
        f"{callbacks} starts over: it is unknown which of {len(rest)} states of "
        f"{states} belongs to which of {len(new)} callbacks"
    )


def _differences(callback: Identity, state: Identity) -> set[str]:
    """Return the names that show that a state is of another callback."""
    if state.key is not None:
        return {"state_key"}
    now, then = callback.strings(), state.strings()
    return {name for name in now.keys() & then.keys() if now[name] != then[name]}

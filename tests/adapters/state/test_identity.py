"""Each callback gets its own state, whatever became of the list that it is in."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from state_runs import restored, state_of

from hookbridge import errors
from hookbridge.adapters.state import identity
from hookbridge.adapters.state.identity import Identity
from hookbridge.adapters.state.matching import match


class Made(NamedTuple):
    """How a test's callback is made: its class and the constructor's values."""

    kind: str = "A"
    path: str | None = None
    size: int = 1
    key: str | None = None

    def identity(self) -> Identity:
        values = {"path": self.path, "size": self.size}
        return Identity(
            self.kind, self.key, {k: v for k, v in values.items() if v is not None}
        )


A, B = Made("A"), Made("B")
LOSS, ACC = Made("E", "loss"), Made("E", "acc")
KEYED = Made("A", key="one")

# What `test_any_change_of_a_list_of_different_callbacks` leaves out.
# Saved list -> present list -> for each present callback the place of its state.
ROWS: dict[str, tuple[list[Made], list[Made], list[int | None]]] = {
    "another class": ([A], [B], [None]),
    "a number was tuned": ([A], [Made(size=2)], [0]),
    "tuned and reordered": (
        [LOSS, ACC],
        [ACC._replace(size=5), LOSS._replace(size=5)],
        [1, 0],
    ),
    "alike, as many": ([A, A, B], [B, A, A], [2, 0, 1]),
    "alike, one fewer": ([A, A], [A], [None]),
    "alike, one more": ([A], [A, A], [None, None]),
    "alike, but one other": ([A, A, Made(size=2)], [Made(size=2), A], [2, None]),
    "the only one writes elsewhere": ([Made(path="a")], [Made(path="b")], [0]),
    "one of two writes elsewhere": (
        [Made(path="a"), Made(path="b")],
        [Made(path="c"), Made(path="a")],
        [None, 0],
    ),
    "keys tell apart": (
        [KEYED, Made(key="two")],
        [Made(key="two", size=9), KEYED],
        [1, 0],
    ),
    "a key stays with another path": (
        [KEYED._replace(path="a"), Made(path="b")],
        [Made(path="b"), KEYED._replace(path="c")],
        [1, 0],
    ),
    "another key": ([KEYED], [Made(key="two")], [None]),
    "a key was added": ([A, B], [B, KEYED], [1, 0]),
    "a key is of its class": ([KEYED], [Made("B", key="one")], [None]),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_becomes_of_a_list(row: str) -> None:
    saved, present, expected = ROWS[row]
    pairs, gone, lost = match(*([m.identity() for m in x] for x in (present, saved)))
    assert [pairs.get(n) for n in range(len(present))] == expected
    # Each state belongs to a callback, or it is said what becomes of it.
    left = set(range(len(saved))) - set(pairs.values())
    assert left == {*gone, *(n for _, places in lost for n in places)}
    news = {m.kind for n, m in enumerate(present) if n not in pairs}
    assert {saved[n].kind for n in gone}.isdisjoint(news)
    assert len(lost) == len(news & {saved[n].kind for n in left})


def test_any_change_of_a_list_of_different_callbacks() -> None:
    """Whatever is added, removed and moved: who is in both lists keeps their state."""
    everyone = [
        Made(kind, path, size)
        for kind, path, size in itertools.product("AB", ("x", "y", "z"), (1, 2))
    ]
    for seed in range(300):
        choice = random.Random(seed)
        saved = choice.sample(everyone, choice.randint(0, 8))
        present = choice.sample(everyone, choice.randint(0, 8))
        pairs = match(*([m.identity() for m in x] for x in (present, saved))).pairs
        assert len(set(pairs.values())) == len(pairs)
        for place, made in enumerate(present):
            if made in saved:
                assert pairs[place] == saved.index(made)
            elif place in pairs:  # then only a number was tuned
                other = saved[pairs[place]]
                alike = (other.kind, other.path) == (made.kind, made.path)
                only = [sum(m.kind == made.kind for m in x) for x in (present, saved)]
                assert alike or only == [1, 1]


def callback_class(keras: Any) -> Any:
    class Writes(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self, path: str, every: int = 1, show: Any = None) -> None:
            super().__init__()
            self.path, self._every, self.count = path, every, 0
            self.show = show
            self.host = object()  # nothing to compare

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.count += 1

    return Writes


def test_values_of_a_constructor(keras: Any) -> None:
    make = callback_class(keras)
    one = identity.of(make("/a/secret", show=print))
    assert set(one.values) >= {"path", "_every", "show"}
    assert not {"count", "host", "model"} & set(one.values)
    assert "secret" not in str(one.values)  # a text may be a password
    assert one == identity.of(make(Path("/a/secret"), show=print))
    assert one != identity.of(make("/a/other", show=print))
    assert one != identity.of(make("/a/secret", show=len))


def test_values_are_those_of_the_first_look(keras: Any) -> None:
    callback = callback_class(keras)("/a")
    before = identity.of(callback)
    callback.path, callback._every = "/b", 7
    assert identity.of(callback) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [({"monitor": "loss"}, {"monitor": "mae"}), ({"mode": "min"}, {"mode": "max"})],
)
@pytest.mark.parametrize("name", ["EarlyStopping", "ReduceLROnPlateau"])
def test_stock_callbacks_are_told_apart(
    keras: Any, name: str, one: Any, other: Any
) -> None:
    kind = getattr(keras.callbacks, name)
    options = {"monitor": "loss"}
    first, second = (identity.of(kind(**{**options, **o})) for o in (one, other))
    assert match([second, first], [first, second]).pairs == {0: 1, 1: 0}
    alone = match([second], [first])
    # By `monitor`, `mode` or `monitor_op`.
    assert not alone.pairs and "has another `mo" in alone.lost[0][0]
    assert match([identity.of(kind(**{**options, **one}))], [first]).pairs == {0: 0}


def test_key_is_a_text(keras: Any) -> None:
    callback = callback_class(keras)("/a")
    callback.state_key = 3
    with pytest.raises(errors.InvalidArgumentError, match="state_key` is 3"):
        identity.of(callback)


def test_log_names_who_goes_on_and_who_does_not(
    keras: Any, tmp_path: Path, said: Any
) -> None:
    make, prefix = callback_class(keras), str(tmp_path / "model.ckpt-3")
    first = [make("/a"), make("/b"), keras.callbacks.EarlyStopping("loss")]
    saved = state_of(*first)
    for callback in first[:2]:
        callback.count = 5
    saved.save(prefix, 3)
    for left in ([make("/c"), make("/a")], [make("/b"), make("/a")]):
        state = state_of(*left)
        found = state.read(prefix)
        assert found is not None
        state.parts[0].restore(found)
        assert left[1].count == 5
        assert left[0].count == (0 if left[0].path == "/c" else 5)
    assert said("`Writes` begins anew: the state of `Writes` has another `path`")
    assert said("the state of `EarlyStopping(monitor='loss')`, no longer among")


def test_new_configuration_is_kept(keras: Any, tmp_path: Path) -> None:
    """A method sets the path anew in each epoch, so it is state, but the user's too."""

    class Moves(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path, self.count = path, 0

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.path, self.count = self.path + "x", self.count + 1

    prefix, first = str(tmp_path / "model.ckpt-3"), Moves("/old")
    state = state_of(first)
    first.on_epoch_end(0)
    state.save(prefix, 3)
    for path, expected in (("/old", "/oldx"), ("/new", "/new")):
        again = Moves(path)
        assert restored(again, prefix)
        assert (again.path, again.count) == (expected, 1)

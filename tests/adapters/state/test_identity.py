"""Each callback gets its own state, whatever became of the list that it is in."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from state_runs import part_of, restored, save, state_of

from hookbridge import errors
from hookbridge.adapters.state import identity
from hookbridge.adapters.state.files import StateFiles
from hookbridge.adapters.state.identity import Identity
from hookbridge.adapters.state.matching import match


def identity_from(text: str) -> Identity:
    """The identity of a callback such as `A size=2 path=x key=one`."""
    kind, *values = text.split()
    found: dict[str, Any] = dict(value.split("=") for value in values)
    key = found.pop("key", None)
    numbers = {name: int(v) for name, v in found.items() if v.isdigit()}
    return Identity(kind, key, {"size": 1, **found, **numbers})


# What `test_any_change_of_a_list_of_different_callbacks` leaves out.
# Saved list -> present list -> for each present callback the place of its state.
ROWS: dict[str, tuple[list[str], list[str], list[int | None]]] = {
    "another class": (["A"], ["B"], [None]),
    "a number was tuned": (["A"], ["A size=2"], [0]),
    "tuned and reordered": (
        ["E path=loss", "E path=acc"],
        ["E path=acc size=5", "E path=loss size=5"],
        [1, 0],
    ),
    "one of two numbers was tuned, and reordered": (
        ["A every=2", "A every=3"],
        ["A every=3 size=5", "A every=2 size=5"],
        [1, 0],
    ),
    "alike, as many": (["A", "A", "B"], ["B", "A", "A"], [2, 0, 1]),
    "alike, one fewer": (["A", "A"], ["A"], [None]),
    "one of two fewer": (["A path=a", "A path=b"], ["A path=b"], [1]),
    "alike, one more": (["A"], ["A", "A"], [None, None]),
    "alike, but one other": (["A", "A", "A size=2"], ["A size=2", "A"], [2, None]),
    "the only one writes elsewhere": (["A path=a"], ["A path=b"], [0]),
    "one of two writes elsewhere": (
        ["A path=a", "A path=b"],
        ["A path=c", "A path=a"],
        [None, 0],
    ),
    "keys tell apart": (
        ["A key=one", "A key=two"],
        ["A key=two size=9", "A key=one"],
        [1, 0],
    ),
    "a key stays with another path": (
        ["A key=one path=a", "A path=b"],
        ["A path=b", "A key=one path=c"],
        [1, 0],
    ),
    "another key": (["A key=one"], ["A key=two"], [None]),
    "a key was added": (["A", "B"], ["B", "A key=one"], [1, 0]),
    "a key is of its class": (["A key=one"], ["B key=one"], [None]),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_becomes_of_a_list(row: str) -> None:
    *lists, expected = ROWS[row]
    saved, present = ([identity_from(text) for text in texts] for texts in lists)
    pairs, gone, lost = match(present, saved)
    assert [pairs.get(n) for n in range(len(present))] == expected
    # Each state belongs to a callback, or it is said what becomes of it.
    left = set(range(len(saved))) - set(pairs.values())
    assert left == {*gone, *(n for _, places in lost for n in places)}
    news = {each.kind for n, each in enumerate(present) if n not in pairs}
    assert {saved[n].kind for n in gone}.isdisjoint(news)
    assert len(lost) == len(news & {saved[n].kind for n in left})


# Saved list -> present list -> why callbacks begin anew.
REASONS: dict[str, tuple[list[str], list[str], str]] = {
    "keys": (
        ["A key=x"],
        ["A key=y", "A key=z"],
        "`A(state_key='y')`, `A(state_key='z')` starts over: the state of "
        "`A(state_key='x')` has another `state_key`",
    ),
    "texts": (
        ["A path=a name=x", "A path=b name=x mode=min"],
        ["A path=c name=x mode=max"],
        "`A(mode='max')` starts over: the state of `A`, `A(mode='min')` has another "
        "`mode`, `path`",
    ),
    "no difference": (
        ["A path=a", "A path=a"],
        ["A path=a"],
        "`A` starts over: it is unknown which of 2 states of `A` belongs to which of "
        "1 callbacks",
    ),
}


@pytest.mark.parametrize("row", REASONS)
def test_why_a_callback_starts_over(row: str) -> None:
    *lists, expected = REASONS[row]
    saved, present = ([identity_from(text) for text in texts] for texts in lists)
    assert match(present, saved).lost == [(expected, list(range(len(saved))))]


def test_any_change_of_a_list_of_different_callbacks() -> None:
    """Whatever is added, removed and moved: who is in both lists keeps their state."""
    kinds = itertools.product("AB", "xyz", (1, 2))
    everyone = [
        identity_from(f"{kind} path={path} size={size}") for kind, path, size in kinds
    ]
    for seed in range(300):
        choice = random.Random(seed)
        saved = choice.sample(everyone, choice.randint(0, 8))
        present = choice.sample(everyone, choice.randint(0, 8))
        pairs = match(present, saved).pairs
        assert len(set(pairs.values())) == len(pairs)
        for place, mine in enumerate(present):
            if mine in saved:
                assert pairs[place] == saved.index(mine)
            elif place in pairs:  # then only a number was tuned
                other = saved[pairs[place]]
                alike = other.kind == mine.kind
                alike &= other.values["path"] == mine.values["path"]
                of_kind = [
                    sum(o.kind == mine.kind for o in x) for x in (present, saved)
                ]
                assert alike or of_kind == [1, 1]


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
    callback = make("/a")
    before = identity.of(callback)
    callback.path, callback._every = "/b", 7
    assert identity.of(callback) == before  # as at the first look
    callback.state_key = 3
    with pytest.raises(errors.InvalidArgumentError, match="state_key` is 3"):
        identity.of(callback)


@pytest.mark.parametrize("name", ["EarlyStopping", "ReduceLROnPlateau"])
def test_stock_callbacks_are_told_apart(
    subtests: pytest.Subtests, keras: Any, name: str
) -> None:
    """By `monitor`, `mode` or `monitor_op`."""

    def of(monitor: str = "loss", mode: str = "auto") -> Identity:
        return identity.of(getattr(keras.callbacks, name)(monitor, mode=mode))

    for first, second in ((of(), of("mae")), (of(mode="min"), of(mode="max"))):
        with subtests.test(str(first)):
            assert match([second, first], [first, second]).pairs == {0: 1, 1: 0}
            alone = match([second], [first])
            assert not alone.pairs and "has another `mo" in alone.lost[0][0]
    assert match([of()], [of()]).pairs == {0: 0}


def test_log_names_who_goes_on_and_who_does_not(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    make, prefix = callback_class(keras), str(tmp_path / "model.ckpt-3")
    first = [make("/a"), make("/b"), keras.callbacks.EarlyStopping("loss")]
    saved = state_of(*first)
    for callback in first[:2]:
        callback.count = 5
    save(saved, prefix, 3)
    for left in ([make("/c"), make("/a")], [make("/b"), make("/a")]):
        with subtests.test(str(left)):
            state = state_of(*left)
            found = state.read(prefix)
            assert found is not None
            state.parts[0].restore(found)
            assert left[1].count == 5
            assert left[0].count == (0 if left[0].path == "/c" else 5)
    assert absl_records(
        "`Writes` starts over: the state of `Writes` has another `path`"
    )
    assert absl_records(
        "the state of `EarlyStopping(monitor='loss')`, which is no longer"
    )


def test_new_configuration_is_kept(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
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
    save(state, prefix, 3)
    for path, expected in (("/old", "/oldx"), ("/new", "/new")):
        with subtests.test(str(path)):
            again = Moves(path)
            assert restored(again, prefix)
            assert (again.path, again.count) == (expected, 1)


def test_a_worker_writes_to_a_file_of_its_own(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with the chief's best; another run of the chief does not."""

    def checkpoint_callback(name: str) -> Any:
        callback = keras.callbacks.ModelCheckpoint(f"{name}.weights.h5", "loss")
        identity.of(callback)
        return callback

    prefix = str(tmp_path / "model.ckpt-1")
    state = StateFiles()
    part = part_of(state, [chief := checkpoint_callback("chief")])
    part.begin()
    chief.best = 0.5
    save(state, prefix, 1)
    cluster = {"chief": ["a:1"], "worker": ["b:1"]}
    for kind, goes_on in (("chief", False), ("worker", True)):
        task = {"cluster": cluster, "task": {"type": kind, "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(task))
        state = StateFiles()
        part = part_of(state, [other := checkpoint_callback("other")])
        saved = state.read(prefix)
        assert saved is not None
        part.begin()
        part.restore(saved)
        assert (other.best == 0.5) is goes_on

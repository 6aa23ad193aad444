"""The table of Keras's own callbacks, against those that the installed Keras has."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
from source_trees import sources

from hookbridge.adapters.guests import keras_rows

# Classes that are no callbacks, and the empty base class.
_NO_ROWS = {"Callback", "CallbackList"}
# Where a name of a callback may stand as text: in the table, and where an object of the
# class takes the place of another one.
_NAMED = {"adapters/guests/keras_rows.py", "adapters/session_loop/v1_tensorboard.py"}


def exported(keras: Any) -> dict[str, Any]:
    """Each callback class that a Keras exports, by name."""
    own = vars(keras.callbacks)
    own = {**own, **vars(getattr(keras.callbacks, "experimental", object))}
    return {n: c for n, c in own.items() if inspect.isclass(c) and n not in _NO_ROWS}


def test_each_callback_of_keras_has_a_row(keras: Any) -> None:
    missing = {c.__name__ for c in exported(keras).values()} - set(keras_rows.ROWS)
    assert not missing, "a row for each in adapters/guests/keras_rows.py"


def test_a_row_names_what_the_class_has(keras: Any) -> None:
    for name, kind in exported(keras).items():
        row = keras_rows.row(kind.__name__)
        own = [base for base in kind.__mro__ if base is not object]
        source = "".join(map(inspect.getsource, own))
        for attribute in filter(None, [row.writes]):
            assert f"self.{attribute} = " in source, (name, attribute)
        found = [a for a in row.state_attributes if f"self.{a}" in source]
        assert bool(found) == bool(row.state_attributes), name


@pytest.mark.one_tensorflow
def test_no_other_file_names_a_callback_of_keras() -> None:
    for file, nodes in sources().items():
        if file.startswith(("adapters/", "hookbridge/insight/")) and file not in _NAMED:
            texts = {n.value for n in nodes if isinstance(n, ast.Constant)}
            named = texts & set(keras_rows.ROWS)
            assert not named, f"{file} names {named}: ask the guest's `keras_row`"

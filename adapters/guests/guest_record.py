"""What is known about one item of a user's list: asked once, read by every room."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from hookbridge import errors
from hookbridge.adapters.guests import kinds, paths, roles
from hookbridge.adapters.guests.any_flavour import AnyFlavour
from hookbridge.adapters.guests.keras_rows import KerasRow, row
from hookbridge.ground import compat
from hookbridge.ground.arguments import shown
from hookbridge.ground.lifecycle import Kind

_ANY: dict[Kind, str] = {
    "hook": "a `tf.compat.v1.train.SessionRunHook` instance",
    "callback": "an instance of a Keras callback",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Guest:
    """One hook or callback."""

    item: Any
    kind: Kind
    name: str
    # Which Keras a callback was written for; None for a hook and for every Keras.
    flavour: kinds.Flavour | None
    keras_class: str  # the Keras callback class that it is or derives from, or ""
    # The object whose methods a session calls: `item`, unless that is a `TensorBoard`
    # of `tf.compat.v1.keras`.
    called: Any

    @property
    def keras_row(self) -> KerasRow:
        """The row of the Keras callback class that it is or derives from."""
        return row(self.keras_class)

    @property
    def role(self) -> roles.Role:
        """Which processes of a session cluster call it."""
        return roles.given_role(self.item) or roles.default_role(
            self.item, is_hook=self.kind == "hook"
        )

    @property
    def role_in_fit(self) -> roles.Role:
        """Which processes call it in `fit`, `evaluate` and `predict`."""
        # Keras itself has no rule about a chief: each process that calls `fit` calls
        # all its callbacks, unless `set_role` says otherwise. Nothing is split: each
        # process runs the whole `fit` with its validation.
        role = roles.given_role(self.item)
        return "all" if role is None or role == "split" else role

    @property
    def is_foreign(self) -> bool:
        """Return whether a Keras of this process cannot call the callback as it is."""
        return self.flavour == "keras3" and any(
            not compat.is_keras3(k) and not isinstance(self.item, k.callbacks.Callback)
            for k in compat.keras_flavours()
        )

    @property
    def monitor(self) -> str | None:
        """The entry of `logs` that a Keras callback cannot work without, or None."""
        if self.keras_row.monitors == "loss":
            return "loss"
        monitor = getattr(self.item, "monitor", None)
        if not isinstance(monitor, str) or not self.keras_class:
            return None
        of_best = self.keras_row.monitors == "monitor of the best"
        if of_best and not self.item.save_best_only:
            return None  # Keras does not use its `monitor` then
        return monitor

    @property
    def saves_model(self) -> bool:
        """Return whether a callback saves the whole Keras model.

        It is of a class of Keras or ready-made, or derives from one.
        """
        if isinstance(self.item, paths.WritesFolders):
            return self.item.saves_whole_model
        return self.keras_row.saves_model and not getattr(
            self.item, "save_weights_only", False
        )

    @property
    def writes(self) -> list[paths.WrittenPath]:
        """The paths that it will write, as far as they are known."""
        if self.kind == "hook":
            return paths.written_by_hook(self.item)
        return paths.written_by_callback(self.item, self.keras_row)

    @property
    def saves_checkpoints(self) -> bool:
        """Return whether it is TensorFlow's hook that saves checkpoints."""
        import tensorflow as tf

        return isinstance(self.item, tf.compat.v1.train.CheckpointSaverHook)

    @property
    def is_of_chief(self) -> bool:
        """Return whether a hook runs on the chief although nobody has set its role."""
        return self.saves_checkpoints and roles.given_role(self.item) is None

    def check_kind(self) -> None:
        """Refuse a guest that is a hook and a callback at once."""
        if kinds.has_hook_methods(self.item) and kinds.is_callback(self.item):
            raise errors.RefusedError(
                f"`{self.name}` is both a `SessionRunHook` and a Keras `Callback`; "
                "expected one of the two, since a loop calls a guest as only one of "
                "them. Split it into two classes whose objects share what both need, "
                f"and give both: `[{self.name}Hook(shared), "
                f"{self.name}Callback(shared)]`.",
                see="a hook and a callback at once",
            )


class Wrapper:
    """Base class of the objects that take the place of a guest in a host."""

    acts_as: ClassVar[Kind]
    # A `wrapt` proxy keeps its own attributes only under names with `_self_`.
    _self_record: Guest

    @property
    def record(self) -> Guest:
        return self._self_record

    @property
    def guest(self) -> Any:
        return self.record.item


def record_of(item: Any) -> Guest:
    """Return the record of a hook, a callback, or the wrapper of one."""
    if isinstance(item, Guest):
        return item
    if isinstance(item, Wrapper):
        return item.record
    is_hook = kinds.is_hook(item)
    return Guest(
        item,
        "hook" if is_hook else "callback",
        kinds.name_of(item),
        None if is_hook or isinstance(item, AnyFlavour) else kinds.flavour_of(item),
        "" if is_hook else kinds.keras_class_of(item),
        item,
    )


def records(items: object) -> list[Guest]:
    """Return the record of each guest in a (nested) list."""
    return [record_of(item) for item in kinds.flatten(items)]


def record_of_kind(kind: Kind, item: object) -> Guest:
    """Return the record of an item; refuse one that is not of a kind.

    Args:
      kind: "hook" or "callback".
      item: a guest, its record or its wrapper.

    Raises:
      errors.NotAGuestError: it is something else.
    """
    is_kind = kinds.is_hook if kind == "hook" else kinds.is_callback
    if not isinstance(item, (Guest, Wrapper)) and not is_kind(item):
        raise errors.NotAGuestError(
            f"Received {shown(item)} of type `{type(item).__name__}`; expected "
            f"{_ANY[kind]}."
        )
    return record_of(item)


def unwrapped(item: object) -> Any:
    """Return the guest that a user gave, without its wrapper."""
    return item.guest if isinstance(item, Wrapper) else item

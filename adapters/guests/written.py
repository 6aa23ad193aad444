"""Refuses guests whose files cannot be written: before training, in each host."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hookbridge import errors
from hookbridge.adapters.guests import kinds, paths
from hookbridge.adapters.guests.guest_record import Guest

# The events in which a subclass may make a folder before training.
_EARLY = ("set_params", "set_model", "on_train_begin")


def check_files(guest: Guest, beside: Sequence[Guest]) -> None:
    """Refuse a guest that cannot write its files; try on the disk.

    Args:
      guest: one guest of a list.
      beside: all guests of the list, which may make the folder in time.

    Raises:
      errors.UnwritableError: a path cannot be written.
    """
    check_folder(guest, beside)
    for path, is_folder in guest.writes:
        paths.check_writable(guest.item, path, is_folder=is_folder)


def check_folder(guest: Guest, beside: Sequence[Guest]) -> None:
    """Refuse a guest whose folder nobody makes; write nothing to the disk.

    Args:
      guest: one guest of a list.
      beside: all guests of the list, in their order.

    Raises:
      errors.UnwritableError: the folder is not there, and no guest makes it in time.
    """
    # Of Keras's callbacks that is `CSVLogger`.
    if guest.keras_row.makes_folder != "never" or _is_own(guest, _EARLY):
        return
    ((path, _),) = guest.writes
    folder = os.path.dirname(path) or "."
    if "://" in path or os.path.isdir(folder):
        return
    is_earlier = True
    for guest_beside in beside:
        is_earlier = is_earlier and guest_beside.item is not guest.item
        is_early_enough = _writes_before(guest_beside, guest, is_earlier=is_earlier)
        if is_early_enough and _makes(guest_beside, folder):
            return
    raise errors.UnwritableError(
        f"`{guest.name}` will write `{path}`, but the directory `{folder}` does not "
        "exist and the callback does not make it. Make it first."
    )


def _writes_before(other: Guest, guest: Guest, *, is_earlier: bool) -> bool:
    """Return whether a guest has written before a `CSVLogger`, `guest`, opens its file.

    Keras 3 opens it in `on_train_begin`, Keras 2 after an epoch.
    """
    if other.keras_row.makes_folder == "early":
        return True
    return guest.flavour != "keras3" and (other.kind == "hook" or is_earlier)


def _is_own(guest: Guest, events: Sequence[str]) -> bool:
    """Return whether a class outside Keras has a method for one of some events."""
    return any(
        event in vars(base) and not kinds.is_of_keras(base)
        for base in type(guest.item).__mro__
        for event in events
    )


def _makes(guest: Guest, folder: str) -> bool:
    """Return whether a guest makes a folder, or one in it, for a `CSVLogger`."""
    is_of_keras = guest.keras_class and guest.keras_row.makes_folder != "never"
    if guest.kind == "callback" and not is_of_keras:
        return False
    for path, is_folder in guest.writes:
        made = (path if is_folder else os.path.dirname(path)).split("{")[0]
        inside = os.path.relpath(os.path.abspath(made), os.path.abspath(folder))
        if not inside.startswith(os.pardir):
            return True
    return False

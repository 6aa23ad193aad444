"""Lets the guests of a file join all trainings of this process."""

from __future__ import annotations

from collections.abc import Callable

from hookbridge.run.joining import estimators, fits, passed_by, servers, sessions
from hookbridge.run.joining.guest_file import GuestFile
from hookbridge.run.joining.party import Party


def install(
    path: str,
    steps_per_epoch: int | None,
    is_own: Callable[[str], bool],
    has_estimator: bool,
) -> Party:
    """Loads the file; its guests join every training from now on."""
    party = Party(GuestFile(path), steps_per_epoch, is_own)
    if has_estimator:
        estimators.join(party)
    sessions.join(party)
    fits.join(party)
    passed_by.look_for(party)
    servers.follow()
    return party

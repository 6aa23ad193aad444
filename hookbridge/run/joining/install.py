"""Lets the guests of a file join all trainings of this process."""

from __future__ import annotations

from collections.abc import Callable

from hookbridge.run.joining import estimators, fits, plain_sessions, servers, sessions
from hookbridge.run.joining.guest_file import GuestFile
from hookbridge.run.joining.joiner import Joiner


def install(
    path: str,
    steps_per_epoch: int | None,
    is_own: Callable[[str], bool],
    has_estimator: bool,
) -> Joiner:
    """Loads the file; its guests join every training from now on."""
    joiner = Joiner(GuestFile(path), steps_per_epoch, is_own)
    if has_estimator:
        estimators.join(joiner)
    sessions.join(joiner)
    fits.join(joiner)
    plain_sessions.look_for(joiner)
    servers.follow()
    return joiner

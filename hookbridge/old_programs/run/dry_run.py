"""Says where guests from outside would join a program, and runs nothing of it."""

from __future__ import annotations

import os
import sys

from hookbridge.old_programs.reading.programs import read_program
from hookbridge.old_programs.run.joining.sites import sites
from hookbridge.old_programs.run.located import Launch, OwnCode, locate


def tell(launch: Launch) -> int:
    """Prints where the guests would join; nothing of the program runs."""
    if launch.as_module:
        sys.path[0] = os.getcwd()
    located = locate(launch)
    if located.folder not in sys.path:
        sys.path.insert(0, located.folder)
    modules = read_program(
        [located.file, *located.others], OwnCode(located.folder).roots()
    )
    trainings = list(sites(modules))
    for site in trainings:
        mark = "joins" if site.joins else "cannot join"
        file = os.path.relpath(site.file)
        print(f"{file}:{site.line}: {site.call}: {mark}: {site.how}")
    if not trainings:
        print("The source has no training that guests could join.")
    return 0

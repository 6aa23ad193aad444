"""Deals out tests to the workers of pytest-xdist: whole files, long ones first.

Tests of a file share fixtures, such as a wheel or a fork server's processes. Those of
`v1_mode` share a process for each mode, so its folder counts as one file.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

import pytest
from tiers import FLAVOURS

# One more than cores: tests that start processes often wait, and leave a core free. Few
# of those on TF 2.15 do, and each worker imports all of them.
WORKERS = (os.cpu_count() or 1) + (len(FLAVOURS) > 1)
# Tests marked `slow` take this many times as long as others, as a rule.
SLOW_WEIGHT = 20


def shared_place(nodeid: str) -> str:
    """The file, or the folder, whose tests run in one worker."""
    file = nodeid.partition("::")[0]
    folder = PurePosixPath(file).parent
    return str(folder) if folder.name == "v1_mode" else file


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts long files first, so that none of them runs alone at the end."""
    weights: Counter[str] = Counter()
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        weights[shared_place(item.nodeid)] += SLOW_WEIGHT if is_slow else 1
    items.sort(key=lambda item: -weights[shared_place(item.nodeid)])


def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`."""
    return WORKERS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deals out whole files, in the order in which they were collected."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return shared_place(nodeid)

    config.option.loadscopereorder = False
    return Scheduling(config, log)

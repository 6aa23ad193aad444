"""The fixture `both_loops` for tests of a user's own hooks and callbacks.

pytest finds it wherever hookbridge is installed. TensorFlow is imported only by a test
that takes the fixture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def both_loops(tmp_path: Path) -> Any:
    """Run a guest in a session and in `Model.fit`; see `testing.BothLoops`."""
    from hookbridge.testing.both_loops import BothLoops

    return BothLoops(tmp_path)

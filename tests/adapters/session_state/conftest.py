"""Fixtures of the tests of when state is saved and restored."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def keras(keras2: Any) -> Any:
    """One Keras: which one a callback is of plays no part here."""
    return keras2

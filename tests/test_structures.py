"""What is remembered by the keys of fetches."""

from __future__ import annotations

import pytest

from hookbridge import structures


def test_what_is_used_stays_and_the_rest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "MOST", 4)
    known = structures.RecentlyUsed()
    known.add("hot", 1)
    for i in range(100):
        known.add(i, str(i))
        assert known.get("hot") == 1
    found = [i for i in range(100) if known.get(i) is not None]
    assert found[-3:] == [97, 98, 99]
    assert len(found) < 2 * structures.MOST

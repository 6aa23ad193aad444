"""The site, opened from a folder, has its search."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import NOT_HERE, chromium, open_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason=NOT_HERE)]
ONE_TENSORFLOW = True


@pytest.mark.exhaustive
def test_a_site_in_a_folder_finds_a_word(repo_root: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        cwd=repo_root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        check=True,
    )
    address = (tmp_path / "roles.html").as_uri()
    page = open_page(f"{address}?q=StopAtStepHook", waiting_secs=15)
    assert re.search(r'search-result__meta">\s*[1-9]\d* matching', page.dom)
    assert "lifecycle.html" in page.dom or "hook-support.html" in page.dom
    # All that the page asks for is in the folder.
    assert all(each.startswith("file://") for each in page.requests)
    assert page.console == []

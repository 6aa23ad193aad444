"""A real browser without a window: the HTML, console and requests of a page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOT_HERE = (
    "no Chromium on this machine to look at the page with "
    "(on Debian: apt install chromium)"
)


@dataclass(frozen=True)
class Page:
    """What the browser made of a page: its HTML after scripts ran, and its requests."""

    dom: str
    console: list[str]
    requests: list[str]

    @property
    def title(self) -> str:
        """The text of `<title>`."""
        found = re.search(r"<title>(.*?)</title>", self.dom, re.S)
        return found[1] if found else ""


def chromium() -> str | None:
    """The browser's path; None if there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def open_page(
    address: str,
    *,
    picture: Path | None = None,
    size: tuple[int, int] = (1280, 900),
    dark: bool = False,
    waiting_secs: int = 0,
) -> Page:
    """Opens an address, and may take a picture of it, also of a dark desktop.

    Its scripts may run for `waiting_secs` by the browser's virtual clock.
    """
    binary = chromium()
    assert binary is not None, NOT_HERE
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "network.json"
        command = [
            binary,
            "--headless",
            "--no-sandbox",  # root cannot use the sandbox
            "--disable-gpu",
            "--disable-3d-apis",  # so that TensorBoard draws SVG
            # Neither a page nor the browser needs another machine.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--no-first-run",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={folder}/profile",
            f"--log-net-log={network}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={size[0]},{size[1]}",
            "--dump-dom",
        ]
        command += [f"--screenshot={picture}"] if picture else []
        command += [f"--virtual-time-budget={1000 * waiting_secs}"] * bool(waiting_secs)
        done = subprocess.run(
            [*command, address],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=True,
        )
        requests = list(_requests(network))
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Page(done.stdout, console, requests)


def _requests(network: Path) -> Iterator[str]:
    """The requests of pages, not of Chromium itself, in a network log of Chromium."""
    log = json.loads(network.read_text(encoding="utf-8"))
    kind = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    for event in log["events"]:
        asked = event.get("params", {})
        is_page = asked.get("initiator", "not an origin") != "not an origin"
        if event["type"] == kind and is_page:
            yield asked["url"]

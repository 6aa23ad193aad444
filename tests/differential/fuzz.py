"""Random lists of guests in both loops, for as long as is asked: `make fuzz`.

Each difference is printed as a program that shows it. The exit code is 1 if there was
one. The folders of helpers have to be in `PYTHONPATH`.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import hypothesis
import test_random_guests as tests

from hookbridge.ground import compat

LISTS_PER_SEED = 20


def drawn_runs(seed: int) -> Iterator[tuple[Any, Any]]:
    """Yields a function that runs guests, and guests with options."""
    for strategy, seen in tests.LOOPS:
        runs: list[Any] = []

        @hypothesis.seed(seed)
        @hypothesis.settings(
            tests.SETTINGS, max_examples=LISTS_PER_SEED, derandomize=False
        )
        @hypothesis.given(strategy)
        def draw(run: Any) -> None:
            runs.append(run)  # noqa: B023

        draw()
        yield from ((seen, run) for run in runs)


def main() -> int:
    """Runs until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secs", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    names = ["keras"] if compat.tf_version() < (2, 16) else ["keras", "tf_keras"]
    flavours = [importlib.import_module(name) for name in names]
    end = time.monotonic() + arguments.secs
    seed, count, different = arguments.seed, 0, 0
    places: set[tuple[str, str]] = set()  # each kind of difference is printed once
    while time.monotonic() < end:
        keras = flavours[seed % len(flavours)]
        for seen, run in drawn_runs(seed):
            if time.monotonic() >= end:
                break
            count += 1
            text = tests.difference(seen, keras, run)
            place = re.sub(r"\d+", "#", text.partition("\n# ")[2].partition(":")[0])
            known = (keras.__name__, place) in places
            if text and not known:
                different += 1
                places.add((keras.__name__, place))
                print(f"# difference {different}\n{text}\n", flush=True)
        seed += 1
    print(f"{count} lists of guests, {different} differences; last seed {seed - 1}.")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())

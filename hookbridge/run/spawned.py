"""Runs in a spawned child in the place of the program's main file."""

from __future__ import annotations

from hookbridge.run import children

if __name__ == "__mp_main__":
    children.run_main(globals())

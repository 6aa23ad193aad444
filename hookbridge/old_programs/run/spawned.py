"""The main module of a spawned child: runs the program's main file."""

from __future__ import annotations

from hookbridge.old_programs.run import children

if __name__ == "__mp_main__":
    children.run_main(globals())

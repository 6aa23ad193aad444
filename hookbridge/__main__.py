"""`python -m hookbridge` is the `hookbridge` command."""

from __future__ import annotations

import sys

from hookbridge.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""The two adapters: callbacks as hooks and hooks as callbacks.

The folder is imported as `hookbridge.adapters` only; under its bare name there
would be two copies of every class and `isinstance` would fail between them.
"""

from __future__ import annotations

if __name__ != "hookbridge.adapters":
    raise ImportError(
        f"This folder was imported as `{__name__}`. Import it as "
        "`hookbridge.adapters` (from the root of the checkout, or after "
        "`pip install hookbridge`)."
    )

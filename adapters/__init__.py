"""The two adapters: callbacks as hooks and hooks as callbacks.

Import this folder as `hookbridge.adapters` only. Under its bare name every class
would exist a second time, and `isinstance` would fail between the copies.
"""

from __future__ import annotations

if __name__ != "hookbridge.adapters":
    raise ImportError(
        f"This folder was imported as `{__name__}`. Import it as "
        "`hookbridge.adapters` (from the root of the checkout, or after "
        "`pip install .`)."
    )

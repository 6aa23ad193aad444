"""`tf.contrib` for rewritten programs: each name gives its counterpart of today.

    import hookbridge as hb

    hb.contrib.learn.learn_runner.run(make_experiment, run_config=config)

The names are those of `tf.contrib`; docs/running-tf1.md lists their counterparts. A
name without a counterpart raises when it is used.
"""

from __future__ import annotations

from typing import Any

from hookbridge.migrate import contrib_names
from hookbridge.run.contrib import mended_slim, namespace


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    sources = contrib_names.AREAS.get(name, ())
    if any(source.partition(".")[0] == "tf_slim" for source in sources):
        mended_slim.mend()
    return getattr(namespace.root(), name)

"""`tf.contrib`: each of its names gives its current counterpart.

Programs under `hookbridge run` find it in its old place, rewritten programs here:

    import hookbridge as hb

    hb.contrib.learn.learn_runner.run(make_experiment, run_config=config)

docs/what-comes-back.md lists the counterparts. A name without one raises: under
`hookbridge run` when it is used, here when it is read.

Reading order: `namespace` (the modules that a program sees; the source of each name is
in `hookbridge/tf1_names/contrib_names.py`), `without_replacement`, `module_views` with
`private_modules`, `keras_package` and `old_backend` (Keras as it was until 2.3), and
`restored_slim`. The room `areas` has what needs new code.
"""

from __future__ import annotations

import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}"):
        # Python asks for a file of this room before it imports it.
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from hookbridge.contrib import namespace, restored_slim
    from hookbridge.tf1_names import contrib_names

    if name == "removed":
        return namespace.removed()
    if any(source.root == "tf_slim" for source in contrib_names.AREAS.get(name, ())):
        restored_slim.restore()
    return getattr(namespace.root_of_rewritten(), name)


def __dir__() -> list[str]:
    from hookbridge.tf1_names import contrib_names

    return sorted({*contrib_names.listed_names(""), *globals()})

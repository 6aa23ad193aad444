"""tf_slim 1.1 on today's TensorFlow, for programs that import it themselves.

`batch_norm` and `optimize_loss` use private names of TensorFlow that have moved.
"""

from __future__ import annotations

import importlib.util
import sys
import types

from hookbridge.contrib import private_modules
from hookbridge.ground.patching import Patches
from hookbridge.tf1_names.syntax import is_below

_SLIM = "tf_slim"


def restore() -> None:
    """Give tf_slim's modules the view of TensorFlow that `hookbridge run` gives them.

    TensorFlow's own modules stay as they are. Nothing happens without tf_slim.
    """
    if importlib.util.find_spec(_SLIM) is None:
        return
    importlib.import_module(_SLIM)
    for name, module in list(sys.modules.items()):
        if is_below(name, _SLIM):
            Patches(module, _restored_views(module)).install()


def _restored_views(module: types.ModuleType) -> dict[str, types.ModuleType]:
    """Return the private modules of TensorFlow among a module's names, as views."""
    return {
        name: private_modules.find(value.__name__)
        for name, value in vars(module).items()
        if isinstance(value, types.ModuleType)
        and value.__name__.startswith(f"{private_modules.PYTHON}.")
    }

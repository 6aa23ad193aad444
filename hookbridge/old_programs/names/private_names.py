"""Whether the installed TensorFlow has a private name, from its source.

No list of private names is kept: for another target than the installed TensorFlow
nothing is known. TensorFlow is not imported.
"""

from __future__ import annotations

from hookbridge.ground import compat
from hookbridge.old_programs.names import sources
from hookbridge.old_programs.names.sources import Missing
from hookbridge.old_programs.names.target import Target


def missing(name: str, target: Target) -> Missing:
    """What the target lacks of a name below `tensorflow`, as far as it is known."""
    installed = ".".join(map(str, compat.installed_tf_version()))
    return (
        sources.missing(name)
        if target.version == installed
        else Missing(is_certain=False)
    )

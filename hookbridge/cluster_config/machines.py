"""What the machine types of a `config.yaml` have."""

from __future__ import annotations

import re
from typing import NamedTuple

from hookbridge import errors
from hookbridge.arguments import shown


class Machine(NamedTuple):
    """What one machine has."""

    cpus: int
    memory_gib: float
    gpus: int = 0


# Machine types for which AI Platform had its own names.
_NAMED = {
    "standard": Machine(4, 15),
    "large_model": Machine(8, 52),
    "complex_model_s": Machine(8, 7.2),
    "complex_model_m": Machine(16, 14.4),
    "complex_model_l": Machine(32, 28.8),
    "standard_gpu": Machine(8, 30, 1),
    "complex_model_m_gpu": Machine(8, 30, 4),
    "complex_model_l_gpu": Machine(16, 60, 8),
    "standard_p100": Machine(8, 30, 1),
    "complex_model_m_p100": Machine(16, 60, 4),
    "standard_v100": Machine(8, 30, 1),
    "large_model_v100": Machine(16, 52, 1),
    "complex_model_m_v100": Machine(16, 60, 4),
    "complex_model_l_v100": Machine(32, 120, 8),
}
# Memory in GiB for each CPU of Compute Engine's types.
_GIB = {
    ("n1", "standard"): 3.75,
    ("n1", "highmem"): 6.5,
    ("n1", "highcpu"): 0.9,
    ("n2", "standard"): 4.0,
    ("n2", "highmem"): 8.0,
    ("n2", "highcpu"): 1.0,
    ("e2", "standard"): 4.0,
    ("e2", "highmem"): 8.0,
    ("e2", "highcpu"): 1.0,
}


def machine(name: str, key: str) -> Machine:
    """The machine of a type, which a `config.yaml` has under `key`."""
    if name in _NAMED:
        return _NAMED[name]
    match = re.fullmatch(r"([a-z]+\d)-([a-z]+)-([1-9]\d{0,3})", name)
    gib = _GIB.get((match[1], match[2])) if match else None
    if match is None or gib is None:
        families = ", ".join(sorted({f"{family}-{kind}-N" for family, kind in _GIB}))
        raise errors.InvalidArgumentError(
            f"{key} is {shown(name)}; expected one of {', '.join(_NAMED)}, {families}."
        )
    cpus = int(match[3])
    return Machine(cpus, cpus * gib)

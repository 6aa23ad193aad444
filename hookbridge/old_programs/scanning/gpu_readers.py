"""Queue readers that a program puts on a GPU."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs import gpu_blocks
from hookbridge.old_programs.scanning.findings import Finding, finding_at
from hookbridge.tf1_names.target import table

_READERS = frozenset(table("names")["queue readers"])


def readers_on_gpu(module: Module, called: Collection[str]) -> Iterator[Finding]:
    """Yield the queue readers of a file in blocks for a GPU, and in what these call.

    Args:
      module: the file.
      called: the names in it that blocks of any file of its programs call.
    """
    code = [
        *gpu_blocks.blocks(module),
        *(f for name in called for f in gpu_blocks.functions(module, name)),
    ]
    calls = {c: None for node in code for c in gpu_blocks.calls_in(node, module)}
    for call in calls:
        name = module.names.canonical(call.func) or ""
        if name in _READERS:
            way = f"`hb.legacy.{name.rpartition('.')[2]}`"
            yield finding_at(module, call, "GPU_READER", name, way)

"""Checkpoints of TF1 read into Keras models, and saves in the background.

    report = hb.checkpoints.restore(model, "estimator_dir")
    print(report)

The other direction needs no code: under `fit`, `CheckpointSaverHook` writes a TF1
checkpoint whose weights have the names of the layers. A `Saver` can restore it, and
an Estimator can warm-start from it.

The names are looked up on first use: importing this package does not import
TensorFlow.

Reading order: `checkpoint_entries` (which entry a variable has), `slot_names` and
`numbered_names`;
`matches` (what must fit), `restoring`;
`value_copies`, `background_saves`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookbridge.ground.imports.lazy import attach

if TYPE_CHECKING:
    from hookbridge.checkpoints.background_saves import (
        BackgroundSaverHook as BackgroundSaverHook,
    )
    from hookbridge.checkpoints.matches import RestoreReport as RestoreReport
    from hookbridge.checkpoints.restoring import newest as newest
    from hookbridge.checkpoints.restoring import restore as restore

__all__, __getattr__, __dir__ = attach(
    __name__,
    {
        "BackgroundSaverHook": "hookbridge.checkpoints.background_saves",
        "RestoreReport": "hookbridge.checkpoints.matches",
        "newest": "hookbridge.checkpoints.restoring",
        "restore": "hookbridge.checkpoints.restoring",
    },
)

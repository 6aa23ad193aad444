"""Rows of CSV, text and TFRecord files as batches, with the place of each broken row.

    rows = hb.data.Rows(["train.csv"], header_lines=1)
    pipeline = hb.data.Pipeline(rows, Extractor(), batch_size=32)
    batches = pipeline.dataset(training=True)

The names are looked up on first use: importing this package does not import TensorFlow.

Reading order: `rows`, `bad_rows`, `pipeline`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookbridge.ground.imports.lazy import attach

if TYPE_CHECKING:
    from hookbridge.jobs.data.bad_rows import BadRow as BadRow
    from hookbridge.jobs.data.pipeline import Pipeline as Pipeline
    from hookbridge.jobs.data.rows import Rows as Rows

__all__, __getattr__, __dir__ = attach(
    __name__,
    {
        "BadRow": "hookbridge.jobs.data.bad_rows",
        "Pipeline": "hookbridge.jobs.data.pipeline",
        "Rows": "hookbridge.jobs.data.rows",
    },
)

"""Ready-made callbacks, each of which drives both loops.

    hb.callbacks.LearningRateScheduler(lambda step: 0.1 * 0.99**step)

Each is a callback of every Keras flavour, and has the role that suits it. The names
are looked up on first use: importing this package does not import TensorFlow.

Reading order: `ready_made`, then one file for each: `outputs_processor`,
`learning_rate_scheduler`, `summary_writer`, `early_stopper`, `saved_model_exporter`,
`model_uploader`, `progress`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookbridge.ground.imports.lazy import attach

if TYPE_CHECKING:
    from hookbridge.jobs.callbacks.early_stopper import EarlyStopper as EarlyStopper
    from hookbridge.jobs.callbacks.learning_rate_scheduler import (
        LearningRateScheduler as LearningRateScheduler,
    )
    from hookbridge.jobs.callbacks.model_uploader import ModelUploader as ModelUploader
    from hookbridge.jobs.callbacks.outputs_processor import (
        PredictionOutputsProcessor as PredictionOutputsProcessor,
    )
    from hookbridge.jobs.callbacks.progress import Progress as Progress
    from hookbridge.jobs.callbacks.saved_model_exporter import (
        SavedModelExporter as SavedModelExporter,
    )
    from hookbridge.jobs.callbacks.summary_writer import SummaryWriter as SummaryWriter

__all__, __getattr__, __dir__ = attach(
    __name__,
    {
        "EarlyStopper": "hookbridge.jobs.callbacks.early_stopper",
        "LearningRateScheduler": "hookbridge.jobs.callbacks.learning_rate_scheduler",
        "ModelUploader": "hookbridge.jobs.callbacks.model_uploader",
        "PredictionOutputsProcessor": "hookbridge.jobs.callbacks.outputs_processor",
        "Progress": "hookbridge.jobs.callbacks.progress",
        "SavedModelExporter": "hookbridge.jobs.callbacks.saved_model_exporter",
        "SummaryWriter": "hookbridge.jobs.callbacks.summary_writer",
    },
)

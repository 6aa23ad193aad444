"""What a person sees at the end of a training."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge.data.bad_rows import BadRow
from hookbridge.training.settings import TrainingSettings


def tensorboard(keras: Any, settings: TrainingSettings) -> list[Any]:
    """The callback that writes the same curves in every loop, if it can write.

    Runs whose `model_dir`s have a folder in common lie side by side there.

    Args:
      keras: the flavour of the callback.
      settings: the job.
    """
    if importlib.util.find_spec("tensorboard") is None:
        return []
    folder = os.path.join(settings.model_dir, "tensorboard")
    return [keras.callbacks.TensorBoard(folder, write_graph=False, profile_batch=0)]


def summary(
    settings: TrainingSettings,
    step: int,
    secs: float,
    params: Mapping[str, object],
    skipped: Mapping[str, list[BadRow]],
) -> str:
    """Where everything is.

    Args:
      settings: the job.
      step: the global step at the end.
      secs: how long it took.
      params: what callbacks were told, the place of the SavedModel among it.
      skipped: the rows that were left out.
    """
    lines = [f"trained to step {step} with --loop={settings.loop} in {secs:.1f} s"]
    checkpoint = tf.train.latest_checkpoint(settings.model_dir)
    places = {
        "checkpoint": checkpoint,
        "TensorBoard": f"tensorboard --logdir {settings.model_dir}",
        "SavedModel": params.get("saved_model_path"),
    }
    exported = str(places["SavedModel"])
    if not os.path.isdir(exported):
        del places["SavedModel"]
    lines += [f"  {name:<12} {place}" for name, place in places.items() if place]
    for mode, rows in skipped.items():
        if rows:
            lines.append(f"  skipped      {len(rows)} rows of the data of `{mode}`")
    return "\n".join([*lines, f"global_step={step}"])

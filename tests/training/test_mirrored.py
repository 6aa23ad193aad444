"""The strategy that `--loop=fit` takes for --num_towers and --devices."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.training.fit_training import mirrored_strategy
from hookbridge.training.settings import TrainingSettings

BOTH = ("/device:CPU:0", "/device:CPU:1")


@pytest.mark.parametrize(
    ("devices", "kind"),
    [
        (BOTH, tf.distribute.MirroredStrategy),
        (BOTH[1:], tf.distribute.OneDeviceStrategy),
        ((), type(tf.distribute.get_strategy())),
    ],
)
def test_the_devices_that_were_asked_for(devices: tuple[str, ...], kind: Any) -> None:
    settings = TrainingSettings(
        "job.py", "fit", devices=devices or None, num_towers=len(devices) or 1
    )
    strategy = mirrored_strategy(settings)
    assert isinstance(strategy, kind)
    if devices:
        found = strategy.extended.worker_devices
        assert [name.rpartition("/")[2] for name in found] == [
            name.rpartition("/")[2] for name in devices
        ]


def test_more_towers_than_logical_cpus_where_tensorflow_is_in_use() -> None:
    tf.constant(1.0)
    with pytest.raises(errors.InvalidArgumentError, match=r"with 2 logical CPUs.*ed 3"):
        mirrored_strategy(TrainingSettings("job.py", "fit", num_towers=3))

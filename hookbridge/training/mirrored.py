"""The strategy of a process whose towers share each batch in `fit`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.loops.towers.devices import tower_devices
from hookbridge.training.settings import TrainingSettings


def mirrored_strategy(settings: TrainingSettings) -> Any:
    """The strategy over the devices of the towers.

    For one tower without a given device it is TensorFlow's default strategy.
    """
    split_cpu(settings)
    devices = tower_devices(settings.num_towers, settings.devices)
    if len(devices) > 1:
        return tf.distribute.MirroredStrategy(devices)
    if settings.devices:
        return tf.distribute.OneDeviceStrategy(devices[0])
    return tf.distribute.get_strategy()


def split_cpu(settings: TrainingSettings) -> None:
    """Makes a logical CPU for each tower that is on a CPU.

    It is called after the definition file has run, which may choose the devices, and
    before anything else uses TensorFlow.
    """
    if settings.num_towers == 1 and not settings.devices:
        return
    devices = tower_devices(settings.num_towers, settings.devices)
    specs = map(tf.DeviceSpec.from_string, devices)
    cpus = [s.device_index or 0 for s in specs if s.device_type == "CPU"]
    wanted = 1 + max(cpus, default=0)
    (cpu, *_) = tf.config.list_physical_devices("CPU")
    there = len(tf.config.get_logical_device_configuration(cpu) or [cpu])
    if there >= wanted:
        return
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * wanted
        )
    except RuntimeError as e:
        raise errors.InvalidArgumentError(
            f"Received num_towers={settings.num_towers} with --loop=fit where "
            f"TensorFlow is in use with {there} logical CPUs; expected {wanted}. Call "
            "`tf.config.set_logical_device_configuration` at the top of the file."
        ) from e

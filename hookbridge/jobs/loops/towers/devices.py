"""The logical devices of towers, and sessions that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import optional_count, shown

# A session makes all its logical devices when it starts.
MOST_TOWERS = 1024


def tower_devices(
    num_towers: int | None, devices: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the device of each tower.

    Args:
      num_towers: how many towers; None makes one on each of `devices` or GPUs, or one.
      devices: devices to use, one for each tower, for example
        `["/device:GPU:0", "/device:GPU:1"]`. None takes the GPUs if there are any,
        and logical CPU devices otherwise.

    Raises:
      errors.InvalidArgumentError: `num_towers` is not an integer from 1 to 1024,
        differs from the number of `devices`, or is larger than the number of GPUs;
        or `devices` is malformed, or names a device that this machine does not have.
    """
    count = optional_count("num_towers", num_towers)
    if count is not None and count > MOST_TOWERS:
        raise errors.InvalidArgumentError(
            f"Received num_towers={shown(num_towers)}; expected at most {MOST_TOWERS}."
        )
    if devices is not None:
        check_devices(devices)
        if count not in (None, len(devices)):
            raise errors.InvalidArgumentError(
                f"Received num_towers={num_towers} and {len(devices)} devices "
                f"({', '.join(devices)}); expected one device for each tower. Leave "
                "`devices` out to have them chosen."
            )
        return tuple(devices)
    import tensorflow as tf

    gpus = len(tf.config.list_physical_devices("GPU"))
    count = count or gpus or 1
    if 0 < gpus < count:
        raise errors.InvalidArgumentError(
            f"Received num_towers={num_towers}; expected at most {gpus}, the number "
            "of GPUs here. Towers on the CPU or several on one GPU have to be asked "
            "for: `devices`, one for each tower."
        )
    kind = "GPU" if gpus else "CPU"
    return tuple(f"/device:{kind}:{i}" for i in range(count))


def check_devices(devices: object) -> None:
    """Raise unless `devices` names devices that this machine has.

    CPU devices are not checked: the session makes as many logical ones as it needs
    (`session_config`). Neither are devices of another task, which are not known here.
    """
    import tensorflow as tf

    if isinstance(devices, str) or not isinstance(devices, Sequence):
        raise errors.InvalidArgumentError(
            f"Received devices={shown(devices)}; expected a list of device names, one "
            'for each tower, such as ["/device:CPU:0", "/device:CPU:1"].'
        )
    for name in devices:
        try:
            spec = tf.DeviceSpec.from_string(name)
        except (ValueError, AttributeError, TypeError):
            spec = tf.DeviceSpec()
        if spec.device_type == "CPU" or spec.job is not None:
            continue
        # A physical device may be several logical ones.
        here = sum(
            len(tf.config.get_logical_device_configuration(device) or [device])
            for device in tf.config.list_physical_devices(spec.device_type or "none")
        )
        if (spec.device_index or 0) >= here:
            # TensorFlow would run the tower somewhere else.
            raise errors.InvalidArgumentError(
                f"Received the device {shown(name)} in `devices`; expected one that is "
                f'here, such as "/device:CPU:1"; {here} are of the type '
                f"{spec.device_type}. Leave `devices` out to have them chosen."
            )


def session_config(devices: Sequence[str]) -> Any:
    """Return a `ConfigProto` whose session has all of `devices`.

    The logical CPU devices belong to the session (`device_count`), so nothing in
    the process changes and several loops can use different numbers of them.

    Args:
      devices: tower devices as `tower_devices` gives them.

    Returns:
      A `tf.compat.v1.ConfigProto`.

    Raises:
      errors.InvalidArgumentError: `devices` is not a list of device names.
    """
    import tensorflow as tf

    check_devices(devices)
    config = tf.compat.v1.ConfigProto()
    # A read of a variable must run on the variable's device, even if the tower asked
    # for another device.
    config.allow_soft_placement = True
    specs = [tf.DeviceSpec.from_string(device) for device in devices]
    indices = [s.device_index or 0 for s in specs if s.device_type == "CPU"]
    config.device_count["CPU"] = 1 + max(indices, default=0)
    return config

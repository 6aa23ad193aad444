"""Records what hooks and callbacks receive; compares it with the documented mapping.

    log = EventLog()
    checkpoints = spy(tf.compat.v1.train.CheckpointSaverHook("run"), log, "saver")
    model.fit(x, y, epochs=2, callbacks=hb.as_callbacks(checkpoints))
    assert_conforms(log, "saver", guest="hook", host="fit", steps=20)

`RecordingHook` and `RecordingCallback` are guests that do nothing but record;
`spy` makes any other guest record too, while it does its own work.

Reading order: `event_log`, `recorders`, `spying`, `conformance`, `both_loops`.
"""

from __future__ import annotations

from hookbridge.ground.lifecycle import (
    Delivery,
    Event,
    events_of,
    expected_events,
    overridden,
)
from hookbridge.ground.lifecycle import Ending as Ending
from hookbridge.testing.conformance import assert_conforms, differences
from hookbridge.testing.event_log import EventLog, Record
from hookbridge.testing.recorders import RecordingCallback, RecordingHook
from hookbridge.testing.spying import spy, unspy

__all__ = [
    "Delivery",
    "Event",
    "EventLog",
    "Record",
    "RecordingCallback",
    "RecordingHook",
    "assert_conforms",
    "differences",
    "events_of",
    "expected_events",
    "overridden",
    "spy",
    "unspy",
]


def __dir__() -> list[str]:
    """Return the public names, without the modules of this package."""
    return list(__all__)

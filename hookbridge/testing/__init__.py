"""Record what hooks and callbacks receive, and hold it to the documented mapping.

    log = EventLog()
    checkpoints = spy(tf.compat.v1.train.CheckpointSaverHook("run"), log, "saver")
    model.fit(x, y, epochs=2, callbacks=hb.as_callbacks(checkpoints))
    assert_conforms(log, "saver", guest="hook", host="fit", steps=20)

`RecordingHook` and `RecordingCallback` are guests that do nothing but record;
`spy` makes any guest record beside what it does.
"""

from hookbridge.testing.conformance import assert_conforms as assert_conforms
from hookbridge.testing.conformance import differences as differences
from hookbridge.testing.event_log import EventLog as EventLog
from hookbridge.testing.event_log import Record as Record
from hookbridge.testing.recording import RecordingCallback as RecordingCallback
from hookbridge.testing.recording import RecordingHook as RecordingHook
from hookbridge.testing.spying import spy as spy
from hookbridge.testing.spying import unspy as unspy

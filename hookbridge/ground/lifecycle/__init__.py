"""Both lifecycles as data: events, order, and each event's counterpart.

`HOOK_EVENTS` and `CALLBACK_EVENTS` say for each event who calls it when, in either
loop (docs/lifecycle.md shows them), and `expected_events` gives the exact sequence that
a guest must see. The native order is that of `tf.compat.v1.train.SessionRunHook` and
`tf.keras.callbacks.Callback`.

Nothing here imports TensorFlow.

Reading order: `events`, `event_sequences`, `overrides`.
"""

from hookbridge.ground.lifecycle.event_sequences import (
    expected_events as expected_events,
)
from hookbridge.ground.lifecycle.events import ALIASES as ALIASES
from hookbridge.ground.lifecycle.events import CALLBACK_EVENTS as CALLBACK_EVENTS
from hookbridge.ground.lifecycle.events import EVENTS as EVENTS
from hookbridge.ground.lifecycle.events import HOOK_EVENTS as HOOK_EVENTS
from hookbridge.ground.lifecycle.events import Delivery as Delivery
from hookbridge.ground.lifecycle.events import Ending as Ending
from hookbridge.ground.lifecycle.events import Event as Event
from hookbridge.ground.lifecycle.events import Host as Host
from hookbridge.ground.lifecycle.events import Kind as Kind
from hookbridge.ground.lifecycle.events import Mode as Mode
from hookbridge.ground.lifecycle.events import events_of as events_of
from hookbridge.ground.lifecycle.overrides import overridden as overridden

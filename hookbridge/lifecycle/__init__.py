"""Both lifecycles as data: events, order, and each event's counterpart.

`HOOK_EVENTS` and `CALLBACK_EVENTS` say for each event who calls it when, in either
loop (docs/lifecycle.md shows them), and `expected_events` gives the exact sequence that
a guest must see. The native order is that of `tf.compat.v1.train.SessionRunHook` and
`tf.keras.callbacks.Callback`.

Nothing here imports TensorFlow.
"""

from hookbridge.lifecycle.events import ALIASES as ALIASES
from hookbridge.lifecycle.events import CALLBACK_EVENTS as CALLBACK_EVENTS
from hookbridge.lifecycle.events import EVENTS as EVENTS
from hookbridge.lifecycle.events import HOOK_EVENTS as HOOK_EVENTS
from hookbridge.lifecycle.events import Delivery as Delivery
from hookbridge.lifecycle.events import Ending as Ending
from hookbridge.lifecycle.events import Event as Event
from hookbridge.lifecycle.events import Guest as Guest
from hookbridge.lifecycle.events import Host as Host
from hookbridge.lifecycle.events import Mode as Mode
from hookbridge.lifecycle.events import events_of as events_of
from hookbridge.lifecycle.overrides import overridden as overridden
from hookbridge.lifecycle.sequences import expected_events as expected_events

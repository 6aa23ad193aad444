"""Both lifecycles as data: events, order, and each event's counterpart.

The loops below are the specification; `HOOK_EVENTS` and `CALLBACK_EVENTS` say the
same event by event, and `expected_events` turns it into the exact sequence that a
guest must see. Native order is that of `tf.compat.v1.train.SessionRunHook` and
`tf.keras.callbacks.Callback`.

A callback in a session loop:

    set_model, set_params                     # hook.begin
    on_train_begin                            # hook.after_create_session
    while not session.should_stop():
        on_epoch_begin(step // steps_per_epoch)   # at the first step of an epoch
        on_train_batch_begin(step % steps_per_epoch)
        session.run(train_op)                 # a run that moves the global step
        on_train_batch_end(step % steps_per_epoch, logs)
        on_test_begin ... on_test_end         # at the last step of an epoch
        on_epoch_end(step // steps_per_epoch, logs)
    on_train_end                              # hook.end

A hook in `Model.fit`:

    on_train_begin, on_epoch_begin(0), on_train_batch_begin(0)
    begin, after_create_session               # the first step is built, not run yet
    for every execution of the train function:
        before_run
        model.train_function(iterator)
        after_run
    end                                       # on_train_end

Nothing here imports TensorFlow.
"""

from __future__ import annotations

from hookbridge.lifecycle.events import (
    ALIASES,
    CALLBACK_EVENTS,
    ENDINGS,
    EVENTS,
    GUESTS,
    HOOK_EVENTS,
    HOSTS,
    MODES,
    Delivery,
    Ending,
    Event,
    Guest,
    Host,
    Mode,
    events_of,
)
from hookbridge.lifecycle.overrides import overridden
from hookbridge.lifecycle.sequences import expected_events
from hookbridge.lifecycle.tables import (
    TRAINING_EVENTS,
    endings_markdown,
    event_map_markdown,
)

__all__ = (
    "ALIASES",
    "CALLBACK_EVENTS",
    "ENDINGS",
    "EVENTS",
    "GUESTS",
    "HOOK_EVENTS",
    "HOSTS",
    "MODES",
    "TRAINING_EVENTS",
    "Delivery",
    "Ending",
    "Event",
    "Guest",
    "Host",
    "Mode",
    "endings_markdown",
    "event_map_markdown",
    "events_of",
    "expected_events",
    "overridden",
)

"""Both lifecycles as data: events, order, and each event's counterpart.

The loops below are the specification. `HOOK_EVENTS` and `CALLBACK_EVENTS` say the
same for each event, and `expected_events` gives the exact sequence that a guest must
see. The native order is that of `tf.compat.v1.train.SessionRunHook` and
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

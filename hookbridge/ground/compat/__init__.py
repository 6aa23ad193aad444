"""Versions of TensorFlow and Keras, and every private name of theirs that is used.

Read `versions`, `private_objects` (of modules), `frames` (of running functions), then
`objects` (functions that read attributes; `tests/helpers/private_attributes.py` lists
all of them). Nothing else in the package may import from `tensorflow.python`,
`keras.src` or `tf_keras.src`.
"""

from hookbridge.errors import PrivateNameMovedError as PrivateNameMovedError
from hookbridge.ground.compat.frames import FRAMES as FRAMES
from hookbridge.ground.compat.frames import closure_of as closure_of
from hookbridge.ground.compat.frames import is_called_from as is_called_from
from hookbridge.ground.compat.frames import running_locals as running_locals
from hookbridge.ground.compat.objects import connected_jobs as connected_jobs
from hookbridge.ground.compat.objects import coordinated_cluster as coordinated_cluster
from hookbridge.ground.compat.objects import coordinator_threads as coordinator_threads
from hookbridge.ground.compat.objects import (
    forget_number_of_steps as forget_number_of_steps,
)
from hookbridge.ground.compat.objects import (
    remote_value_is_ready as remote_value_is_ready,
)
from hookbridge.ground.compat.objects import session_config as session_config
from hookbridge.ground.compat.objects import variable_handle as variable_handle
from hookbridge.ground.compat.objects import withdraw_stop as withdraw_stop
from hookbridge.ground.compat.objects import worker_specs as worker_specs
from hookbridge.ground.compat.private_objects import PRIVATE as PRIVATE
from hookbridge.ground.compat.private_objects import PrivateName as PrivateName
from hookbridge.ground.compat.private_objects import private as private
from hookbridge.ground.compat.versions import LAST_WITH_KERAS2 as LAST_WITH_KERAS2
from hookbridge.ground.compat.versions import (
    installed_tf_version as installed_tf_version,
)
from hookbridge.ground.compat.versions import installed_versions as installed_versions
from hookbridge.ground.compat.versions import is_keras3 as is_keras3
from hookbridge.ground.compat.versions import keras3_version as keras3_version
from hookbridge.ground.compat.versions import keras_2_advice as keras_2_advice
from hookbridge.ground.compat.versions import keras_backend as keras_backend
from hookbridge.ground.compat.versions import keras_flavours as keras_flavours
from hookbridge.ground.compat.versions import known_troubles as known_troubles
from hookbridge.ground.compat.versions import other_backend as other_backend
from hookbridge.ground.compat.versions import tell_of_troubles as tell_of_troubles
from hookbridge.ground.compat.versions import tf_version as tf_version

"""The reason codes: what each means, and what `hookbridge run` does about it."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """One reason code."""

    verdict: str  # see `hookbridge.migrate.findings.Finding`
    message: str  # what breaks, in a sentence
    run: str = ""  # what `hookbridge run` does about it; empty if nothing


_ESTIMATOR = "TensorFlow has no Estimator since 2.16."
_CONTRIB = "tf.contrib is gone since TensorFlow 2.0."

CODES: dict[str, Code] = {
    # Names. What to write for each is in `fates`.
    "ESTIMATOR": Code("auto", _ESTIMATOR, "brings it back in its place"),
    "ESTIMATOR_PRIVATE": Code(
        "assisted", _ESTIMATOR, "answers with tensorflow_estimator 2.15"
    ),
    "HOOK_NAME": Code(
        "auto",
        "A hook's name that died with Estimator, as tf_upgrade_v2 of 2.15 writes it.",
        "brings it back in its place",
    ),
    "CONTRIB": Code("auto", _CONTRIB, "answers as docs/running-tf1.md says"),
    "TUTORIALS": Code(
        "auto",
        "TensorFlow's tutorials are no part of its package since 2.0.",
        "answers with a reader of local files",
    ),
    "GONE": Code("manual", "TensorFlow 1 had it; nothing stands for it."),
    "SLIM_BROKEN": Code(
        "auto",
        "This function of tf_slim 1.1 asks TensorFlow for names that are gone.",
        "answers tf_slim's imports",
    ),
    "KERAS_PRIVATE": Code(
        "assisted",
        "tensorflow.python.keras is an old copy of Keras that does not fit tf.keras.",
        "answers with tf_keras",
    ),
    "PRIVATE": Code(
        "assisted",
        "tensorflow.python is private: names in it move without notice.",
        "imports it as it is",
    ),
    "PRIVATE_GONE": Code(
        "manual", "A private name that the installed TensorFlow does not have."
    ),
    "V1_NAME": Code(
        "auto",
        "TensorFlow 1 had this name; it is in tf.compat.v1.",
        "answers with tf.compat.v1",
    ),
    "MISSING": Code("manual", "TensorFlow has no such name, and no rule knows it."),
    "LOST_NAME": Code(
        "auto", "Python or NumPy has this name no more.", "brings it back"
    ),
    "LOST_FUNCTION": Code(
        "manual", "Python or NumPy has this function no more.", "brings it back"
    ),
    "STAR_IMPORT": Code(
        "manual",
        "Names of a starred import cannot be followed.",
        "imports what is there",
    ),
    # Calls, files and programs.
    "V1_FILE": Code(
        "auto",
        "The program is one of TensorFlow 1, and so `tf` means that in this file.",
        "answers with tf.compat.v1",
    ),
    "V1_BEHAVIOUR": Code(
        "auto",
        "The program needs the v1 behaviour of TensorFlow.",
        "switches the v1 behaviour on",
    ),
    "KERAS2": Code(
        "auto",
        "The program needs Keras 2: tf_keras has to be installed.",
        "chooses Keras 2 before TensorFlow is imported",
    ),
    "OLD_LIBRARY": Code(
        "assisted",
        "This installed package means TensorFlow 1.",
        "answers its imports like the program's",
    ),
    "DEVICE_FUNCTION": Code(
        "auto", "tf.device takes no function; that of v1 does.", "takes functions too"
    ),
    "GPU_READER": Code(
        "manual",
        "TensorFlow 2 puts a queue reader on no machine without that GPU, not even "
        "with allow_soft_placement; TensorFlow 1 took the CPU.",
    ),
    "OLD_ARGUMENT": Code(
        "auto",
        "An argument or a method has another name today.",
        "takes the old argument or method",
    ),
    "CLUSTER": Code(
        "bridge",
        "A hand-made cluster of v1 servers; one stop ends none.",
        "starts the servers as they are",
    ),
    "SUPERVISOR": Code(
        "bridge", "Supervisor runs no hooks.", "runs it as it is, without guests"
    ),
    # Guests.
    "HOOK_CLASS": Code("bridge", "A hook: runs in `fit` through `hb.as_callbacks`."),
    "CALLBACK_CLASS": Code("bridge", "A callback: runs in a session by `hb.as_hooks`."),
    "HOOK_SITE": Code("fine", "A place that takes hooks: `hb.as_hooks` fits in."),
    "CALLBACK_SITE": Code(
        "fine", "A place that takes callbacks: `hb.as_callbacks` does."
    ),
    "FETCH_RUN": Code("bridge", "A run that trains nothing and fires every hook."),
    "STEPS_PER_EPOCH": Code(
        "assisted",
        "Callbacks with epochs need as_hooks(..., steps_per_epoch=...) in a session.",
    ),
}

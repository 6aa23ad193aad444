"""Hooks and callbacks for programs that know nothing of them."""

import tensorflow as tf

PATIENCE = 1


class Counter(tf.compat.v1.train.SessionRunHook):
    """Counts what it is called for, and says so at the end."""

    def begin(self):
        self.runs = 0

    def after_run(self, run_context, run_values):
        self.runs += 1

    def end(self, session):
        print("guest: hook ends after", self.runs, "runs", flush=True)


class Epochs(tf.keras.callbacks.Callback):
    """Prints the logs of each epoch."""

    def on_train_begin(self, logs=None):
        print("guest: training begins", flush=True)

    def on_epoch_end(self, epoch, logs=None):
        shown = " ".join(f"{key}={float(logs[key]):.6f}" for key in sorted(logs))
        print("guest: epoch", epoch, shown, flush=True)

    def on_test_begin(self, logs=None):
        print("guest: test begins", flush=True)


def guests():
    print("guest: made", flush=True)
    stop = tf.keras.callbacks.EarlyStopping("loss", patience=PATIENCE, min_delta=9.0)
    return [Counter(), tf.keras.callbacks.CSVLogger("log.csv"), stop, Epochs()]

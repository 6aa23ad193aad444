"""Raises the errors that need no training, second process or other installation."""

import socket
from pathlib import Path

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1
keras = tf.keras
model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1, name="out")])
model.compile("sgd", "mse")


def fit(guest):
    data = np.ones([8, 3]), np.ones([8, 1])
    model.fit(*data, verbose=0, callbacks=hb.as_callbacks([guest]))


def train(callback):
    with tf.Graph().as_default():
        x = v1.get_variable("x", [], initializer=v1.ones_initializer())
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(x**2, step)
        hooks = hb.as_hooks([callback], steps_per_epoch=2, logs={"loss": x**2})
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(train_op)


class Asking(v1.train.SessionRunHook):
    """Asks the session for what a test gives it."""

    def __init__(self, fetches=None, feeds=None):
        self.arguments = v1.train.SessionRunArgs(fetches, feed_dict=feeds)

    def before_run(self, run_context):
        return self.arguments


def fit_with_hooks(guests):
    model.fit(np.ones([8, 3]), np.ones([8, 1]), verbose=0, callbacks=guests)


class Summarize(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.model.to_json()


class RunInBegin(v1.train.SessionRunHook):
    def after_create_session(self, session, coord):
        session.run("loss:0")


def restore():
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("other/kernel", [5, 5])
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, "./other")
    hb.checkpoints.restore(model, path)


def record(directory):
    with hb.record([keras.callbacks.History()], directory):
        pass


def start(taken):
    address = f"localhost:{taken.getsockname()[1]}"
    cluster = {"chief": [address], "ps": ["localhost:5001"]}
    hb.loops.SessionCluster(hb.loops.ClusterConfig(cluster, "chief")).start()


Path("file").write_text("")
adam = v1.train.AdamOptimizer()
sync = v1.train.SyncReplicasOptimizer(adam, 2).make_session_run_hook(True)
callbacks = keras.callbacks
for error, function, argument in (
    (hb.errors.NotAGuestError, hb.as_hooks, callbacks.History),
    (hb.errors.RefusedError, hb.as_callbacks, sync),
    (hb.errors.EpochsUndefinedError, hb.as_hooks, callbacks.EarlyStopping("loss")),
    (hb.errors.UnknownTensorError, fit, v1.train.LoggingTensorHook(["los:0"], 1)),
    (hb.errors.UnknownFeedError, fit, Asking(feeds={"no_such:0": 1.0})),
    (hb.errors.RunArgumentsError, fit, Asking(fetches=[3.5])),
    (
        hb.errors.WrongConverterError,
        fit_with_hooks,
        hb.as_hooks([callbacks.TerminateOnNaN()]),
    ),
    (hb.errors.UnknownMetricError, train, callbacks.EarlyStopping("accuracy")),
    (hb.errors.UnwritableError, record, "file"),
    (hb.errors.InvalidArgumentError, hb.loops.LocalCluster, -1),
    (hb.errors.LiveModelError, train, Summarize()),
    (hb.errors.LiveSessionError, fit, RunInBegin()),
    (hb.errors.CheckpointMismatchError, lambda _: restore(), None),
    (
        hb.errors.GoneNameError,
        lambda _: hb.contrib.layers.sparse_column_with_keys(),
        None,
    ),
    (hb.errors.ClusterError, start, socket.create_server(("localhost", 0))),
):
    try:
        function(argument)
    except error as e:
        print(f"{error.__name__}: {e}\n")
    else:
        raise AssertionError(error)

"""Parameter-server training with Model.fit, on a cluster in this process."""
import atexit
import socket
import threading

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_epochs", 3, "Epochs of the training.")
flags.DEFINE_integer("steps_per_epoch", 4, "Steps of an epoch.")


def show_threads():
    print("left", [thread.name for thread in threading.enumerate() if thread.daemon])


atexit.register(show_threads)  # runs last


def pick_unused_port(probe):
    """A port that nobody else gets before the server listens and `probe` is closed."""
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("localhost", 0))
    return probe.getsockname()[1]


def create_in_process_cluster(num_workers, num_ps):
    """Creates and starts local servers and returns the cluster_resolver."""
    probes = [socket.socket() for _ in range(num_workers + num_ps)]
    hosts = [f"localhost:{pick_unused_port(probe)}" for probe in probes]
    cluster_dict = {"worker": hosts[:num_workers], "ps": hosts[num_workers:]}
    cluster_spec = tf.train.ClusterSpec(cluster_dict)
    worker_config = tf.compat.v1.ConfigProto()
    worker_config.inter_op_parallelism_threads = num_workers + 1
    for i in range(num_workers):
        tf.distribute.Server(
            cluster_spec, job_name="worker", task_index=i,
            config=worker_config, protocol="grpc")
    for i in range(num_ps):
        tf.distribute.Server(
            cluster_spec, job_name="ps", task_index=i, protocol="grpc")
    for probe in probes:
        probe.close()
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster_spec, rpc_layer="grpc")


def dataset_fn(input_context):
    batch_size = input_context.get_per_replica_batch_size(16)
    random = np.random.RandomState(3)
    x = random.rand(64, 8).astype("float32")
    y = (x[:, :4].sum(1) > x[:, 4:].sum(1)).astype("int64")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).repeat()
    dataset = dataset.shard(
        input_context.num_input_pipelines, input_context.input_pipeline_id)
    return dataset.batch(batch_size).prefetch(2)


def main(_):
    cluster_resolver = create_in_process_cluster(num_workers=1, num_ps=2)
    variable_partitioner = (
        tf.distribute.experimental.partitioners.MinSizePartitioner(
            min_shard_bytes=(256 << 10), max_shards=2))
    strategy = tf.distribute.experimental.ParameterServerStrategy(
        cluster_resolver, variable_partitioner=variable_partitioner)

    with strategy.scope():
        model = tf.keras.models.Sequential([
            tf.keras.layers.Dense(
                6, activation="relu",
                kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1)),
            tf.keras.layers.Dense(
                2,
                kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2)),
        ])
        model.compile(
            tf.keras.optimizers.legacy.SGD(learning_rate=0.2),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True),
            metrics=["accuracy"])

    history = model.fit(
        tf.keras.utils.experimental.DatasetCreator(dataset_fn),
        epochs=FLAGS.num_epochs, steps_per_epoch=FLAGS.steps_per_epoch,
        verbose=0)
    for epoch, loss in enumerate(history.history["loss"]):
        print(f"epoch {epoch}: loss = {loss:.7f}", flush=True)


if __name__ == "__main__":
    app.run(main)

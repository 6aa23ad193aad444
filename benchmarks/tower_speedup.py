"""How much faster several towers are than one: examples per second of each number.

    python -m benchmarks.tower_speedup

It takes the GPUs of the machine, 1, 2, 4 and so on; without any, 1 and 2 logical CPU
devices, which share the cores. Each tower gets a batch of its own (weak scaling), of a
network of dense layers, in one process. `--width` and `--batch_size` set how much a
tower computes in a step.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import tensorflow as tf

import hookbridge as hb

v1: Any = tf.compat.v1
FEATURES, CLASSES, WARM_UP = 256, 10, 5


def examples_per_second(towers: int, width: int, batch_size: int, steps: int) -> float:
    """Trains in a session with so many towers."""

    def tower(features: Any, labels: Any, mode: str) -> Any:
        values, inputs = features, FEATURES
        for layer, units in enumerate((width, width, CLASSES)):
            kernel = v1.get_variable(f"kernel_{layer}", [inputs, units])
            values = tf.matmul(tf.nn.relu(values) if layer else values, kernel)
            inputs = units
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, values)
        loss, step = tf.reduce_mean(losses), v1.train.get_or_create_global_step()
        optimizer = v1.train.GradientDescentOptimizer(0.01)
        train_op = optimizer.minimize(loss, step)
        return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    devices = hb.loops.tower_devices(towers)
    model_fn = hb.replicate_model_fn(tower, devices)
    with tf.Graph().as_default():
        size = batch_size * towers
        features = tf.zeros([size, FEATURES])
        spec = model_fn(features, tf.zeros([size], tf.int32), "train")
        with hb.loops.training_session(
            config=hb.loops.session_config(devices), log_step_count_steps=None
        ) as session:
            for _ in range(WARM_UP):
                session.run(spec.train_op)
            began = time.perf_counter()
            for _ in range(steps):
                session.run(spec.train_op)
            return size * steps / (time.perf_counter() - began)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch_size", type=int, default=256, help="of each tower")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args(arguments)
    gpus = len(tf.config.list_physical_devices("GPU"))
    print("towers  examples/s  speed-up")
    first, towers = 0.0, 1
    while towers <= (gpus or 2):
        rate = examples_per_second(towers, **vars(options))
        first = first or rate
        print(f"{towers:>6}  {rate:>10.0f}  {rate / first:>8.2f}", flush=True)
        towers *= 2


if __name__ == "__main__":
    main()

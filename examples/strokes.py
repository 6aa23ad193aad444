"""Sequences of different lengths, one file each: the strokes of digits.

    python examples/strokes.py runs/strokes
    hookbridge train examples/strokes.py --loop=fit --epochs=2 --seed=1 \
        --train_files=runs/strokes/train.csv --eval_files=runs/strokes/eval.csv \
        --model_dir=runs/strokes/fit

A stroke is a run of ink in a row of the image: its row, first column, length and mean
ink. The CSV files list the file and the label of each digit. A batch is padded to its
longest sequence; the model leaves out the padding (masking).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

import hookbridge as hb

DATA = Path(__file__).parent / "data" / "digits.csv"
SIDE, CLASSES, MAX_PIXEL = 8, 10, 16
SAMPLES, EVALUATED = 600, 100


def strokes(pixels: list[int]) -> list[tuple[float, ...]]:
    """`(row, first column, length, mean ink)` of each run of ink, from 0 to 1."""
    found = []
    for row in range(SIDE):
        run: list[int] = []
        for column in range(SIDE + 1):
            ink = pixels[SIDE * row + column] if column < SIDE else 0
            if ink:
                run.append(ink)
            elif run:
                start, length = column - len(run), len(run)
                sizes = (row + 1, start + 1, length)
                mean = sum(run) / length / MAX_PIXEL
                found.append((*(size / SIDE for size in sizes), mean))
                run = []
    return found


def make(folder: Path) -> None:
    """Writes a file for each digit, and the lists `train.csv` and `eval.csv`."""
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    listed = []
    with DATA.open() as file:
        for number, row in enumerate(list(csv.reader(file))[1 : SAMPLES + 1]):
            *pixels, label = map(int, row)
            name = f"samples/{number}.txt"
            lines = [",".join(f"{x:.4f}" for x in each) for each in strokes(pixels)]
            (folder / name).write_text("\n".join(lines))
            listed.append(f"{name},{label}\n")
    (folder / "train.csv").write_text("".join(listed[EVALUATED:]))
    (folder / "eval.csv").write_text("".join(listed[:EVALUATED]))


class Strokes:
    """Reads the sequence of one file, `[strokes, 4]`."""

    def __call__(self, location: Any, label: Any) -> Any:
        lines = tf.strings.split(tf.io.read_file(location), "\n")
        columns = tf.io.decode_csv(lines, [[0.0]] * 4)
        return tf.ensure_shape(tf.stack(columns, -1), [None, 4]), label


def input_fn(files: Any, mode: str, batch_size: int, bad_rows: Any, shard: Any) -> Any:
    """Padded batches of the sequences that the lists name."""
    return hb.data.Pipeline(
        hb.data.Rows(files),
        Strokes(),
        batch_size=batch_size,
        locations=[0],
        num_classes=CLASSES,
        seed=1,
        bad_rows=bad_rows,
        shard=shard,
    )


def custom_model() -> Any:
    """A recurrent network that leaves out the padding."""
    return tf.keras.Sequential(
        [
            tf.keras.Input([None, 4]),
            tf.keras.layers.Masking(),
            tf.keras.layers.GRU(32, name="gru"),
            tf.keras.layers.Dense(CLASSES, name="logits"),
        ]
    )


def loss(labels: Any, predictions: Any) -> Any:
    """The loss of each example."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, predictions)


def optimizer() -> Any:
    """Adam."""
    return tf.keras.optimizers.Adam(0.01)


def eval_metrics_fn() -> Any:
    """Whether each prediction is right; the mean is the accuracy."""
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.argmax(predictions, -1, output_type=tf.int32), labels
        )
    }


if __name__ == "__main__":
    make(Path(sys.argv[1]))

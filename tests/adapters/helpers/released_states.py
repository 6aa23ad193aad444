"""The run whose files are kept for each version of state files.

    PYTHONPATH=. python tests/adapters/helpers/released_states.py

It writes the files of the present version, if they are not there. They stay as the
release that wrote them left them: never write them again.
"""

from __future__ import annotations

import tempfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
from callback_loops import session_loop
from callback_recorder import callback_of

from hookbridge.adapters.state import document

FOLDER = Path(__file__).parents[1] / "state" / "released"
# It is in the middle of the third epoch.
CUT_AT = 7
EPOCHS = 6


def guests(keras: Any) -> list[Any]:
    """Callbacks with a state of every kind that a file can hold."""

    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        self.number += 1.5
        self.names.append(f"epoch {epoch}")
        self.pair = (epoch, None)
        self.counter["epochs"] += 1
        self.order[epoch] = True
        self.lists["all"].append(epoch)
        self.array = self.array + np.arange(3.0)
        self.long = [*self.long, epoch]

    own = callback_of(keras, on_epoch_end=on_epoch_end)
    vars(own).update(number=0.0, names=[], pair=(-1, None), counter=Counter())
    vars(own).update(order=OrderedDict(), lists=defaultdict(list))
    vars(own).update(array=np.zeros(3), long=list(range(1000)))
    stop = keras.callbacks.EarlyStopping(
        "loss", min_delta=100.0, patience=4, restore_best_weights=True
    )
    reduce = keras.callbacks.ReduceLROnPlateau(
        "loss", min_delta=100.0, patience=2, factor=0.5, min_lr=0.0
    )
    return [stop, reduce, own]


def run(keras: Any, folder: Path | None = None, max_steps: int = 1000) -> Any:
    """What the callbacks are at the end, and the loop's results."""
    callbacks = guests(keras)
    saves: dict[str, Any] = {}
    if folder is not None:
        saves = {"checkpoint_dir": str(folder), "save_checkpoint_steps": 1}
    loop = session_loop(
        callbacks,
        epochs=EPOCHS,
        max_steps=max_steps,
        validate=False,
        session_options=saves,
    )
    stop, reduce, own = callbacks
    names = ["number", "names", "pair", "counter", "order", "lists", "long"]
    values = {name: getattr(own, name) for name in names}
    values |= {"array": own.array.tolist(), "wait": stop.wait, "cooled": reduce.wait}
    return values, loop


def main() -> None:
    """Writes the files of the present version."""
    import tensorflow as tf

    target = FOLDER / str(document.VERSION)
    if target.exists():
        raise SystemExit(f"{target} is there, and stays as it is.")
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        run(tf.keras, Path(folder), max_steps=CUT_AT)
        for path in Path(folder).glob(f"model.ckpt-{CUT_AT}.*"):
            if path.suffix != ".meta":
                copy(path, target)
    (target / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{CUT_AT}"')


if __name__ == "__main__":
    main()
